#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "analysis/score_report.h"
#include "base/clock.h"
#include "base/status.h"
#include "bench/campaign.h"
#include "bench/piece.h"
#include "cli/command.h"
#include "cli/progress_line.h"
#include "cli/target_consent.h"
#include "cli/time_left.h"

namespace blktape {

// What the verbs that score drives share: flags of the rule, consent, progress, the report's files.

struct ScoreFlags {
  CampaignOptions campaign;
  std::vector<std::string> settings;
  int64_t idle_cap_ns = kDefaultIdleCapNs;
  int64_t budget_ns = 0;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  std::string prepare = "once";
  bool no_idle_cap = false;
  bool create = false;
  bool yes = false;
};

// All flags that decide how a drive is measured, and --overwrite, --yes, --create.
void DeclareScoreFlags(Flags* flags, ScoreFlags* options);
// After parsing: into `options->campaign`. kInvalidArgument where they contradict one another.
Status TakeScoreFlags(const Flags& given, ScoreFlags* options);

// "sim:reference, sim:nvme-2026, ...": all simulated drives, for a help.
std::string SimulatedTargets();

bool IsSimulatedTarget(const std::string& target_path);

// Opens the targets, which may refuse, and asks about all of them, once. What a target or one of
// the traces forbids is said before anything is left behind. Returns their identities, by path.
// What lies on a file was put there by us where one of the campaigns in `folders` has begun on it.
// `made`: the files that had to be made, which the caller keeps once a run has begun on one.
Result<std::map<std::string, std::string>> AgreeOnTargets(const ScoreFlags& options,
                                                          const std::vector<TracePiece>& traces,
                                                          const std::vector<std::string>& targets,
                                                          const std::vector<std::string>& folders,
                                                          const std::atomic<bool>& stop,
                                                          MadeFiles* made);

// What campaigns tell on stderr while they run. Thread-safe; must outlive them.
class CampaignProgress {
 public:
  explicit CampaignProgress(Clock* clock = Clock::Monotonic()) : clock_(clock), line_(clock) {}
  // `prefix` stands before each line, for instance the target's name.
  CampaignEvents EventsOf(const CampaignOptions& campaign, const std::string& prefix);
  // Those of replay/. Before the first run on a real target they look at the host, for 2 s, and
  // tell what it can judge.
  CampaignTools Tools();
  // That sentence; empty: nobody looked. After the campaigns.
  const std::string& host() const { return host_; }
  void Clear() { line_.Clear(); }

 private:
  void Say(const std::string& text);
  void Show(const std::string& text);
  std::string Left();

  Clock* const clock_;
  std::mutex mutex_;
  ProgressLine line_;
  TimeLeft left_;
  size_t campaigns_ = 0;
  std::once_flag looked_;
  Status look_;
  std::string host_;
};

// What was said of the host when the runs were made stays, where a report in `folder` is told once
// more and no run was made.
void TakeHostOfBefore(const std::string& folder, ScoreReport* report);

// Writes report.txt and report.json into `folder`.
Status WriteScoreReport(const ScoreReport& report, const std::string& folder);
// The text of report.json.
std::string ScoreJsonText(const ScoreReport& report);

// Warns of queue settings that were not put back; false if there are any.
bool TellSettingsOf(const ScoreReport& report);

}  // namespace blktape
