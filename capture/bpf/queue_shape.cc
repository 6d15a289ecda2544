#include "capture/bpf/queue_shape.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/status.h"

namespace blktape {
namespace {

// The queue's depth can be raised while we record.
constexpr uint32_t kLeastTags = 256;

}  // namespace

QueueShape ReadQueueShape(const std::string& folder) {
  QueueShape shape;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/mq", error)) {
    const uint32_t number =
        static_cast<uint32_t>(std::strtoul(entry.path().filename().c_str(), nullptr, 10));
    shape.queues = std::max(shape.queues, number + 1);
    uint32_t tags = 0;
    for (const char* name : {"/nr_tags", "/nr_reserved_tags"}) {
      const Result<std::string> text = ReadFile(entry.path().string() + name);
      if (text.ok()) tags += static_cast<uint32_t>(std::strtoul(text->c_str(), nullptr, 10));
    }
    shape.tags = std::max(shape.tags, tags);
  }
  if (shape.queues > 0) shape.tags = std::max(shape.tags, kLeastTags);
  return shape;
}

}  // namespace blktape
