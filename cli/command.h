#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// Exit codes of every verb.
enum ExitCode {
  kExitOk = 0,       // whole
  kExitFailed = 1,   // failed
  kExitUsage = 2,    // the command line is wrong
  kExitDegraded = 3  // finished, but data is missing or the run is invalid
};

// The flags of one verb. A thin face over CLI11, so that only flags.cc pays for it. Pointers must
// outlive Parse.
class Flags {
 public:
  virtual ~Flags() = default;
  // Names as typed: "--target", or "-o,--output". `value_name` is what the help shows.
  virtual void Text(const std::string& names, std::string* value, const std::string& help,
                    const std::string& value_name = "TEXT") = 0;
  virtual void TextList(const std::string& names, std::vector<std::string>* values,
                        const std::string& help, const std::string& value_name = "TEXT") = 0;
  virtual void Switch(const std::string& names, bool* value, const std::string& help) = 0;
  virtual void Count(const std::string& names, uint64_t* value, const std::string& help) = 0;
  virtual void Number(const std::string& names, double* value, const std::string& help) = 0;
  // "4k", "5G": bytes.
  virtual void Size(const std::string& names, uint64_t* value_bytes, const std::string& help) = 0;
  // "90s", "25ms": ns.
  virtual void Duration(const std::string& names, int64_t* value_ns, const std::string& help) = 0;
  virtual void Choice(const std::string& names, std::string* value,
                      const std::vector<std::string>& allowed, const std::string& help) = 0;
  // Words without a flag. `required` ones must be there; a list takes all that remain.
  virtual void Positional(const std::string& name, std::string* value, const std::string& help,
                          bool required = true) = 0;
  virtual void PositionalList(const std::string& name, std::vector<std::string>* values,
                              const std::string& help, bool required = true) = 0;
  // Everything after "--".
  virtual void AfterDashes(std::vector<std::string>* words, const std::string& help) = 0;
  // Whether the user gave it.
  virtual bool Given(const std::string& name) const = 0;
};

// One verb. `declare` adds its flags; `run` does the work after they were parsed and returns an
// exit code.
struct Command {
  std::string name;
  std::string summary;  // one line
  std::string
      examples;  // shown at the top of the verb's help, one per line, each beginning with "blktape"
  std::function<std::function<int()>(Flags*)>
      declare;  // returns run; flag variables live in its closure
};

// Each verb has a file cmd_NAME.cc that defines one of these; main.cc lists them.
Command DumpCommand();
Command InfoCommand();
Command RecoverCommand();
Command ImportCommand();
Command ExportCommand();
Command CutCommand();
Command MergeCommand();
Command DiffCommand();
Command AnonymizeCommand();
Command PackCommand();
Command MarkCommand();
Command RecordCommand();
Command AnalyzeCommand();
Command ReplayCommand();
Command CheckCommand();
Command PrepareCommand();
Command CornersCommand();
Command ScoreCommand();
Command BenchCommand();
Command CompareCommand();
Command ResultsCommand();

// Prints "error: ..." on stderr, with a way out where rights are missing that root has, and returns
// the exit code that fits.
int Fail(const Status& status);
// kExitUsage for kInvalidArgument, else kExitFailed.
int ExitStatusOf(const Status& failed);
int UsageError(const std::string& message);

// Parses the command line against `commands` and runs one. 80-column help, --version, unknown verbs
// named with a suggestion.
int RunMain(int argc, char** argv, const std::vector<Command>& commands);

}  // namespace blktape
