#include "capture/import/event_line.h"

#include <algorithm>

#include "base/kernel_dev.h"
#include "base/units.h"
#include "capture/import/fields.h"
#include "capture/source/rwbs.h"

namespace blktape {

std::optional<uint32_t> ParseDevNumbers(std::string_view text) {
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto major = ParseUnsigned(text.substr(0, comma));
  const auto minor = ParseUnsigned(text.substr(comma + 1));
  if (!major || !minor || *major >= 4096 || *minor >= (1u << 20)) return std::nullopt;
  return KernelDev(static_cast<uint32_t>(*major), static_cast<uint32_t>(*minor));
}

bool SetOpByLetters(std::string_view rwbs, BlockEvent* event) {
  if (rwbs.empty() || rwbs.size() > 8 ||
      rwbs.find_first_not_of("RWDNFASMUEZ") != std::string_view::npos) {
    return false;
  }
  const Rwbs parsed = ParseRwbs(rwbs);
  event->op = parsed.op;
  event->flags = parsed.flags;
  if (parsed.none) {
    // Without data: a flush where PREFLUSH stands before it, else the end of one ("NS"). With data:
    // write zeroes, on kernels that do not name them.
    event->op = event->bytes > 0                      ? Op::kWriteZeroes
                : (parsed.flags & kFlagPreflush) != 0 ? Op::kFlush
                                                      : Op::kRead;
  }
  return true;
}

std::string_view TakeWord(std::string_view* rest) {
  *rest = Trim(*rest);
  const size_t end = std::min(rest->find_first_of(" \t"), rest->size());
  const std::string_view word = rest->substr(0, end);
  rest->remove_prefix(end);
  return word;
}

std::string_view TakeBrackets(std::string_view* line) {
  *line = Trim(*line);
  if (!line->ends_with(']')) return {};
  const size_t begin = line->rfind('[');
  if (begin == std::string_view::npos) return {};
  const std::string_view inside = line->substr(begin + 1, line->size() - begin - 2);
  *line = line->substr(0, begin);
  return inside;
}

void SetComm(std::string_view name, BlockEvent* event) {
  event->comm = {};
  if (name == "(null)") return;
  std::copy_n(name.begin(), std::min(name.size(), event->comm.size() - 1), event->comm.begin());
}

bool TakeExtent(std::string_view* rest, BlockEvent* event) {
  const std::string_view word = TakeWord(rest);
  if (word.empty()) return true;
  const auto sector = ParseUnsigned(word);
  if (!sector) return false;
  event->lba = Lba(*sector == ~uint64_t{0} ? 0 : *sector);
  std::string_view ahead = *rest;
  if (TakeWord(&ahead) != "+") return true;
  const auto sectors = ParseUnsigned(TakeWord(&ahead));
  if (!sectors || *sectors > UINT64_MAX / kSectorBytes) return false;
  event->bytes = *sectors * kSectorBytes;
  *rest = ahead;
  return true;
}

}  // namespace blktape
