#include "report/comparison_words.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"
#include "base/text_layout.h"
#include "report/markdown.h"

namespace blktape {

Sentence::Words DriveName(const std::string& label) { return {label, true, true}; }

std::string TimesDigits(double ratio) { return fmt::format("{:.2f}", ratio); }

std::string ScoreDigits(const std::optional<double>& score) {
  if (!score) return "none";
  // Three digits of 999.6 are 1,000 to FormatNumber.
  return *score >= 999.5 ? fmt::format("{:.0f}", *score) : FormatNumber(*score);
}

std::string IntervalText(const std::optional<double>& low, const std::optional<double>& high) {
  if (!low || !high) return "none";
  return ScoreDigits(low) + " to " + ScoreDigits(high);
}

std::string TraceOf(const MeasuredScore& score) {
  return score.piece.empty() ? score.trace : score.trace + ", " + score.piece;
}

Sentence FasterSentence(const Sentence::Words& first, const Sentence::Words& second,
                        const Comparison& told, const std::vector<Sentence::Words>& scope) {
  const std::string times = TimesDigits(told.ratio) + " (" + TimesDigits(told.ratio_low) + " to " +
                            TimesDigits(told.ratio_high) + ") times";
  const bool tie = told.verdict == Verdict::kTie;
  Sentence sentence;
  sentence.words =
      tie ? std::vector<Sentence::Words>{first, {" and "}, second, {" tie"}}
          : std::vector<Sentence::Words>{first, {" is "}, {times, true}, {" as fast as "}, second};
  sentence.words.insert(sentence.words.end(), scope.begin(), scope.end());
  sentence.words.push_back({tie ? ": the first is " + times + " as fast as the second." : "."});
  return sentence;
}

const char* ObstacleText(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::kInvalid:
      return "a score that is not valid says nothing";
    case Obstacle::kOtherTrace:
      return "they were scored for different work: another trace, or another piece of it";
    case Obstacle::kOtherRule:
      return "they were measured by different rules, which are below";
    case Obstacle::kOtherState:
      return "they were measured in different states";
    case Obstacle::kOtherReference:
      return "their samples were scored against different references";
    case Obstacle::kTooFewCycles:
      return "it takes two cycles of each";
  }
  return "";
}

const char* ObstacleKey(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::kInvalid:
      return "invalid";
    case Obstacle::kOtherTrace:
      return "other_trace";
    case Obstacle::kOtherRule:
      return "other_rule";
    case Obstacle::kOtherState:
      return "other_state";
    case Obstacle::kOtherReference:
      return "other_reference";
    case Obstacle::kTooFewCycles:
      return "too_few_cycles";
  }
  return "";
}

std::string FlatText(const Sentence& sentence, size_t most_columns) {
  std::string text;
  for (const Sentence::Words& one : sentence.words) {
    text += one.foreign && most_columns > 0 ? Plain(one.text, most_columns) : one.text;
  }
  return text;
}

std::string SentenceLines(const std::vector<Sentence>& sentences, const TextLook& look) {
  std::string text;
  for (const Sentence& sentence : sentences) {
    // A reason may be long: it is cut by lines, not by columns.
    const std::string flat = Plain(FlatText(sentence, 4 * kLabelColumns), 1'000);
    std::string lines = Wrapped("", "  ", flat, look.columns);
    lines.pop_back();
    text += (sentence.bad ? Bad(lines, look) : Strong(lines, look)) + "\n";
  }
  return text;
}

std::string SentencesMarkdown(const std::vector<Sentence>& sentences) {
  std::string text;
  for (const Sentence& sentence : sentences) {
    const std::string escaped = MarkdownText(FlatText(sentence, 0));
    text += sentence.bad ? escaped + "\n\n" : "**" + escaped + "**\n\n";
  }
  return text;
}

Json SentencesJson(const std::vector<Sentence>& sentences) {
  Json said = Json::array();
  for (const Sentence& sentence : sentences) {
    said.push_back({{"text", FlatText(sentence, 0)}, {"bad", sentence.bad}});
  }
  return said;
}

Json PairJson(size_t first, size_t second, Obstacle obstacle, const Comparison& comparison,
              bool ratio) {
  const bool told = obstacle == Obstacle::kNone;
  const bool tie = comparison.verdict == Verdict::kTie;
  return {{"first", first},
          {"second", second},
          {"verdict", told ? Json(tie ? "tie" : "faster") : Json(nullptr)},
          {"obstacle", told ? Json(nullptr) : Json(ObstacleKey(obstacle))},
          {"ratio", ratio ? Json(comparison.ratio) : Json(nullptr)},
          {"ratio_low", ratio ? Json(comparison.ratio_low) : Json(nullptr)},
          {"ratio_high", ratio ? Json(comparison.ratio_high) : Json(nullptr)}};
}

}  // namespace blktape
