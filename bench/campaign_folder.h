#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// What a campaign keeps beside its result traces, so that it goes on after ^C, a crash or a reboot
// without losing a run: `campaign.json` in its folder, replaced at once whenever it changes. That a
// run is finished is told by its result trace alone, which gets its name when it is whole.
struct CampaignState {
  // What is measured, in words: trace, target, rule as asked for. Only the same goes on.
  std::string question;
  std::string engine;  // of the first run, which all others go by; empty: none yet
  // Identity of the target that the first run or preparation was begun on: what lies there is ours.
  // Empty: none.
  std::string touched;
  std::vector<uint64_t> prepared;  // cycles before which the target was brought into its state
  bool unsteady = false;           // a preparation ended without a steady state
  bool finished = false;           // nothing is left to be done
};

// CampaignState::touched of the campaign in this folder; empty where there is none.
std::string TargetTouchedBy(const std::string& folder);

class CampaignFolder {
 public:
  // Makes the folder, or opens one in which the same campaign was not finished. kAlreadyExists: it
  // holds something else, a finished campaign or one of another question; the message says which.
  // `reopen`: a finished one of this question is opened, too. It is locked as long as the object
  // lives. kFailedPrecondition: another process is at work on it.
  static Result<CampaignFolder> Open(const std::string& path, const std::string& question,
                                     bool reopen = false);

  // Whether Open() would be refused. Makes nothing.
  static Status Check(const std::string& path, const std::string& question, bool reopen = false);

  const std::string& path() const { return path_; }
  bool resumed() const { return resumed_; }
  const CampaignState& state() const { return state_; }

  // Takes over the new state, once it is on disk.
  Status Save(const CampaignState& state);

  // Whether the result trace of this name is there and whole; one that is not is removed.
  // kFailedPrecondition: another process writes it.
  Result<bool> HasRun(const std::string& file) const;
  std::string PathOf(const std::string& file) const { return path_ + "/" + file; }

  // Of a campaign that Open() began: removes what it leaves that has not touched its target, and
  // the folder, if Open() made it and nothing else is in it. Else nothing.
  void Discard() const;

 private:
  CampaignFolder(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  UniqueFd lock_;
  CampaignState state_;
  bool made_ = false;
  bool resumed_ = false;
};

}  // namespace blktape
