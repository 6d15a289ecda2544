#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "replay/target/queue_setting.h"

namespace blktape {

// --set, of the verbs that work on targets.
void DeclareQueueSettings(Flags* flags, std::vector<std::string>* settings);
Result<std::vector<QueueSetting>> ParseQueueSettings(const std::vector<std::string>& settings);

// At the start of every verb that works on targets: undoes what a killed replay has left set, and
// says so on stderr.
void TellRestoredQueues();

// At their end: warns on stderr of settings that could not be put back.
void TellNotRestored(const std::vector<std::string>& settings);

}  // namespace blktape
