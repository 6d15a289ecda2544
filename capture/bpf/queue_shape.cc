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

// 0 if it is not there.
uint32_t Number(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  return text.ok() ? static_cast<uint32_t>(std::strtoul(text->c_str(), nullptr, 10)) : 0;
}

}  // namespace

QueueShape ReadQueueShape(const std::string& folder) {
  QueueShape shape;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/mq", error)) {
    const uint32_t number =
        static_cast<uint32_t>(std::strtoul(entry.path().filename().c_str(), nullptr, 10));
    shape.queues = std::max(shape.queues, number + 1);
    const std::string queue = entry.path().string();
    shape.tags =
        std::max(shape.tags, Number(queue + "/nr_tags") + Number(queue + "/nr_reserved_tags"));
  }
  if (shape.queues > 0) {
    shape.tags = std::max({shape.tags, Number(folder + "/queue/nr_requests"), kLeastTags});
  }
  return shape;
}

}  // namespace blktape
