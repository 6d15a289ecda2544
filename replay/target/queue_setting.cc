#include "replay/target/queue_setting.h"

#include <algorithm>

namespace blktape {
namespace {

bool IsWord(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

bool IsNumber(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= 9 && std::all_of(text.begin(), text.end(), digit) &&
         (text.size() == 1 || text[0] != '0');
}

}  // namespace

Result<QueueSetting> ParseQueueSetting(std::string_view text) {
  const auto invalid = [](const std::string& why) {
    return Status(StatusCode::kInvalidArgument, why);
  };
  const size_t equals = text.find('=');
  QueueSetting setting{.name = std::string(text.substr(0, equals)), .value = {}};
  if (equals != std::string_view::npos) setting.value = text.substr(equals + 1);
  if (setting.name == "scheduler") {
    if (IsWord(setting.value)) return setting;
    return invalid("scheduler wants a name, as in scheduler=none");
  }
  if (setting.name == "nomerges") {
    if (setting.value == "0" || setting.value == "1" || setting.value == "2") return setting;
    return invalid("nomerges is 0 (merge), 1 (only the cheap merges) or 2 (none), not \"" +
                   setting.value + "\"");
  }
  if (setting.name == "read_ahead_kb") {
    if (IsNumber(setting.value)) return setting;
    return invalid("read_ahead_kb wants a number of KiB, as in read_ahead_kb=0");
  }
  return invalid("\"" + std::string(text) +
                 "\" is no queue setting\n  try:  scheduler=NAME, nomerges=0..2, read_ahead_kb=N");
}

}  // namespace blktape
