#pragma once

#include <string>
#include <vector>

#include "analysis/score_report.h"
#include "base/json.h"

namespace blktape {

// The JSON of `blktape score --json` and of report.json; keys are defined in docs/score.md and
// stay.
Json ScoreJson(const ScoreReport& report);
// What a reader must know of the targets before believing the score, see TargetNotes().
std::vector<std::string> ScoreNotes(const ScoreReport& report);
// Below 80 columns. An invalid score is never shown without saying so.
std::string ScoreText(const ScoreReport& report);

}  // namespace blktape
