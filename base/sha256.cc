#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <memory>
#include <vector>

#include "base/check.h"

namespace blktape {

Result<std::string> Sha256Hex(ByteSource* source) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  BLKTAPE_CHECK(context != nullptr);
  BLKTAPE_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  std::vector<std::byte> buffer(1 << 16);
  while (true) {
    ASSIGN_OR_RETURN(const size_t count, source->Read(buffer));
    if (count == 0) break;
    BLKTAPE_CHECK(EVP_DigestUpdate(context.get(), buffer.data(), count) == 1);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  BLKTAPE_CHECK(EVP_DigestFinal_ex(context.get(), digest, &size) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace blktape
