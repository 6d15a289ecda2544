#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "analysis/profile.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/print.h"
#include "format/trace_reader.h"
#include "report/report_json.h"
#include "report/report_text.h"

namespace blktape {
namespace {

struct AnalyzeOptions {
  std::string trace;
  bool json = false;
  std::string device;
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  uint64_t top = kProcessRows;
};

int RunAnalyze(const AnalyzeOptions& options, const Flags& flags) {
  ProfileOptions profile_options;
  if (flags.Given("--from")) profile_options.from_ns = options.from_ns;
  if (flags.Given("--to")) profile_options.to_ns = options.to_ns;
  if (profile_options.from_ns && profile_options.to_ns &&
      *profile_options.from_ns >= *profile_options.to_ns) {
    return UsageError("--from must lie before --to");
  }
  if (!options.device.empty()) {
    if (options.trace == "-") return UsageError("--device needs a trace that can be read twice");
    const auto reader = TraceReader::Open(options.trace);
    if (!reader.ok()) return Fail(reader.status());
    const Result<uint32_t> device = FindDevice((*reader)->header(), options.device);
    if (!device.ok()) return Fail(device.status());
    profile_options.device = *device;
  }
  const Result<Profile> profile = ProfileTrace(options.trace, profile_options);
  if (!profile.ok()) return Fail(profile.status());
  const std::string text =
      options.json ? ProfileJson(*profile).dump(2, ' ', /*ensure_ascii=*/true,
                                                nlohmann::json::error_handler_t::replace) +
                         "\n"
                   : ProfileText(*profile, std::filesystem::path(options.trace).filename().string(),
                                 options.top);
  Print(stdout, text);
  return profile->DataMissing() ? kExitDegraded : kExitOk;
}

}  // namespace

Command AnalyzeCommand() {
  return {
      .name = "analyze",
      .summary = "Show what a trace holds: sizes, mix, depth, idle, latency, footprint",
      .examples =
          "blktape analyze monday.tape\n"
          "blktape analyze monday.tape --from 1h --to 2h\n"
          "blktape analyze monday.tape --json | jq .d2c_ns.p99",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<AnalyzeOptions>();
        flags->Positional("TRACE", &options->trace, "A .tape file; - is standard input");
        flags->Switch("--json", &options->json, "JSON as docs/metrics.md defines it (ns, bytes)");
        flags->Text("--device", &options->device, "Only this device of the trace", "NAME");
        flags->Duration("--from", &options->from_ns,
                        "Only I/Os that arrived so long after the first or later");
        flags->Duration("--to", &options->to_ns, "Only I/Os that arrived before that");
        flags->Count("--top", &options->top,
                     "So many processes, those with most bytes (default 10)");
        return [options, flags] { return RunAnalyze(*options, *flags); };
      },
  };
}

}  // namespace blktape
