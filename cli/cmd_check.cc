#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "base/units.h"
#include "bench/host_check.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"

namespace blktape {
namespace {

struct CheckOptions {
  int64_t seconds_ns = 4 * kNanosPerSecond;
  bool json = false;
};

int RunCheck(const CheckOptions& options) {
  if (options.seconds_ns < kNanosPerSecond || options.seconds_ns > 3600 * kNanosPerSecond) {
    return UsageError("--duration must be 1s to 1h");
  }
  const Result<HostCheck> check = CheckHost(options.seconds_ns, StopOnSignals());
  if (!check.ok()) return Fail(check.status());
  if (options.json) {
    const Json json = {{"own_cost_ns", check->own_cost_ns},
                       {"judges_drives_slower_than_ns", check->slowest_fast_drive_ns()},
                       {"watched_ns", check->watched_ns},
                       {"stops", check->stops},
                       {"stops_per_minute", check->stops_per_minute()},
                       {"longest_stop_ns", check->longest_stop_ns},
                       {"wake_ns", OrNull(check->wake_ns)},
                       {"stolen_ns", OrNull(check->stolen_ns)},
                       {"granted", check->granted},
                       {"advice", check->advice}};
    std::puts(JsonText(json).c_str());
    return kExitOk;
  }
  Print(stdout, check->Sentence() + "\n");
  for (const std::string& one : check->advice) Print(stdout, "  - " + one + "\n");
  return kExitOk;
}

}  // namespace

Command CheckCommand() {
  return {
      .name = "check",
      .summary = "Show which drives this machine can judge, and how its CPUs stall and wake",
      .examples =
          "blktape check\n"
          "blktape check --duration 1m --json",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<CheckOptions>();
        flags->Duration("--duration", &options->seconds_ns,
                        "How long to watch the CPUs, one after the other (default 4s)");
        flags->Switch("--json", &options->json, "JSON as defined in docs/score.md");
        return [options] { return RunCheck(*options); };
      },
  };
}

}  // namespace blktape
