#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/drive_comparison.h"
#include "analysis/measured_score.h"
#include "base/json.h"
#include "report/page.h"
#include "report/text_table.h"

namespace blktape {

// The words and figures that scores and comparisons of scores, of suites and of corners share.

inline constexpr size_t kLabelColumns = 32;  // of a drive's name on a terminal

// A drive's label in a sentence: strong, and anybody's text.
Sentence::Words DriveName(const std::string& label);
// "8.44": how many times as fast.
std::string TimesDigits(double ratio);
// "2130", "273": a whole number from 1000 on, three digits below, so that slow drives keep theirs;
// "none" where there is none.
std::string ScoreDigits(const std::optional<double>& score);
// "2080 to 2180"; "none" where there is none.
std::string IntervalText(const std::optional<double>& low, const std::optional<double>& high);
// Name of the trace, and which piece of it.
std::string TraceOf(const MeasuredScore& score);
// "A is 1.42 (1.36 to 1.49) times as fast as B for this work.", or that they tie. `scope`: for
// what, with a space before it.
Sentence FasterSentence(const Sentence::Words& first, const Sentence::Words& second,
                        const Comparison& told, const std::vector<Sentence::Words>& scope);
// Why there is no verdict on two scores: the end of a sentence, without its full stop.
const char* ObstacleText(Obstacle obstacle);
// "other_rule", ...: the keys of JSON, which stay.
const char* ObstacleKey(Obstacle obstacle);

// A sentence without its looks; foreign words are cut to so many columns, and safe on a terminal
// then. 0: as they are.
std::string FlatText(const Sentence& sentence, size_t most_columns);
// Each sentence on lines of its own, for a terminal.
std::string SentenceLines(const std::vector<Sentence>& sentences, const TextLook& look);
// Each as a paragraph of Markdown.
std::string SentencesMarkdown(const std::vector<Sentence>& sentences);
// [{"text", "bad"}].
Json SentencesJson(const std::vector<Sentence>& sentences);

// A pair's verdict, obstacle and ratio. `told`: there is a verdict; `ratio`: there is a ratio.
Json PairJson(size_t first, size_t second, Obstacle obstacle, const Comparison& comparison,
              bool ratio);

}  // namespace blktape
