// Any bytes, in pieces of any size, as blktrace's binary output.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "capture/blktrace/blktrace_decoder.h"
#include "tests/capture/source/recording_sink.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = data[0] == 0 ? size : data[0];
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  blktape::RecordingSink sink;
  blktape::BlktraceDecoder decoder("fuzz", 0);
  decoder.ListenToMessages([](uint32_t /*pid*/, std::string_view text) {
    if (text.size() > 65535) std::abort();
  });
  for (size_t at = 0; at < bytes.size(); at += piece) {
    decoder.Decode(bytes.subspan(at, std::min(piece, bytes.size() - at)), &sink);
  }
  decoder.Finish(&sink);
  if (decoder.bytes() != bytes.size()) std::abort();
  return 0;
}
