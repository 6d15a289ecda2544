#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "cli/child_command.h"
#include "cli/command.h"
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

Result<int> MarkAround(const MarkOptions& options) {
  RETURN_IF_ERROR(SendMark(proto::PHASE_BEGIN, options.name).status());
  ASSIGN_OR_RETURN(const std::unique_ptr<ChildCommand> child, ChildCommand::Start(options.command));
  Clock* const clock = Clock::Monotonic();
  while (true) {
    const std::optional<int> ended = child->Ended();
    if (ended) {
      RETURN_IF_ERROR(SendMark(proto::PHASE_END, options.name).status());
      return *ended;
    }
    clock->SleepUntilNs(clock->NowNs() + 10 * kNanosPerMilli);
  }
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
