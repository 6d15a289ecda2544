#include "replay/prepare/prepare_journal.h"

#include "base/file.h"
#include "base/json.h"

namespace blktape {

Result<PrepareJournal> LoadPrepareJournal(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Json json = ParseJson(text);
  const auto wrong = [&path] {
    return Status(StatusCode::kDataLoss, path + ": is no journal of a preparation");
  };
  if (!json.is_object() || !json.contains("target") || !json["target"].is_string() ||
      !json.contains("phase") || !json["phase"].is_string() || !json.contains("done_bytes") ||
      !json["done_bytes"].is_number_unsigned() || !json.contains("rounds_iops") ||
      !json["rounds_iops"].is_array()) {
    return wrong();
  }
  PrepareJournal journal{.target = json["target"],
                         .phase = json["phase"],
                         .done_bytes = json["done_bytes"],
                         .rounds_iops = {}};
  for (const Json& round : json["rounds_iops"]) {
    if (!round.is_number()) return wrong();
    journal.rounds_iops.push_back(round);
  }
  return journal;
}

Status SavePrepareJournal(const std::string& path, const PrepareJournal& journal) {
  const Json json = {{"target", journal.target},
                     {"phase", journal.phase},
                     {"done_bytes", journal.done_bytes},
                     {"rounds_iops", journal.rounds_iops}};
  const std::string text = JsonText(json) + "\n";
  return ReplaceFile(path, text);
}

}  // namespace blktape
