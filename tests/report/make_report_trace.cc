// Writes a small trace for the tests of reports: make_report_trace KIND PATH
//   empty    no I/O at all
//   lossy    a few I/Os, and five that were lost in the middle
//   hours    an I/O every ten minutes from 14:30 by the wall on, two days and 18 hours long
//   hostile  device, processes, mark and filter have the names that standard input gives, with NUL
//   and
//            line break between two
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"

namespace blktape {
namespace {

constexpr int64_t kHour = 3'600 * kNanosPerSecond;

std::vector<std::string> NamesFromInput() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const std::string between("\0\n", 2);
  std::vector<std::string> names;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(between, begin);
    names.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return names;
    begin = end + between.size();
  }
}

IoRecord Io(int i) {
  IoRecord io;
  io.op = i % 3 == 0 ? Op::kRead : Op::kWrite;
  io.lba = Lba(static_cast<uint64_t>(i * 37 % 101) * 8);
  io.bytes = i % 2 == 0 ? 4096 : 16'384;
  io.queue_ns = i * kNanosPerMilli;
  io.issue_ns = *io.queue_ns + 10'000;
  io.complete_ns = *io.issue_ns + 100'000 + i * 1'000;
  return io;
}

Status Make(const std::string& kind, const std::string& path) {
  std::vector<std::string> names = {"disk0"};
  if (kind == "hostile") names = NamesFromInput();
  proto::Header header;
  header.set_source("generator");
  for (const std::string& name : names) header.add_devices()->set_name(name);
  if (kind == "hostile") {
    for (const std::string& name : names) {
      header.add_filters(name);
      header.mutable_devices(0)->set_model(name);
    }
  }
  if (kind == "hours") {
    header.set_timezone("+02:00");
    header.mutable_start()->set_wall_ns((19'000 * 24 + 12) * kHour + kHour / 2);
  }
  ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(path, header));
  for (int i = 0; kind != "empty" && i < 400; ++i) {
    IoRecord io = Io(i);
    if (kind == "hours") {
      const int64_t later_ns = i * (kHour / 6 - kNanosPerMilli);
      for (auto* const at : {&io.queue_ns, &io.issue_ns, &io.complete_ns}) **at += later_ns;
    }
    if (kind == "hostile") {
      const auto at = static_cast<size_t>(i) % names.size();
      io.device = static_cast<uint32_t>(at);
      io.process = writer->ProcessId(names[at]);
    }
    RETURN_IF_ERROR(writer->Write(io));
    if (i == 200 && kind == "lossy") {
      proto::Loss loss;
      loss.set_reason(proto::RING_OVERRUN);
      loss.set_count(5);
      loss.set_from_ns(*io.queue_ns);
      loss.set_to_ns(*io.queue_ns + 20 * kNanosPerMilli);
      RETURN_IF_ERROR(writer->WriteLoss(loss));
    }
    if (i == 100 && kind == "hostile") {
      proto::Mark mark;
      mark.set_kind(proto::SUSPEND);
      mark.set_at_ns(*io.queue_ns);
      mark.set_detail(names[0]);
      RETURN_IF_ERROR(writer->WriteMark(mark));
    }
  }
  return writer->Finish({});
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const blktape::Status status = blktape::Make(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_report_trace: %s\n", status.message().c_str());
  return 1;
}
