#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <system_error>

#include "base/quantity.h"
#include "base/text_layout.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/print.h"

namespace blktape {
namespace {

// What follows "--" never reaches CLI11, which would take it for positional words.
struct Line {
  std::vector<std::string> words;
  std::vector<std::string> after_dashes;
  bool dashes = false;
};

class Cli11Flags : public Flags {
 public:
  explicit Cli11Flags(CLI::App* app) : app_(app) {}

  void Text(const std::string& names, std::string* value, const std::string& help,
            const std::string& value_name) override {
    app_->add_option(names, *value, help)->type_name(value_name);
  }
  void TextList(const std::string& names, std::vector<std::string>* values, const std::string& help,
                const std::string& value_name) override {
    app_->add_option(names, *values, help)
        ->type_name(value_name)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  void Switch(const std::string& names, bool* value, const std::string& help) override {
    app_->add_flag(names, *value, help);
  }
  void Count(const std::string& names, uint64_t* value, const std::string& help) override {
    app_->add_option_function<std::string>(
            names,
            [value, names](const std::string& text) {
              // Not left to the library: it takes "-3" for a very large number.
              const char* const end = text.data() + text.size();
              const auto [rest, error] = std::from_chars(text.data(), end, *value);
              if (error != std::errc() || rest != end) {
                throw CLI::ValidationError(names, "\"" + text + "\" is no whole number");
              }
            },
            help)
        ->type_name("N");
  }
  void Number(const std::string& names, double* value, const std::string& help) override {
    app_->add_option(names, *value, help)->type_name("X");
  }
  void Size(const std::string& names, uint64_t* value_bytes, const std::string& help) override {
    app_->add_option_function<std::string>(
            names,
            [value_bytes, names](const std::string& text) {
              const Result<uint64_t> bytes = ParseBytes(text);
              if (!bytes.ok()) throw CLI::ValidationError(names, bytes.status().message());
              *value_bytes = *bytes;
            },
            help)
        ->type_name("SIZE");
  }
  void Duration(const std::string& names, int64_t* value_ns, const std::string& help) override {
    app_->add_option_function<std::string>(
            names,
            [value_ns, names](const std::string& text) {
              const Result<int64_t> ns = ParseDurationNs(text);
              if (!ns.ok()) throw CLI::ValidationError(names, ns.status().message());
              *value_ns = *ns;
            },
            help)
        ->type_name("TIME");
  }
  void Choice(const std::string& names, std::string* value, const std::vector<std::string>& allowed,
              const std::string& help) override {
    std::string type;
    for (const std::string& one : allowed) type += (type.empty() ? "" : "|") + one;
    app_->add_option_function<std::string>(
            names,
            [value, names, allowed, type](const std::string& text) {
              if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
                throw CLI::ValidationError(names, "\"" + text + "\" is none of " + type);
              }
              *value = text;
            },
            help)
        ->type_name(type);
  }
  void Positional(const std::string& name, std::string* value, const std::string& help,
                  bool required) override {
    app_->add_option(name, *value, help)->type_name("")->required(required);
  }
  void PositionalList(const std::string& name, std::vector<std::string>* values,
                      const std::string& help, bool required) override {
    app_->add_option(name, *values, help)->type_name("")->required(required);
  }
  void AfterDashes(std::vector<std::string>* words, const std::string& help) override {
    after_dashes_ = words;
    app_->footer("  -- COMMAND ...            " + help);
  }
  bool Given(const std::string& name) const override { return app_->count(name) > 0; }

  bool TakeAfterDashes(const Line& line) {
    if (!line.dashes) return true;
    if (after_dashes_ == nullptr) return false;
    *after_dashes_ = line.after_dashes;
    return true;
  }

 private:
  CLI::App* app_;
  std::vector<std::string>* after_dashes_ = nullptr;
};

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

// Breaks lines that are too long at a space; what follows is indented to `column`.
std::string Wrap(const std::string& text, size_t column) {
  std::string wrapped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    const size_t first = std::min(column, line.size());
    wrapped += Wrapped(line.substr(0, first), std::string(column, ' '), line.substr(first));
  }
  return wrapped;
}

std::string Overview(const std::vector<Command>& commands) {
  constexpr size_t kVerbColumn = 14;
  std::string text =
      "blktape records block I/O, replays it on candidate drives and scores them.\n"
      "\n"
      "  blktape record --mount / -o monday.tape\n"
      "  blktape analyze monday.tape\n"
      "  blktape score monday.tape --target /dev/sdX --overwrite\n"
      "\n"
      "Verbs:\n";
  for (const Command& command : commands) {
    text += "  " + command.name +
            std::string(kVerbColumn - 2 - std::min<size_t>(command.name.size(), 11), ' ') +
            command.summary + "\n";
  }
  text = Wrap(text, kVerbColumn);
  text +=
      "\n"
      "`blktape VERB --help` tells more; `blktape --version` the version.\n"
      "Exit status: 0 whole, 1 failed, 2 usage, 3 finished but data is missing or the\n"
      "run is invalid.\n";
  return text;
}

std::string HelpOf(const Command& command, CLI::App* app) {
  constexpr size_t kHelpColumn = 28;
  app->get_formatter()->column_width(kHelpColumn);
  std::string text = Wrap(command.summary, 0) + "\n";
  if (!command.examples.empty()) {
    text += "Examples:\n";
    size_t begin = 0;
    while (begin < command.examples.size()) {
      size_t end = command.examples.find('\n', begin);
      if (end == std::string::npos) end = command.examples.size();
      text += "  " + command.examples.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    text += "\n";
  }
  text += Wrap(app->help(), kHelpColumn);
  const bool times = text.find(" TIME ") != std::string::npos;
  const bool sizes = text.find(" SIZE ") != std::string::npos;
  if (times || sizes) text += "\n";
  if (times) text += "TIME is as in 25ms, 90s, 10m, 8h; a number alone is seconds.\n";
  if (sizes) text += "SIZE is as in 4096, 128k, 5G: powers of 1024; 5GB is decimal.\n";
  return text;
}

// CLI11 looks for what is missing before it looks for what does not belong: a mistyped flag is told
// first, as it may be all that is wrong.
std::string Complaint(const CLI::App& app, const CLI::ParseError& error) {
  for (const std::string& word : app.remaining()) {
    if (word.starts_with('-')) return CLI::ExtrasError({word}).what();
  }
  return error.what();
}

int RunVerb(const Command& command, const Line& line) {
  CLI::App app("", "blktape " + command.name);
  app.set_help_flag();
  bool help = false;
  app.add_flag("-h,--help", help, "Show this help");
  Cli11Flags flags(&app);
  const std::function<int()> run = command.declare(&flags);
  for (const std::string& word : line.words) {
    if (word == "-h" || word == "--help") {
      std::cout << HelpOf(command, &app);
      return kExitOk;
    }
  }
  std::vector<std::string> reversed(line.words.rbegin(), line.words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return UsageError(Complaint(app, error) + "\n  try:  blktape " + command.name + " --help");
  }
  if (!flags.TakeAfterDashes(line)) {
    return UsageError("blktape " + command.name + " takes no command after \"--\"");
  }
  return run();
}

}  // namespace

int Fail(const Status& status) {
  Print(stderr, "error: " + status.message() + "\n");
  if (status.code() == StatusCode::kPermissionDenied && geteuid() != 0 &&
      status.message().find("try:") == std::string::npos) {
    std::fprintf(stderr, "  try:  sudo blktape ..., or as a user who may\n");
  }
  return ExitStatusOf(status);
}

int ExitStatusOf(const Status& failed) {
  return failed.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailed;
}

int UsageError(const std::string& message) {
  Print(stderr, "error: " + message + "\n");
  return kExitUsage;
}

namespace {

int Dispatch(int argc, char** argv, const std::vector<Command>& commands) {
  if (argc < 2) {
    std::cerr << Overview(commands);
    return kExitUsage;
  }
  const std::string verb = argv[1];
  if (verb == "-h" || verb == "--help" || verb == "help") {
    std::cout << Overview(commands);
    return kExitOk;
  }
  if (verb == "--version") {
    std::cout << "blktape " << kVersion << "\n";
    return kExitOk;
  }
  Line line;
  for (int i = 2; i < argc; ++i) {
    if (!line.dashes && std::string(argv[i]) == "--") {
      line.dashes = true;
    } else {
      (line.dashes ? line.after_dashes : line.words).emplace_back(argv[i]);
    }
  }
  const Command* nearest = nullptr;
  for (const Command& command : commands) {
    if (command.name == verb) return RunVerb(command, line);
    if (nearest == nullptr ||
        EditDistance(verb, command.name) < EditDistance(verb, nearest->name)) {
      nearest = &command;
    }
  }
  std::string message = "there is no verb \"" + verb + "\"";
  if (nearest != nullptr && EditDistance(verb, nearest->name) <= 2) {
    message += "; did you mean \"" + nearest->name + "\"?";
  }
  return UsageError(message + "\n  try:  blktape --help");
}

}  // namespace

int RunMain(int argc, char** argv, const std::vector<Command>& commands) {
  const int code = Dispatch(argc, argv, commands);
  // A result that did not reach its reader (a full disk) is no success.
  // A verb that failed has said why, also where that is why.
  if (code == kExitFailed || code == kExitUsage) return code;
  if (std::cout.flush().fail() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail(ErrnoStatus(errno, "standard output"));
  }
  return code;
}

}  // namespace blktape
