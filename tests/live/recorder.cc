#include "tests/live/recorder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

constexpr char kProgram[] = "cli/blktape";

class Collector : public TraceObserver {
 public:
  explicit Collector(LoadedTrace* trace) : trace_(trace) {}
  void OnLoss(const proto::Loss& loss) override { trace_->losses.push_back(loss); }
  void OnAnchor(const proto::ClockAnchor& anchor) override { trace_->anchors.push_back(anchor); }
  void OnMark(const proto::Mark& mark) override { trace_->marks.push_back(mark); }

 private:
  LoadedTrace* trace_;
};

}  // namespace

Recorder::Recorder(const std::string& folder, std::vector<std::string> words,
                   std::vector<std::string> prefix) {
  static std::atomic<int> next{0};
  const std::string base = folder + "/recorder-" + std::to_string(next.fetch_add(1));
  out_path_ = base + ".out";
  err_path_ = base + ".err";
  std::vector<std::string> line = std::move(prefix);
  line.push_back(std::filesystem::absolute(kProgram).string());
  line.insert(line.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  const int out = open(out_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int err = open(err_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  // The tests may run under nohup or in a terminal.
  signal(SIGHUP, SIG_DFL);
  setsid();
  execvp(argv[0], argv.data());
  _exit(127);
}

Recorder::~Recorder() {
  if (status_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Recorder::WaitUntilRecording() { return WaitUntilItSays("recording "); }

bool Recorder::WaitUntilItSays(const std::string& text) {
  Clock* clock = Clock::Monotonic();
  const int64_t end_ns = clock->NowNs() + 30 * kNanosPerSecond;
  while (clock->NowNs() < end_ns) {
    if (err().find(text) != std::string::npos) return true;
    int status = 0;
    if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (status_) return err().find(text) != std::string::npos;
    clock->SleepUntilNs(clock->NowNs() + 10 * kNanosPerMilli);
  }
  return false;
}

void Recorder::Signal(int signal) const { kill(pid_, signal); }

int Recorder::Wait() {
  if (!status_) {
    int status = 0;
    waitpid(pid_, &status, 0);
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return *status_;
}

std::string Recorder::out() const {
  const Result<std::string> text = ReadFile(out_path_);
  return text.ok() ? *text : "";
}

std::string Recorder::err() const {
  const Result<std::string> text = ReadFile(err_path_);
  return text.ok() ? *text : "";
}

std::vector<IoRecord> LoadedTrace::By(const std::string& process) const {
  std::vector<IoRecord> found;
  for (size_t i = 0; i < ios.size(); ++i) {
    if (names[i] == process) found.push_back(ios[i]);
  }
  return found;
}

uint64_t LoadedTrace::LossCount(proto::LossReason reason) const {
  uint64_t total = 0;
  for (const proto::Loss& loss : losses) {
    if (loss.reason() == reason) total += loss.count();
  }
  return total;
}

Result<LoadedTrace> LoadTrace(const std::string& path) {
  LoadedTrace trace;
  Collector collector(&trace);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path, &collector));
  trace.header = reader->header();
  IoRecord record;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) break;
    trace.ios.push_back(record);
    trace.names.emplace_back(record.process ? reader->ProcessName(*record.process) : "");
  }
  trace.summary = reader->summary();
  return trace;
}

}  // namespace blktape
