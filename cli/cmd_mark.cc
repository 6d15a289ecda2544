#include <signal.h>
#include <time.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "cli/child_command.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/mark_socket.h"
#include "cli/print.h"
#include "format/trace.pb.h"

namespace blktape {
namespace {

struct MarkOptions {
  std::string name;
  bool end = false;
  std::vector<std::string> command;
};

// From here on what would end this program waits in the returned set: first the command ends, and
// its phase.
sigset_t HoldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int one : {SIGINT, SIGTERM, SIGQUIT}) sigaddset(&held, one);
  if (!HangupIsIgnored()) sigaddset(&held, SIGHUP);
  sigprocmask(SIG_BLOCK, &held, nullptr);
  return held;
}

Result<int> MarkAround(const MarkOptions& options) {
  const sigset_t held = HoldSignals();
  RETURN_IF_ERROR(SendMark(proto::PHASE_BEGIN, options.name).status());
  const auto child = ChildCommand::Start(options.command);
  std::optional<int> status;
  while (child.ok()) {
    status = (*child)->Ended();
    if (status) break;
    siginfo_t info{};
    constexpr timespec kLookEvery = {.tv_sec = 0, .tv_nsec = 10 * kNanosPerMilli};
    const int signal = sigtimedwait(&held, &info, &kLookEvery);
    // What was typed has reached the whole foreground job.
    if (signal > 0 && info.si_code != SI_KERNEL) (*child)->Signal(signal);
  }
  const Status ended = SendMark(proto::PHASE_END, options.name).status();
  RETURN_IF_ERROR(child.status());
  // The recording may be over; the command has its own exit status.
  if (!ended.ok()) {
    Print(stderr, "warning: the end of the phase was not told: " + ended.message() + "\n");
  }
  return status.value_or(kExitFailed);
}

int RunMark(const MarkOptions& options) {
  if (!options.command.empty()) {
    if (options.end) return UsageError("blktape mark: --end has no command");
    const Result<int> status = MarkAround(options);
    return status.ok() ? *status : Fail(status.status());
  }
  const Result<int> told =
      SendMark(options.end ? proto::PHASE_END : proto::PHASE_BEGIN, options.name);
  if (!told.ok()) return Fail(told.status());
  Print(stdout, options.name + (options.end ? " ends" : " begins") + ", in " +
                    std::to_string(*told) + (*told == 1 ? " recording\n" : " recordings\n"));
  return kExitOk;
}

}  // namespace

Command MarkCommand() {
  return {
      .name = "mark",
      .summary = "Tell a running recording that a phase begins or ends",
      .examples =
          "blktape mark unpack\n"
          "blktape mark unpack --end\n"
          "blktape mark build -- make -j8",
      .declare = [](Flags* flags) -> std::function<int()> {
        const auto options = std::make_shared<MarkOptions>();
        flags->Positional("NAME", &options->name,
                          "The name of the phase in the trace and its reports");
        flags->Switch("--end", &options->end, "The phase ends; without this it begins");
        flags->AfterDashes(&options->command,
                           "A command to run: the phase lasts as long as the command, and the exit "
                           "status is the command's");
        return [options] { return RunMark(*options); };
      },
  };
}

}  // namespace blktape
