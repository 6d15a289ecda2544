// Makes traces of what the format can hold, likely or not (what a disk might see is made by
// tests/support/make_trace):
//   make_format_trace golden PATH        the trace that golden/v1.tape is
//   make_format_trace random SEED PATH   any records, marks among them
#include <cstdio>
#include <cstdlib>
#include <memory>
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

int Run(const std::vector<std::string>& words) {
  Status status(StatusCode::kInvalidArgument, "see the top of make_format_trace.cc");
  if (words.size() == 2 && words[0] == "golden") status = WriteGolden(words[1]);
  if (words.size() == 3 && words[0] == "random") {
    status = WriteRandom(std::stoull(words[1]), words[2]);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_format_trace: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace blktape

int main(int argc, char** argv) { return blktape::Run({argv + 1, argv + argc}); }
