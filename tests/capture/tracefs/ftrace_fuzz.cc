// Any bytes as a ring-buffer page, read with the formats of one kernel; or as a format text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "capture/tracefs/ftrace_page_decoder.h"
#include "tests/capture/source/recording_sink.h"

namespace {

constexpr char kHeaderPage[] =
    "field: u64 timestamp; offset:0; size:8; signed:0;\n"
    "field: local_t commit; offset:8; size:8; signed:1;\n"
    "field: char data; offset:16; size:4080; signed:0;\n";
constexpr char kComplete[] =
    "name: block_rq_complete\nID: 7\n"
    "field:unsigned short common_type; offset:0; size:2; signed:0;\n"
    "field:int common_pid; offset:4; size:4; signed:1;\n"
    "field:dev_t dev; offset:8; size:4; signed:0;\n"
    "field:sector_t sector; offset:16; size:8; signed:0;\n"
    "field:unsigned int nr_sector; offset:24; size:4; signed:0;\n"
    "field:int error; offset:28; size:4; signed:1;\n"
    "field:char rwbs[10]; offset:34; size:10; signed:0;\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  blktape::RecordingSink sink;
  if (data[0] % 4 == 0) {
    auto formats = blktape::FtraceFormats::Create(data[0] == 0 ? text : kHeaderPage);
    if (formats.ok()) (void)formats->AddEvent(text);
    return 0;
  }
  auto formats = blktape::FtraceFormats::Create(kHeaderPage);
  if (!formats.ok() || !formats->AddEvent(kComplete).ok()) std::abort();
  blktape::FtracePageDecoder decoder(&*formats, 0);
  decoder.DecodePage(std::as_bytes(std::span(text)), &sink);
  return 0;
}
