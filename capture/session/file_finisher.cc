#include "capture/session/file_finisher.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/byte_stream.h"
#include "base/clock.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr size_t kWaitingMost = 4;
constexpr size_t kSyncsRemembered = 64;
// Pieces this small neither fill a drive's queue nor its cache.
constexpr uint64_t kPieceBytes = 512 * 1024;
// An I/O of a thread that has ended is done by then: the block layer's time-out.
constexpr int64_t kLongestIoNs = 30 * kNanosPerSecond;

// Whoever works at the machine comes first; other than with the idle classes, on a busy machine it
// comes to an end, too.
void GoLastInLine() {
  (void)setpriority(PRIO_PROCESS, 0, 19);
  // ioprio_set(2); its header is no C++.
  constexpr int kWhoProcess = 1;
  constexpr int kBestEffortLast = 2 << 13 | 7;
  (void)syscall(SYS_ioprio_set, kWhoProcess, 0, kBestEffortLast);
}

}  // namespace

// Hands pieces to the disk one after the other, with pauses.
class FileFinisher::PacedSink : public ByteSink {
 public:
  PacedSink(FileFinisher* finisher, std::unique_ptr<ByteSink> sink)
      : finisher_(finisher), sink_(std::move(sink)), begin_ns_(Clock::Monotonic()->NowNs()) {}

  Status Write(std::span<const std::byte> bytes) override {
    RETURN_IF_ERROR(sink_->Write(bytes));
    written_bytes_ += bytes.size();
    unsynced_bytes_ += bytes.size();
    if (unsynced_bytes_ < kPieceBytes) return OkStatus();
    RETURN_IF_ERROR(Sync());
    const double seconds =
        static_cast<double>(written_bytes_) / static_cast<double>(finisher_->compact_bytes_per_s_);
    finisher_->Pause(begin_ns_ + static_cast<int64_t>(seconds * kNanosPerSecond));
    return OkStatus();
  }
  Status Sync() override {
    SyncInterval sync;
    sync.begin_ns = Clock::Monotonic()->NowNs();
    sync.data_bytes = std::exchange(unsynced_bytes_, 0);
    finisher_->RememberSync(sync);
    const Status status = sink_->Sync();
    sync.end_ns = Clock::Monotonic()->NowNs();
    finisher_->RememberSync(sync);
    return status;
  }
  std::string_view name() const override { return sink_->name(); }

 private:
  FileFinisher* finisher_;
  std::unique_ptr<ByteSink> sink_;
  int64_t begin_ns_;
  uint64_t written_bytes_ = 0;
  uint64_t unsynced_bytes_ = 0;
};

FileFinisher::~FileFinisher() { WaitForAll(); }

bool FileFinisher::has_room() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() < kWaitingMost;
}

void FileFinisher::Give(std::unique_ptr<RecordingFile> file, const proto::Summary& summary) {
  std::unique_lock lock(mutex_);
  const uint64_t lost_events = file->loss_tally().lost_events();
  waiting_.push_back({std::move(file), summary, lost_events});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  work_.notify_all();
  done_.wait(lock, [this] { return thread_id_ != 0; });
}

std::vector<FileFinisher::Finished> FileFinisher::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void FileFinisher::WaitForAll() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    work_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::vector<uint32_t> FileFinisher::ThreadIds(int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint32_t> ids;
  if (thread_id_ != 0) ids.push_back(thread_id_);
  for (const Job& job : waiting_) ids.push_back(job.file->file().thread_id());
  for (const Writer& writer : ended_writers_) {
    if (now_ns - writer.ended_ns <= kLongestIoNs) ids.push_back(writer.thread_id);
  }
  return ids;
}

std::optional<SyncInterval> FileFinisher::LastSync(int64_t ns) const {
  const std::lock_guard lock(mutex_);
  std::optional<SyncInterval> last;
  const auto consider = [&](const SyncInterval& sync) {
    if (sync.begin_ns <= ns && (!last || sync.begin_ns >= last->begin_ns)) last = sync;
  };
  for (const SyncInterval& sync : syncs_) consider(sync);
  for (const Job& job : waiting_) {
    if (const std::optional<SyncInterval> sync = job.file->file().LastSync(ns)) consider(*sync);
  }
  return last;
}

void FileFinisher::RememberSync(const SyncInterval& sync) {
  const std::lock_guard lock(mutex_);
  // Told when it begins, and again with its end.
  if (!syncs_.empty() && syncs_.back().begin_ns == sync.begin_ns) {
    syncs_.back() = sync;
    return;
  }
  syncs_.push_back(sync);
  if (syncs_.size() > kSyncsRemembered) syncs_.pop_front();
}

void FileFinisher::Run() {
  // Signals are for the thread that records.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  GoLastInLine();
  if (on_thread_) on_thread_();
  std::unique_lock lock(mutex_);
  thread_id_ = static_cast<uint32_t>(gettid());
  done_.notify_all();
  while (true) {
    work_.wait(lock, [this] { return stop_ || !waiting_.empty() || !to_compact_.empty(); });
    FinishWaiting(&lock);
    if (!to_compact_.empty()) {
      const std::unique_ptr<RecordingFile> file = std::move(to_compact_.front());
      to_compact_.pop_front();
      lock.unlock();
      file->Compact([this](std::unique_ptr<ByteSink> sink) -> std::unique_ptr<ByteSink> {
        return std::make_unique<PacedSink>(this, std::move(sink));
      });
      lock.lock();
    } else if (stop_ && waiting_.empty()) {
      return;
    }
  }
}

void FileFinisher::FinishWaiting(std::unique_lock<std::mutex>* lock) {
  while (!waiting_.empty()) {
    // It stays where others see its thread until it is done.
    Job& job = waiting_.front();
    lock->unlock();
    const Status status = job.file->Finish(job.summary);
    const int64_t now_ns = Clock::Monotonic()->NowNs();
    const std::optional<SyncInterval> last_sync = job.file->file().LastSync(now_ns);
    lock->lock();
    if (last_sync) syncs_.push_back(*last_sync);
    std::erase_if(ended_writers_,
                  [&](const Writer& one) { return now_ns - one.ended_ns > kLongestIoNs; });
    ended_writers_.push_back({job.file->file().thread_id(), now_ns});
    finished_.push_back(
        {job.file->path(), status, job.file->loss_tally().lost_events() - job.lost_events});
    if (status.ok()) to_compact_.push_back(std::move(job.file));
    waiting_.pop_front();
  }
}

void FileFinisher::Pause(int64_t until_ns) {
  std::unique_lock lock(mutex_);
  while (true) {
    FinishWaiting(&lock);
    const int64_t now_ns = Clock::Monotonic()->NowNs();
    if (stop_ || now_ns >= until_ns) return;
    work_.wait_for(lock, std::chrono::nanoseconds(until_ns - now_ns));
  }
}

}  // namespace blktape
