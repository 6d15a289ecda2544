#include "bench/campaign_folder.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

constexpr char kStateFile[] = "campaign.json";
constexpr int kStateFormat = 1;

std::string StateText(const CampaignState& state) {
  const Json json = {{"format", kStateFormat},     {"question", state.question},
                     {"engine", state.engine},     {"touched", state.touched},
                     {"prepared", state.prepared}, {"unsteady", state.unsteady},
                     {"finished", state.finished}};
  return JsonText(json) + "\n";
}

Result<CampaignState> ParseState(const std::string& path, const std::string& text) {
  const Json json = ParseJson(text);
  try {
    if (json.at("format").get<int>() != kStateFormat) {
      return Status(StatusCode::kUnimplemented, path + ": is of another version of blktape");
    }
    return CampaignState{.question = json.at("question").get<std::string>(),
                         .engine = json.at("engine").get<std::string>(),
                         .touched = json.value("touched", std::string()),
                         .prepared = json.at("prepared").get<std::vector<uint64_t>>(),
                         .unsteady = json.at("unsteady").get<bool>(),
                         .finished = json.at("finished").get<bool>()};
  } catch (const Json::exception&) {
    return Status(StatusCode::kDataLoss, path + ": is no state of a campaign");
  }
}

// As another process would see the text: what is no UTF-8 is replaced when it is stored.
std::string AsStored(const std::string& text) { return ParseJson(JsonText(Json(text), kOneLine)); }

Status Taken(const std::string& folder, const std::string& what) {
  return Status(StatusCode::kAlreadyExists, folder + " " + what + "\n  try:  -o DIR, a new name");
}

}  // namespace

std::string TargetTouchedBy(const std::string& folder) {
  const std::string path = folder + "/" + kStateFile;
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return "";
  const Result<CampaignState> state = ParseState(path, *text);
  return state.ok() ? state->touched : "";
}

namespace {

// The state of the campaign that goes on in this folder; absent: nothing is in it.
Result<std::optional<CampaignState>> StateIn(const std::string& path, const std::string& question,
                                             bool reopen) {
  std::error_code error;
  const std::string state_path = path + "/" + kStateFile;
  const bool empty = std::filesystem::is_empty(path, error);
  if (error == std::errc::no_such_file_or_directory) return std::optional<CampaignState>();
  if (error) return ErrnoStatus(error.value(), path);
  if (!std::filesystem::is_directory(path, error))
    return Taken(path, "is there already, and no folder");
  if (empty) return std::optional<CampaignState>();
  if (!std::filesystem::exists(state_path, error)) {
    return Taken(path, "is there already and not empty");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(state_path));
  ASSIGN_OR_RETURN(CampaignState state, ParseState(state_path, text));
  const bool same = state.question == AsStored(question);
  if (state.finished && !(reopen && same)) return Taken(path, "holds a finished score");
  if (!same) {
    return Taken(path, "holds an unfinished score of something else:\n  there:  " + state.question +
                           "\n  here:   " + AsStored(question));
  }
  return std::optional(std::move(state));
}

}  // namespace

Status CampaignFolder::Check(const std::string& path, const std::string& question, bool reopen) {
  return StateIn(path, question, reopen).status();
}

Result<CampaignFolder> CampaignFolder::Open(const std::string& path, const std::string& question,
                                            bool reopen) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), path);
  ASSIGN_OR_RETURN(UniqueFd lock, LockFile(path));
  CampaignFolder folder(path, std::move(lock));
  folder.made_ = made;
  ASSIGN_OR_RETURN(std::optional<CampaignState> there, StateIn(path, question, reopen));
  if (there) {
    folder.state_ = *std::move(there);
    folder.resumed_ = true;
    return folder;
  }
  CampaignState state;
  state.question = AsStored(question);
  RETURN_IF_ERROR(folder.Save(state));
  return folder;
}

Status CampaignFolder::Save(const CampaignState& state) {
  RETURN_IF_ERROR(ReplaceFile(PathOf(kStateFile), StateText(state)));
  state_ = state;
  return OkStatus();
}

Result<bool> CampaignFolder::HasRun(const std::string& file) const {
  const std::string path = PathOf(file);
  std::error_code error;
  const std::string partial = path + ".partial";
  if (std::filesystem::exists(partial, error)) {
    // Locked as long as somebody writes it.
    ASSIGN_OR_RETURN(const UniqueFd lock, LockFile(partial));
    std::filesystem::remove(partial, error);
  }
  if (!std::filesystem::exists(path, error)) return false;
  const auto reader = TraceReader::Open(path);
  if (reader.ok()) {
    const std::optional<proto::Summary>& summary = (*reader)->summary();
    if (summary && summary->has_replay() && !summary->replay().stopped_early()) return true;
  }
  std::filesystem::remove(path, error);
  if (error) return ErrnoStatus(error.value(), path);
  return false;
}

void CampaignFolder::Discard() const {
  if (resumed_) return;
  std::error_code ignored;
  std::vector<std::filesystem::path> own;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool tape = name.ends_with(".tape") || name.ends_with(".tape.partial");
    if (tape && (name.starts_with("reference-") || name.starts_with("cycle-1-"))) {
      own.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& one : own) std::filesystem::remove(one, ignored);
  std::filesystem::remove(PathOf(kStateFile), ignored);
  if (made_) rmdir(path_.c_str());
}

}  // namespace blktape
