#include "cli/queue_flags.h"

#include <cstdio>
#include <utility>

#include "replay/target/queue_settings.h"

namespace blktape {

void DeclareQueueSettings(Flags* flags, std::vector<std::string>* settings) {
  flags->TextList("--set", settings,
                  "Queue setting of the target's disk during the run: scheduler=none, nomerges=2, "
                  "read_ahead_kb=0; restored at the end",
                  "S=VALUE");
}

Result<std::vector<QueueSetting>> ParseQueueSettings(const std::vector<std::string>& settings) {
  std::vector<QueueSetting> parsed;
  for (const std::string& text : settings) {
    ASSIGN_OR_RETURN(QueueSetting setting, ParseQueueSetting(text));
    parsed.push_back(std::move(setting));
  }
  return parsed;
}

void TellRestoredQueues() {
  for (const std::string& note : RestoreLeftQueueSettings()) {
    std::fprintf(stderr, "note: %s\n", note.c_str());
  }
}

void TellNotRestored(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    std::fprintf(stderr, "warning: queue setting not restored: %s\n", setting.c_str());
  }
}

}  // namespace blktape
