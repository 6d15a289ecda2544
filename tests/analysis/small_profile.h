#pragma once

#include <optional>
#include <string>

#include "analysis/profile.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// 70 requests of 4 KiB and 30 of 128 KiB, each taking 50 us, one a millisecond.
inline Profile SmallProfile(bool finished = true) {
  ProfileBuilder builder;
  for (int i = 0; i < 100; ++i) {
    IoRecord io;
    io.op = i % 2 == 0 ? Op::kRead : Op::kWrite;
    io.lba = Lba(static_cast<uint64_t>(i) * 1024);
    io.bytes = i < 70 ? 4096 : 128 * 1024;
    io.queue_ns = io.issue_ns = i * kNanosPerMilli;
    io.complete_ns = *io.issue_ns + 50'000;
    io.process = 0;
    builder.Add(io);
  }
  proto::Header header;
  header.add_devices()->set_name("nvme0n1");
  std::optional<proto::Summary> summary;
  if (finished) summary.emplace().set_records(100);
  return builder.Finish(header, summary, [](uint32_t) {
    return std::string("a\x1b[31mvery long name of a process");
  });
}

}  // namespace blktape
