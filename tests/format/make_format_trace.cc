// Makes traces of what the format can hold, likely or not (what a disk might see is made by
// tests/support/make_trace):
//   make_format_trace golden PATH        the trace that golden/v1.tape is
//   make_format_trace random SEED PATH   any records, marks among them
//   make_format_trace escapes PATH       terminal escapes wherever a trace has text
//   make_format_trace newer PATH         a column that only a newer version knows
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace_writer.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

Status WriteRandom(uint64_t seed, const std::string& path) {
  std::mt19937_64 random(seed);
  TraceWriterOptions options;
  options.records_per_frame = 500;
  proto::Header header = TestHeader(3);
  header.mutable_devices(1)->set_name("a \"quoted\", name");
  ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(path, header, options));
  for (int i = 0; i < 2000; ++i) {
    IoRecord io = AnyRecord(&random, 3);
    if (io.process) io.process = writer->ProcessId("task," + std::to_string(*io.process % 50));
    RETURN_IF_ERROR(writer->Write(io));
    if (i % 300 == 299) RETURN_IF_ERROR(writer->WriteMark({}));
  }
  return writer->Finish({});
}

// ESC as itself and as the C1 character that some terminals take for it, BEL, and a line's end.
Status WriteEscapes(const std::string& path) {
  const std::string bad =
      "\x1b[31mred\x07\xc2\x9b"
      "1m\rx";
  proto::Header header = TestHeader(1);
  header.set_tool_version(bad);
  header.set_host(bad);
  header.set_command(bad);
  header.set_process_names(bad);
  header.set_timezone(bad);
  header.mutable_start()->set_wall_ns(1'000'000'000);
  header.add_filters(bad);
  header.mutable_devices(0)->set_name(bad);
  header.mutable_devices(0)->set_model(bad);
  ASSIGN_OR_RETURN(const auto writer, TraceWriter::Create(path, header));
  IoRecord io = Write4k(1000, 8);
  io.process = writer->ProcessId(bad);
  RETURN_IF_ERROR(writer->Write(io));
  proto::Loss loss;
  loss.set_reason(proto::DAMAGED_INPUT);
  loss.set_count(1);
  loss.set_from_bytes(1);
  loss.set_detail(bad);
  RETURN_IF_ERROR(writer->WriteLoss(loss));
  proto::Mark mark;
  mark.set_at_ns(INT64_MIN);
  mark.set_detail(bad);
  RETURN_IF_ERROR(writer->WriteMark(mark));
  return writer->Finish({});
}

Status WriteNewer(const std::string& path) {
  std::ofstream(path, std::ios::binary) << TraceOfANewerVersion();
  return OkStatus();
}

int Run(const std::vector<std::string>& words) {
  Status status(StatusCode::kInvalidArgument, "see the top of make_format_trace.cc");
  if (words.size() == 2 && words[0] == "golden") status = WriteGolden(words[1]);
  if (words.size() == 3 && words[0] == "random") {
    status = WriteRandom(std::stoull(words[1]), words[2]);
  }
  if (words.size() == 2 && words[0] == "escapes") status = WriteEscapes(words[1]);
  if (words.size() == 2 && words[0] == "newer") status = WriteNewer(words[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_format_trace: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) { return blktape::Run({argv + 1, argv + argc}); }
