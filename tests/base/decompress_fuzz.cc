// Any bytes as a compressed file, and what comes out as a tar archive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "base/decompress.h"
#include "base/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace blktape;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A few bytes may stand for many: so much is enough.
  constexpr size_t kMostBytes = size_t{4} << 20;
  std::string content;
  auto source = Decompressed(std::make_unique<MemorySource>(bytes));
  if (!source.ok()) return 0;
  std::vector<std::byte> buffer(4096);
  while (content.size() < kMostBytes) {
    const Result<size_t> got = (*source)->Read(buffer);
    if (!got.ok() || *got == 0) break;
    if (*got > buffer.size()) std::abort();
    content.append(reinterpret_cast<const char*>(buffer.data()), *got);
  }
  if (!(*source)->Seek(0).ok()) std::abort();

  (void)LooksLikeTar(std::as_bytes(std::span(content)));
  MemorySource archive(content);
  TarReader tar(&archive);
  uint64_t read = 0;
  while (true) {
    const Result<bool> more = tar.Next();
    if (!more.ok() || !*more) break;
    uint64_t member = 0;
    while (true) {
      const Result<size_t> got = tar.Read(buffer);
      if (!got.ok() || *got == 0) break;
      member += *got;
    }
    if (member > tar.member_bytes()) std::abort();
    read += member;
  }
  if (read > content.size()) std::abort();
  return 0;
}
