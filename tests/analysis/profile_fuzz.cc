// Bytes as a trace that is looked at: profile, report as text and as JSON, the score's segments,
// and what `info` prints. The first byte chooses the window and the device.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "analysis/profile.h"
#include "analysis/profile_trace.h"
#include "analysis/segments.h"
#include "base/check.h"
#include "base/json.h"
#include "cli/info_text.h"
#include "cli/proto_json.h"
#include "cli/trace_info.h"
#include "format/io_record.h"
#include "format/trace_reader.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "tests/format/fuzz_trace.h"

namespace blktape {
namespace {

// A few bytes of a batch may hold very many records: such a trace is passed over.
constexpr uint64_t kEnough = 10'000;

std::string Dumped(const Json& json) { return JsonText(json); }

bool IsShort(const std::string& path) {
  const auto reader = TraceReader::Open(path);
  if (!reader.ok()) return true;
  IoRecord io;
  for (uint64_t records = 0; records < kEnough; ++records) {
    const Result<bool> more = (*reader)->Next(&io);
    if (!more.ok() || !*more) return true;
  }
  return false;
}

// The score's two passes: segments cover all records, in order.
void CheckSegments(const std::string& path) {
  ForegroundCounter counter;
  const auto first = TraceReader::Open(path);
  if (!first.ok()) return;
  BLKTAPE_CHECK(ForEachRecord(first->get(), [&](const IoRecord& io) { counter.Add(io); }).ok());
  if (counter.if_all() == 0) return;
  SegmentCutter cutter(counter);
  const auto second = TraceReader::Open(path);
  BLKTAPE_CHECK(second.ok());
  uint64_t records = 0;
  BLKTAPE_CHECK(
      ForEachRecord(second->get(), [&](const IoRecord& io) { cutter.Add(io, records++); }).ok());
  const Segmentation cut = cutter.Finish();
  BLKTAPE_CHECK(!cut.segments.empty());
  BLKTAPE_CHECK(cut.records == records);
  BLKTAPE_CHECK(cut.segments.front().first_ordinal == 0);
  BLKTAPE_CHECK(cut.segments.back().end_ordinal == records);
  for (size_t i = 1; i < cut.segments.size(); ++i) {
    BLKTAPE_CHECK(cut.segments[i].first_ordinal == cut.segments[i - 1].end_ordinal);
  }
}

void Run(uint8_t choice, std::string_view bytes) {
  const std::string path = PathInMemory(TraceFromBytes(bytes));
  if (!IsShort(path)) return;
  ProfileOptions options;
  if ((choice & 1) != 0) options.from_ns = choice;
  if ((choice & 2) != 0) options.to_ns = int64_t{1} << (choice >> 2) % 63;
  if ((choice & 4) != 0) options.device = choice >> 6;
  const Result<Profile> profile = ProfileTrace(path, options);
  if (profile.ok()) {
    BLKTAPE_CHECK(profile->busy_ns >= 0 && profile->idle_ns >= 0);
    BLKTAPE_CHECK(profile->data_requests <= profile->ios);
    (void)Dumped(ProfileJson(*profile));
    (void)ProfileText(*profile, "fuzz.tape", 3);
  }
  CheckSegments(path);
  const auto info = ReadTraceInfo(path);
  if (!info.ok()) return;
  for (const char c : InfoText(**info, 80)) {
    BLKTAPE_CHECK(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
  }
  (void)Dumped(ProtoJson((*info)->header));
  if ((*info)->summary) (void)Dumped(ProtoJson(*(*info)->summary));
}

}  // namespace
}  // namespace blktape

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  blktape::Run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
