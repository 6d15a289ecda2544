#include "cli/record_loop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/quantity.h"
#include "capture/session/file_series.h"
#include "capture/session/live_figures.h"
#include "capture/session/settling.h"
#include "capture/source/live_source.h"
#include "cli/child_command.h"
#include "cli/mark_socket.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/record_signals.h"
#include "cli/record_status.h"
#include "cli/service_notify.h"
#include "host/dirty_pages.h"
#include "host/machine.h"

namespace blktape {
namespace {

constexpr int kTurnMs = 100;
// Where nobody watches and no command runs: a signal ends it early.
constexpr int kQuietTurnMs = 2000;
constexpr int64_t kFiguresIntervalNs = kNanosPerSecond;
constexpr int64_t kServiceStatusIntervalNs = 60 * kNanosPerSecond;

// What a person at a terminal, or a service's log, sees.
class Display {
 public:
  explicit Display(bool live_line) : live_line_(live_line) {}

  void Show(const LiveFigures& figures) {
    if (live_line_) line_.Show(FigureLine(figures, line_.columns()));
  }
  void Say(const std::string& news) {
    line_.Clear();
    Print(stderr, news + "\n");
  }

 private:
  bool live_line_;
  ProgressLine line_;
};

class RecordLoop {
 public:
  RecordLoop(CaptureSession* session, RecordSignals* signals, const RecordLoopOptions& options)
      : session_(session),
        signals_(signals),
        options_(options),
        display_(options.live_line),
        dirty_(options.command.empty() ? std::vector<Disk>() : session->source().devices()),
        status_({std::string(session->source().name()), Names(session)}),
        files_(session, options.files, ReadClocks().wall_ns) {}

  Result<RecordLoopResult> Run() {
    if (!options_.command.empty()) {
      ASSIGN_OR_RETURN(child_, ChildCommand::Start(options_.command));
    }
    if (options_.after_start) options_.after_start();
    begin_ns_ = Clock::Monotonic()->NowNs();
    service_.Ready("recording into " + session_->file().path());
    // Not at once: figures of nothing would stand there for a minute.
    next_service_ns_ = begin_ns_ + kServiceStatusIntervalNs;
    UpdateStatus();
    while (true) {
      ASSIGN_OR_RETURN(const bool more, session_->Turn(TurnMs()));
      const int64_t now_ns = Clock::Monotonic()->NowNs();
      RETURN_IF_ERROR(WriteMarks(now_ns));
      Report(now_ns);
      TurnFiles(now_ns);
      if (!more || IsOver(now_ns)) break;
    }
    service_.Stopping();
    return result_;
  }

 private:
  static std::vector<std::string> Names(const CaptureSession* session) {
    std::vector<std::string> names;
    for (const Disk& device : session->devices()) {
      names.push_back(device.description.name());
    }
    return names;
  }

  // A terminal, a command and a duration are looked after often; a service as its watchdog wants.
  int TurnMs() const {
    if (options_.live_line || child_ != nullptr || options_.duration_ns) return kTurnMs;
    const int64_t silence_ms = service_.longest_silence_ns() / kNanosPerMilli;
    return static_cast<int>(std::min<int64_t>(kQuietTurnMs, silence_ms));
  }

  Status WriteMarks(int64_t now_ns) {
    for (const proto::Mark& mark : marks_.Receive(now_ns)) {
      RETURN_IF_ERROR(session_->WriteMark(mark));
    }
    return OkStatus();
  }

  void UpdateStatus() { status_.Update(figures_, session_->file().path()); }

  void Report(int64_t now_ns) {
    service_.Alive(now_ns);
    for (const std::string& news : session_->TakeNews()) {
      display_.Say(news);
      service_.Say(news);
    }
    if (now_ns >= next_figures_ns_) {
      next_figures_ns_ = now_ns + kFiguresIntervalNs;
      figures_ = session_->Figures(/*begin_interval=*/true);
      display_.Show(figures_);
    }
    if (now_ns >= next_service_ns_) {
      next_service_ns_ = now_ns + kServiceStatusIntervalNs;
      service_.Say(FigureLine(figures_));
    }
    if (signals_->TakeStatusRequest()) UpdateStatus();
  }

  void TurnFiles(int64_t now_ns) {
    const bool begun = files_.Turn(now_ns, ReadClocks().wall_ns, signals_->TakeHangup());
    for (const std::string& news : files_.TakeNews()) display_.Say(news);
    if (begun) service_.Say("recording into " + session_->file().path());
  }

  bool IsOver(int64_t now_ns) {
    if (options_.duration_ns && now_ns - begin_ns_ >= *options_.duration_ns) return true;
    const int stop = signals_->TakeStop();
    if (child_ == nullptr) return stop != 0;
    const uint64_t ios = session_->Figures(/*begin_interval=*/false).ios;
    if (settling_) {
      const std::optional<bool> done = settling_->Done(now_ns, ios);
      if (stop == 0 && !done) return false;
      result_.settled = done.value_or(false);
      return true;
    }
    // The command decides when to end. ^C on a terminal has reached it as well.
    if (stop != 0 && !signals_->stop_was_typed()) child_->Signal(stop);
    result_.command_status = child_->Ended();
    if (result_.command_status) {
      settling_.emplace([this] { return dirty_.KiB(); }, now_ns, options_.settle_ns, ios);
      if (options_.settle_ns > 0 && dirty_.KiB() > Settling::kDirtyLeftKiB) {
        display_.Say("the command has ended; waiting for its writes, at most " +
                     FormatDurationNs(options_.settle_ns) + " (--settle)");
      }
    }
    return false;
  }

  CaptureSession* session_;
  RecordSignals* signals_;
  const RecordLoopOptions& options_;
  Display display_;
  DirtyPages dirty_;
  RecordStatusFile status_;
  MarkSocket marks_;
  FileSeries files_;
  ServiceNotify service_;
  std::unique_ptr<ChildCommand> child_;
  std::optional<Settling> settling_;
  RecordLoopResult result_;
  LiveFigures figures_;
  int64_t begin_ns_ = 0;
  int64_t next_figures_ns_ = 0;
  int64_t next_service_ns_ = 0;
};

}  // namespace

Result<RecordLoopResult> RunRecordLoop(CaptureSession* session, RecordSignals* signals,
                                       const RecordLoopOptions& options) {
  return RecordLoop(session, signals, options).Run();
}

}  // namespace blktape
