#include "replay/engine/poll_limits.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/file.h"
#include "base/units.h"
#include "format/trace.pb.h"

namespace blktape {
namespace {

constexpr uint64_t kPageBytes = 4096;

std::optional<uint64_t> Number(const std::string& path) {
  const Result<std::string> text = ReadAttribute(path);
  if (!text.ok()) return std::nullopt;
  uint64_t value = 0;
  const char* const end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

}  // namespace

bool PollLimits::Polls(uint64_t offset_bytes, uint64_t bytes) const {
  if (bytes > max_bytes) return false;
  if (chunk_bytes == 0 || bytes == 0) return true;
  const uint64_t first = begin_bytes + offset_bytes;
  return first / chunk_bytes == (first + bytes - 1) / chunk_bytes;
}

PollLimits ReadPollLimits(const std::string& sys_folder) {
  PollLimits limits;
  // A partition has no queue of its own.
  const bool whole = Number(sys_folder + "/queue/io_poll").has_value();
  const std::string queue = sys_folder + (whole ? "/queue/" : "/../queue/");
  limits.has_queues = Number(queue + "io_poll") != 0;
  if (const auto kb = Number(queue + "max_sectors_kb")) limits.max_bytes = *kb * 1024;
  // Each page may be a separate segment.
  if (const auto segments = Number(queue + "max_segments")) {
    limits.max_bytes = std::min(limits.max_bytes, *segments * kPageBytes);
  }
  limits.chunk_bytes = Number(queue + "chunk_sectors").value_or(0) * kSectorBytes;
  limits.begin_bytes = Number(sys_folder + "/start").value_or(0) * kSectorBytes;
  return limits;
}

PollLimits PollLimitsOf(const Target& target) {
  if (!target.is_block_device()) return {};
  const proto::Device& device = target.description();
  return ReadPollLimits("/sys/dev/block/" + std::to_string(device.major()) + ":" +
                        std::to_string(device.minor()));
}

}  // namespace blktape
