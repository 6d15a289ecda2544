#include "cli/print.h"

#include <string>

#include "base/utf8.h"

namespace blktape {

void Print(FILE* to, std::string_view text) {
  const std::string plain = ToPrintableLines(text);
  std::fwrite(plain.data(), 1, plain.size(), to);
}

}  // namespace blktape
