#include "capture/import/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/units.h"
#include "capture/source/rwbs.h"
#include "format/io_names.h"

namespace blktape {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Beside the names of io_record.h.
constexpr std::array<std::pair<std::string_view, Op>, 9> kOps = {{{"r", Op::kRead},
                                                                  {"w", Op::kWrite},
                                                                  {"d", Op::kDiscard},
                                                                  {"trim", Op::kDiscard},
                                                                  {"unmap", Op::kDiscard},
                                                                  {"f", Op::kFlush},
                                                                  {"sync", Op::kFlush},
                                                                  {"fsync", Op::kFlush},
                                                                  {"datasync", Op::kFlush}}};

}  // namespace

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  text = Trim(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> ParseHex(std::string_view text) {
  text = Trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseDecimal(std::string_view text, int digits, char point) {
  text = Trim(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  if (text.find_first_of("eE") != std::string_view::npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    value *= std::pow(10.0, digits);
    if (!(std::abs(value) < 9e18)) return std::nullopt;
    const int64_t scaled = std::llround(value);
    return negative ? -scaled : scaled;
  }
  int64_t value = 0;
  size_t at = 0;
  bool any = false;
  const auto push = [&value](int digit) {
    return !__builtin_mul_overflow(value, int64_t{10}, &value) &&
           !__builtin_add_overflow(value, int64_t{digit}, &value);
  };
  for (; at < text.size() && IsDigit(text[at]); ++at, any = true) {
    if (!push(text[at] - '0')) return std::nullopt;
  }
  int places = 0;
  bool up = false;
  if (at < text.size() && text[at] == point) {
    for (++at; at < text.size() && IsDigit(text[at]); ++at, any = true) {
      if (places < digits) {
        if (!push(text[at] - '0')) return std::nullopt;
        ++places;
      } else if (places == digits) {
        up = text[at] >= '5';
        ++places;  // what follows the first further digit does not matter
      }
    }
  }
  if (!any || at != text.size()) return std::nullopt;
  for (; places < digits; ++places) {
    if (!push(0)) return std::nullopt;
  }
  if (up && __builtin_add_overflow(value, int64_t{1}, &value)) return std::nullopt;
  return negative ? -value : value;
}

void SplitFields(std::string_view line, char separator, std::vector<std::string_view>* fields) {
  fields->clear();
  size_t at = 0;
  if (separator == ' ') {
    while (true) {
      while (at < line.size() && IsBlank(line[at])) ++at;
      if (at == line.size()) return;
      const size_t begin = at;
      while (at < line.size() && !IsBlank(line[at])) ++at;
      fields->push_back(line.substr(begin, at - begin));
    }
  }
  while (true) {
    if (at < line.size() && line[at] == '"') {
      size_t end = at + 1;
      while (end < line.size() &&
             (line[end] != '"' || (end + 1 < line.size() && line[end + 1] == '"'))) {
        end += line[end] == '"' ? 2 : 1;
      }
      fields->push_back(line.substr(at + 1, std::min(end, line.size()) - at - 1));
      at = std::min(line.find(separator, std::min(end, line.size())), line.size());
    } else {
      const size_t end = std::min(line.find(separator, at), line.size());
      fields->push_back(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) return;
    ++at;
  }
}

std::optional<OpWord> ParseOp(std::string_view text) {
  text = Trim(text);
  if (text.empty() || text.size() > 16) return std::nullopt;
  const std::string lower = Lower(text);
  for (const auto& [word, op] : kOps) {
    if (lower == word) return OpWord{op, 0};
  }
  if (const std::optional<Op> op = OpByName(lower)) return OpWord{*op, 0};
  if (text.size() > 8 || text.find_first_not_of("RWDNFASMUEZ") != std::string_view::npos) {
    return std::nullopt;
  }
  const Rwbs rwbs = ParseRwbs(text);
  if (rwbs.none) return std::nullopt;
  return OpWord{rwbs.op, rwbs.flags};
}

// SPC-4, SBC-3: operation codes.
std::optional<OpWord> ScsiOp(uint32_t command) {
  switch (command) {
    case 0x08:
    case 0x28:
    case 0xa8:
    case 0x88:
      return OpWord{Op::kRead, 0};
    case 0x0a:
    case 0x2a:
    case 0xaa:
    case 0x8a:
      return OpWord{Op::kWrite, 0};
    case 0x35:
    case 0x91:
      return OpWord{Op::kFlush, 0};
    default:
      return std::nullopt;
  }
}

bool SetAddress(uint64_t offset_bytes, IoRecord* io) {
  io->lba = Lba(offset_bytes / kSectorBytes);
  return offset_bytes % kSectorBytes == 0;
}

void NormalizeFlushRecord(IoRecord* io) {
  if (io->op == Op::kWrite && io->bytes == 0 && (io->flags & kFlagPreflush) != 0) {
    io->op = Op::kFlush;
  }
  if (io->op != Op::kFlush) return;
  io->flags &= ~kFlagPreflush;
  io->lba.reset();
  io->bytes = 0;
}

std::vector<std::string_view> WholeLines(std::string_view head) {
  std::vector<std::string_view> lines;
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  while (!head.empty()) {
    const size_t end = head.find('\n');
    if (end == std::string_view::npos) break;
    std::string_view line = head.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    head.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace blktape
