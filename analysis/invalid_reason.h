#pragma once

#include <string>
#include <vector>

namespace blktape {

// Why a run or a score is invalid: the rule of docs/score.md, "A run is invalid when", that it
// breaks, and a sentence about it. Code decides by the rule; the text is for people.
struct InvalidReason {
  int rule = 0;      // 1 to 8
  std::string text;  // "the host was late: ..."
  std::string run;   // label of the run or cycle that it is about; empty: of all

  // "cycle 2, timed: rule 3: the host was late: ..."
  std::string Sentence() const {
    return (run.empty() ? "" : run + ": ") + "rule " + std::to_string(rule) + ": " + text;
  }
  bool operator==(const InvalidReason&) const = default;
};

using InvalidReasons = std::vector<InvalidReason>;

inline std::vector<std::string> Sentences(const InvalidReasons& reasons) {
  std::vector<std::string> sentences;
  for (const InvalidReason& reason : reasons) sentences.push_back(reason.Sentence());
  return sentences;
}

}  // namespace blktape
