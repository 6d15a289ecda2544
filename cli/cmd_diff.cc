#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "analysis/profile.h"
#include "analysis/profile_trace.h"
#include "analysis/trace_diff.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/print.h"

namespace blktape {
namespace {

struct DiffOptions {
  std::string a, b;
  bool json = false;
};

std::string Shown(TraceDiff::Unit unit, const std::optional<double>& value) {
  if (!value) return "-";
  char text[48];
  switch (unit) {
    case TraceDiff::Unit::kCount:
      return FormatCount(static_cast<uint64_t>(*value));
    case TraceDiff::Unit::kBytes:
      return FormatBytes(static_cast<uint64_t>(*value));
    case TraceDiff::Unit::kNanos:
      return FormatDurationNs(static_cast<int64_t>(*value));
    case TraceDiff::Unit::kRate:
      std::snprintf(text, sizeof(text), "%.1f", *value);
      return text;
    case TraceDiff::Unit::kPercent:
      std::snprintf(text, sizeof(text), "%.1f %%", *value);
      return text;
    case TraceDiff::Unit::kNumber:
      std::snprintf(text, sizeof(text), "%.2f", *value);
      return text;
  }
  return "";
}

const char* UnitName(TraceDiff::Unit unit) {
  switch (unit) {
    case TraceDiff::Unit::kCount:
      return "count";
    case TraceDiff::Unit::kBytes:
      return "bytes";
    case TraceDiff::Unit::kNanos:
      return "ns";
    case TraceDiff::Unit::kRate:
      return "per_second";
    case TraceDiff::Unit::kPercent:
      return "percent";
    case TraceDiff::Unit::kNumber:
      return "number";
  }
  return "";
}

void PrintText(const DiffOptions& options, const TraceDiff& diff) {
  std::string said = "A  " + options.a + "\nB  " + options.b + "\n\n";
  for (const std::string& words : diff.words) said += "  " + words + "\n";
  if (diff.words.empty()) said += "  Nothing of note differs.\n";
  char line[160];
  std::snprintf(line, sizeof(line), "\n%-24s %14s %14s %8s\n", "", "A", "B", "B/A");
  said += line;
  for (const TraceDiff::Figure& figure : diff.figures) {
    char ratio[24] = "";
    if (figure.ratio()) std::snprintf(ratio, sizeof(ratio), "%8.2f", *figure.ratio());
    std::snprintf(line, sizeof(line), "%-24s %14s %14s %s", figure.name.c_str(),
                  Shown(figure.unit, figure.a).c_str(), Shown(figure.unit, figure.b).c_str(),
                  ratio);
    said += line;
    while (said.ends_with(' ')) said.pop_back();
    said += "\n";
  }
  if (!diff.effects.empty()) {
    std::snprintf(line, sizeof(line), "\n%-24s %14s %14s %8s\n", "of two I/Os at random",
                  "B's longer", "Cliff's delta", "effect");
    said += line;
  }
  for (const TraceDiff::Effect& effect : diff.effects) {
    std::snprintf(line, sizeof(line), "%-24s %14.3f %+14.3f %8s\n", effect.name.c_str(),
                  effect.b_larger, effect.delta(), effect.size());
    said += line;
  }
  for (const auto& [apart, name] : {std::pair(diff.read_sizes_apart, "sizes of reads"),
                                    std::pair(diff.write_sizes_apart, "sizes of writes")}) {
    if (!apart) continue;
    std::snprintf(line, sizeof(line), "%-24s %12.1f %% would have to change\n", name, 100 * *apart);
    said += line;
  }
  Print(stdout, said);
}

void PrintJson(const DiffOptions& options, const TraceDiff& diff) {
  Json json;
  json["a"] = options.a;
  json["b"] = options.b;
  json["words"] = diff.words;
  for (const TraceDiff::Figure& figure : diff.figures) {
    Json row = {{"name", figure.name}, {"unit", UnitName(figure.unit)}};
    if (figure.a) row["a"] = *figure.a;
    if (figure.b) row["b"] = *figure.b;
    json["figures"].push_back(row);
  }
  json["effects"] = Json::array();
  for (const TraceDiff::Effect& effect : diff.effects) {
    json["effects"].push_back({{"name", effect.name},
                               {"b_larger", effect.b_larger},
                               {"cliffs_delta", effect.delta()},
                               {"size", effect.size()}});
  }
  if (diff.read_sizes_apart) json["read_sizes_apart"] = *diff.read_sizes_apart;
  if (diff.write_sizes_apart) json["write_sizes_apart"] = *diff.write_sizes_apart;
  std::cout << JsonText(json) << "\n";
}

int RunDiff(const DiffOptions& options) {
  const Result<Profile> a = ProfileTrace(options.a);
  if (!a.ok()) return Fail(a.status());
  const Result<Profile> b = ProfileTrace(options.b);
  if (!b.ok()) return Fail(b.status());
  const TraceDiff diff = CompareTraces(*a, *b);
  options.json ? PrintJson(options, diff) : PrintText(options, diff);
  const bool missing = a->DataMissing() || b->DataMissing();
  if (missing && !options.json) {
    Print(stdout, std::string("\nOf ") +
                      (!b->DataMissing()   ? "A"
                       : !a->DataMissing() ? "B"
                                           : "both") +
                      " data is missing: see blktape info.\n");
  }
  return missing ? kExitDegraded : kExitOk;
}

}  // namespace

Command DiffCommand() {
  return {
      .name = "diff",
      .summary = "Show how two traces differ: two days, or a recording and its replay",
      .examples =
          "blktape diff monday.tape tuesday.tape\n"
          "blktape diff monday.tape result.tape --json",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<DiffOptions>();
        flags->Positional("A", &options->a, "A .tape or .tape.partial file");
        flags->Positional("B", &options->b, "The other trace");
        flags->Switch("--json", &options->json, "Print it as JSON");
        return [options] { return RunDiff(*options); };
      },
  };
}

}  // namespace blktape
