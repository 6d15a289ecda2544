// Bytes as a trace. The first byte chooses: the bytes are the file as they are; or the content of
// frames whose checksums hold (a checksum would hide everything behind it from a fuzzer).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_stream.h"
#include "base/check.h"
#include "tests/format/fuzz_trace.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

// Hostile batches may hold very many records in few bytes.
constexpr size_t kEnough = 100'000;

struct Told {
  bool opened = false;
  uint64_t records = 0;
  uint64_t hash = 0;
  uint64_t lost_events = 0;
  bool operator==(const Told&) const = default;
};

Told Read(std::unique_ptr<ByteSource> source) {
  Told told;
  Observed observed;
  const auto opened = TraceReader::FromSource(std::move(source), &observed);
  if (!opened.ok()) return told;
  told.opened = true;
  TraceReader& reader = **opened;
  IoRecord io;
  while (told.records < kEnough) {
    const Result<bool> more = reader.Next(&io);
    BLKTAPE_CHECK(more.ok());  // memory does not fail to read
    if (!*more) break;
    BLKTAPE_CHECK(io.device < static_cast<uint32_t>(reader.header().devices_size()));
    BLKTAPE_CHECK(static_cast<int>(io.op) < kOpCount);
    if (io.process) (void)reader.ProcessName(*io.process);
    ++told.records;
    told.hash = told.hash * 31 + io.bytes + (io.lba ? io.lba->sectors : 7);
  }
  // The end is never reached in silence without a summary.
  if (told.records < kEnough && !reader.summary()) BLKTAPE_CHECK(!observed.losses.empty());
  told.lost_events = reader.lost_events();
  // Whatever the summary says of its frames, there is an end.
  reader.SkipFramesUnless(
      [](const proto::FrameContents& contents) { return contents.most_bytes() % 2 == 0; },
      static_cast<int64_t>(told.hash));
  if (reader.SkipTo(static_cast<int64_t>(told.hash)).ok()) {
    for (uint64_t i = 0; i < kEnough; ++i) {
      const Result<bool> more = reader.Next(&io);
      BLKTAPE_CHECK(more.ok());
      if (!*more) break;
    }
  }
  return told;
}

}  // namespace
}  // namespace blktape

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace blktape;  // NOLINT
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string trace = data[0] % 3 == 0   ? std::string(rest)
                            : data[0] % 3 == 1 ? FramesFromBytes(rest, /*with_header=*/true)
                                               : FramesFromBytes(rest, /*with_header=*/false);
  const Told whole = Read(std::make_unique<MemorySource>(trace));
  const Told piped = Read(std::make_unique<DripSource>(trace, 1 + data[0]));
  // A pipe cannot be searched for a copy of a damaged header.
  BLKTAPE_CHECK(whole == piped || !piped.opened);
  return 0;
}
