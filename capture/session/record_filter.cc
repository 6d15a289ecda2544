#include "capture/session/record_filter.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace blktape {
namespace {

std::optional<uint64_t> Sector(std::string_view text) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Op> OpNamed(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i) {
    if (name == OpName(static_cast<Op>(i))) return static_cast<Op>(i);
  }
  return std::nullopt;
}

}  // namespace

Status RecordFilter::AddOps(std::string_view names) {
  while (true) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const std::optional<Op> op = OpNamed(name);
    if (!op) {
      std::string message = "there is no operation \"" + std::string(name) + "\"\n  one of:";
      for (int i = 0; i < kOpCount; ++i) {
        message += std::string(" ") + OpName(static_cast<Op>(i));
      }
      return Status(StatusCode::kInvalidArgument, message);
    }
    ops_.push_back(*op);
    if (comma == std::string_view::npos) return OkStatus();
    names.remove_prefix(comma + 1);
  }
}

Status RecordFilter::AddRange(std::string_view range) {
  const size_t dash = range.find('-');
  Status wrong(
      StatusCode::kInvalidArgument,
      "\"" + std::string(range) + "\" is no range of sectors: FIRST-LAST or FIRST-, in 512 bytes");
  if (dash == std::string_view::npos) return wrong;
  const std::optional<uint64_t> first = Sector(range.substr(0, dash));
  const std::string_view rest = range.substr(dash + 1);
  const std::optional<uint64_t> last =
      rest.empty() ? std::numeric_limits<uint64_t>::max() : Sector(rest);
  if (!first || !last || *last < *first) return wrong;
  ranges_.push_back({Lba(*first), Lba(*last), std::string(range)});
  return OkStatus();
}

bool RecordFilter::Keeps(const IoRecord& record) const {
  if (!ops_.empty() && std::find(ops_.begin(), ops_.end(), record.op) == ops_.end()) return false;
  // A flush has no place; a choice of places does not leave it out.
  if (ranges_.empty() || !record.lba) return true;
  const uint64_t first = record.lba->sectors;
  const uint64_t count = std::max<uint64_t>((record.bytes + kSectorBytes - 1) / kSectorBytes, 1);
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return first <= range.last.sectors && first + (count - 1) >= range.first.sectors;
  });
}

bool RecordFilter::MayKeep(const proto::FrameContents& contents) const {
  uint32_t ops = 0;
  for (const Op op : ops_) ops |= 1u << static_cast<uint32_t>(op);
  if (ops_.empty()) ops = ~ops;
  if ((contents.ops() & ops) == 0) return false;
  if (ranges_.empty() || (contents.ops_without_address() & ops) != 0) return true;
  const uint64_t begin = contents.begin_lba();
  const uint64_t end = contents.end_lba();
  const bool to_the_last = end == std::numeric_limits<uint64_t>::max();
  return std::ranges::any_of(ranges_, [&](const Range& range) {
    return begin <= range.last.sectors && (to_the_last || end > range.first.sectors);
  });
}

std::vector<std::string> RecordFilter::Words() const {
  std::vector<std::string> words;
  for (const Op op : ops_) words.push_back(std::string("op=") + OpName(op));
  for (const Range& range : ranges_) words.push_back("lba=" + range.text);
  return words;
}

}  // namespace blktape
