// synthetic_trace N FILE: writes a trace of N desktop-like I/Os, the same every time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

int Write(uint64_t count, const std::string& path) {
  proto::Header header;
  header.add_devices()->set_name("sda");
  auto writer = TraceWriter::Create(path, header);
  if (!writer.ok()) {
    std::fprintf(stderr, "%s\n", writer.status().message().c_str());
    return 1;
  }
  const uint32_t process = (*writer)->ProcessId("browser");
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> service(11.0, 0.8);
  int64_t now_ns = 1'000'000'000;
  uint64_t sector = 0;
  constexpr uint64_t kSpanSectors = uint64_t{40} << 21;  // 40 GiB
  for (uint64_t i = 0; i < count; ++i) {
    now_ns += random() % 8 == 0 ? static_cast<int64_t>(random() % 2'000'000)
                                : static_cast<int64_t>(random() % 20'000);
    IoRecord io;
    io.op = random() % 10 < 3 ? Op::kWrite : Op::kRead;
    if (io.op == Op::kWrite && random() % 3 == 0) io.flags = kFlagSync;
    io.bytes = random() % 10 < 5 ? 4096 : 4096 * (1 + random() % 32);
    if (random() % 2 == 0) sector = random() % kSpanSectors / 8 * 8;
    io.lba = Lba(sector);
    sector = (sector + io.bytes / kSectorBytes) % kSpanSectors;
    io.queue_ns = now_ns;
    io.issue_ns = now_ns + static_cast<int64_t>(random() % 4'000);
    io.complete_ns = *io.issue_ns + static_cast<int64_t>(service(random));
    io.process = process;
    io.pid = 77;
    io.error = 0;
    if (const Status status = (*writer)->Write(io); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return 1;
    }
  }
  const Status finished = (*writer)->Finish(proto::Summary());
  if (!finished.ok()) std::fprintf(stderr, "%s\n", finished.message().c_str());
  return finished.ok() ? 0 : 1;
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: synthetic_trace N FILE\n");
    return 2;
  }
  return blktape::Write(std::strtoull(argv[1], nullptr, 10), argv[2]);
}
