#include "base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace blktape {
namespace {

// Bytes of the well-formed character that `text` begins with (Unicode 15, table 3-7); 0 if none.
size_t CharacterBytes(std::string_view text) {
  const auto at = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto continues = [&](size_t i) { return i < text.size() && (at(i) & 0xC0) == 0x80; };
  const uint8_t lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    if (lead == 0xE0 && at(1) < 0xA0) return 0;  // overlong
    if (lead == 0xED && at(1) > 0x9F) return 0;  // surrogates
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    if (lead == 0xF0 && at(1) < 0x90) return 0;  // overlong
    if (lead == 0xF4 && at(1) > 0x8F) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

std::string Printable(std::string_view text, bool lines) {
  const std::string clean = ToUtf8(text);
  std::string printable;
  printable.reserve(clean.size());
  for (size_t i = 0; i < clean.size(); ++i) {
    const auto byte = static_cast<uint8_t>(clean[i]);
    if (lines && byte == '\n') {
      printable += '\n';
    } else if (byte < 0x20 || byte == 0x7F) {
      printable += '?';
    } else if (byte == 0xC2 && static_cast<uint8_t>(clean[i + 1]) < 0xA0) {
      // U+0080 to U+009F, the other set of control characters, is C2 80 to C2 9F.
      printable += '?';
      ++i;
    } else {
      printable += clean[i];
    }
  }
  return printable;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string ToUtf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      clean += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      clean += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return clean;
}

std::string ToPrintable(std::string_view text) { return Printable(text, /*lines=*/false); }

std::string ToPrintableLines(std::string_view text) { return Printable(text, /*lines=*/true); }

}  // namespace blktape
