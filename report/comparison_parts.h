#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "report/page.h"

namespace blktape {

// What text and page of a comparison share, and the parts of the page. Inside
// report/comparison_*.cc.

// How a drive is called in figures: an invalid one as such.
std::string LabelOf(const ComparedDrive& drive);
// One row a drive, the whole of it for programs.
DataTable DrivesTable(const DriveComparison& all);
DataTable PairsTable(const DriveComparison& all);

// What a reader must know of each drive before believing its score: its label, and a sentence
// without a full stop.
std::vector<std::pair<std::string, std::string>> NotesOf(const DriveComparison& all);

// ComparisonVerdict, but of each pair only if `quotes` says so.
std::vector<Sentence> VerdictFor(const DriveComparison& comparison,
                                 const std::function<bool(const DrivePair&)>& quotes);

// The drives in the order in which a reader wants them: by place, those without one by score, the
// invalid ones last.
std::vector<size_t> ByPlace(const DriveComparison& all);

// Each adds its tables, and a section where there is something to show.
void AddScores(const DriveComparison& all, Page* page);      // comparison_page.cc
void AddStates(const DriveComparison& all, Page* page);      // comparison_states.cc
void AddWhere(const DriveComparison& all, Page* page);       // comparison_where.cc
void AddResponses(const DriveComparison& all, Page* page);   // comparison_responses.cc
void AddOverTime(const DriveComparison& all, Page* page);    // comparison_over_time.cc
void AddConditions(const DriveComparison& all, Page* page);  // comparison_conditions.cc
void AddRuns(const DriveComparison& all, Page* page);        // comparison_runs.cc
void AddLeftOut(const DriveComparison& all, Page* page);     // comparison_left_out.cc

}  // namespace blktape
