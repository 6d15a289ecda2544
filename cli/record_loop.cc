#include "cli/record_loop.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "capture/session/live_figures.h"
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
constexpr int64_t kRotateRetryNs = 10 * kNanosPerSecond;
constexpr int64_t kMakeRoomIntervalNs = 60 * kNanosPerSecond;
constexpr int64_t kQuietNs = kNanosPerSecond;
constexpr uint64_t kDirtyLeftKiB = 64;

// What a person at a terminal, or a service's log, sees.
class Display {
 public:
  explicit Display(bool live_line) : live_line_(live_line) {}

  void Show(const LiveFigures& figures) {
    if (live_line_) line_.Show(FigureLine(figures));
  }
  void Say(const std::string& news) {
    line_.Clear();
    Print(stderr, news + "\n");
  }

 private:
  bool live_line_;
  ProgressLine line_;
};

// Knows when what a command wrote has reached the disk.
class Settling {
 public:
  Settling(const DirtyPages* dirty, int64_t now_ns, int64_t bound_ns, uint64_t ios)
      : dirty_(dirty), end_ns_(now_ns + bound_ns), last_io_ns_(now_ns), ios_(ios) {}

  // Absent: not yet. True: all is written and the disk is quiet. False: the time is over.
  std::optional<bool> Done(int64_t now_ns, uint64_t ios) {
    if (ios != ios_) last_io_ns_ = now_ns;
    ios_ = ios;
    if (now_ns - last_io_ns_ >= kQuietNs && dirty_->KiB() <= kDirtyLeftKiB) return true;
    if (now_ns >= end_ns_) return false;
    return std::nullopt;
  }

 private:
  const DirtyPages* dirty_;
  int64_t end_ns_;
  int64_t last_io_ns_;
  uint64_t ios_;
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
        rotation_(options.rotation, ReadClocks().wall_ns) {}

  Result<RecordLoopResult> Run() {
    if (!options_.command.empty()) {
      ASSIGN_OR_RETURN(child_, ChildCommand::Start(options_.command));
    }
    if (options_.after_start) options_.after_start();
    begin_ns_ = Clock::Monotonic()->NowNs();
    MakeRoom(begin_ns_);
    service_.Ready("recording into " + session_->file().path());
    // Not at once: figures of nothing would stand there for a minute.
    next_service_ns_ = begin_ns_ + kServiceStatusIntervalNs;
    UpdateStatus();
    while (true) {
      ASSIGN_OR_RETURN(const bool more, session_->Turn(TurnMs()));
      const int64_t now_ns = Clock::Monotonic()->NowNs();
      RETURN_IF_ERROR(WriteMarks(now_ns));
      Report(now_ns);
      Rotate(now_ns);
      if (now_ns >= next_make_room_ns_) MakeRoom(now_ns);
      if (now_ns >= next_low_check_ns_) CheckRoom(now_ns);
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

  void Rotate(int64_t now_ns) {
    const bool asked = signals_->TakeHangup();
    if (!options_.next_path) return;
    const int64_t wall_ns = ReadClocks().wall_ns;
    const bool due = options_.rotation.rotates() && now_ns >= next_rotate_ns_ &&
                     rotation_.Due(wall_ns, session_->file().bytes_written());
    const bool wanted = now_ns >= next_rotate_ns_ && session_->WantsNewFile();
    if (!asked && !due && !wanted) return;
    const Status rotated = session_->Rotate(options_.next_path());
    if (!rotated.ok()) {
      // Better a file that is too long than none.
      display_.Say("no new file: " + rotated.message());
      next_rotate_ns_ = now_ns + kRotateRetryNs;
      return;
    }
    rotation_.Begin(wall_ns);
    service_.Say("recording into " + session_->file().path());
    MakeRoom(now_ns);
  }

  // Before a full disk ends the recording the oldest traces go, where they may.
  void CheckRoom(int64_t now_ns) {
    next_low_check_ns_ = now_ns + kFiguresIntervalNs;
    if (options_.folder.empty() || !options_.rotation.keep_bytes) return;
    const uint64_t lacking_bytes = session_->file().file().LackingBytes();
    if (lacking_bytes == 0) return;
    for (const std::string& path : RemoveOldest(options_.folder, lacking_bytes)) {
      display_.Say("the disk is nearly full: removed " + path);
    }
  }

  void MakeRoom(int64_t now_ns) {
    next_make_room_ns_ = now_ns + kMakeRoomIntervalNs;
    if (options_.folder.empty() || !options_.rotation.keep_bytes) return;
    for (const std::string& path : RemoveOldTraces(options_.folder, *options_.rotation.keep_bytes,
                                                   session_->file().bytes_written())) {
      display_.Say("removed " + path);
    }
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
    if (result_.command_status) settling_.emplace(&dirty_, now_ns, options_.settle_ns, ios);
    return false;
  }

  CaptureSession* session_;
  RecordSignals* signals_;
  const RecordLoopOptions& options_;
  Display display_;
  DirtyPages dirty_;
  RecordStatusFile status_;
  MarkSocket marks_;
  RotationClock rotation_;
  ServiceNotify service_;
  std::unique_ptr<ChildCommand> child_;
  std::optional<Settling> settling_;
  RecordLoopResult result_;
  LiveFigures figures_;
  int64_t begin_ns_ = 0;
  int64_t next_figures_ns_ = 0;
  int64_t next_service_ns_ = 0;
  int64_t next_rotate_ns_ = 0;
  int64_t next_make_room_ns_ = 0;
  int64_t next_low_check_ns_ = 0;
};

}  // namespace

Result<RecordLoopResult> RunRecordLoop(CaptureSession* session, RecordSignals* signals,
                                       const RecordLoopOptions& options) {
  return RecordLoop(session, signals, options).Run();
}

}  // namespace blktape
