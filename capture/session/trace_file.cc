#include "capture/session/trace_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/privileges.h"

namespace blktape {
namespace {

constexpr auto kFullRetry = std::chrono::seconds(1);
constexpr size_t kSyncsRemembered = 64;

constexpr uint64_t kLeaveFreeMaxBytes = uint64_t{1} << 30;

// A small disk must not be filled by what a trace keeps in reserve.
TraceFileOptions ScaledToDisk(TraceFileOptions options, int fd) {
  struct statvfs info{};
  if (fstatvfs(fd, &info) == 0 && info.f_blocks > 0) {
    const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    options.reserve_bytes = std::min(options.reserve_bytes, free_bytes / 16);
  }
  return options;
}

bool MeansFull(int err) { return err == ENOSPC || err == EDQUOT; }

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path,
                                                     const TraceFileOptions& options) {
  const int64_t made_ns = Clock::Monotonic()->NowNs();
  ASSIGN_OR_RETURN(PartialFile partial, PartialFile::Create(path));
  std::unique_ptr<TraceFile> file(new TraceFile(std::move(partial), path, made_ns, options));
  if (file->FreeBytes() == 0u) {
    file->file_->Remove();
    return Status(StatusCode::kResourceExhausted,
                  path +
                      ": its disk is full, but for what is left to others\n  try:  another "
                      "folder, or --leave-free 0");
  }
  std::unique_lock lock(file->mutex_);
  file->done_.wait(lock, [&] { return file->thread_id_.load() != 0; });
  lock.unlock();
  return file;
}

TraceFile::TraceFile(PartialFile file, std::string path, int64_t made_ns,
                     const TraceFileOptions& options)
    : file_(std::move(file)),
      fd_(file_->fd()),
      path_(std::move(path)),
      options_(ScaledToDisk(options, fd_)),
      syncs_{{made_ns, made_ns, 0}},
      thread_([this] { Run(); }) {}

TraceFile::~TraceFile() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    work_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

Status TraceFile::Write(std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  // One piece is taken whatever its size; the bound is for those behind it.
  done_.wait(lock, [&] {
    return !status_.ok() || full_ || queued_bytes_ == 0 ||
           queued_bytes_ + bytes.size() <= options_.queue_bytes;
  });
  if (!status_.ok()) return status_;
  queue_.emplace_back(bytes.begin(), bytes.end());
  queued_bytes_ += bytes.size();
  work_.notify_all();
  return OkStatus();
}

void TraceFile::SyncSoon() {
  const std::lock_guard lock(mutex_);
  ++syncs_wanted_;
  work_.notify_all();
}

Status TraceFile::Sync() {
  std::unique_lock lock(mutex_);
  const uint64_t wanted = ++syncs_wanted_;
  work_.notify_all();
  done_.wait(lock, [&] { return !status_.ok() || full_ || syncs_done_ >= wanted; });
  if (status_.ok() && syncs_done_ < wanted) {
    return Status(StatusCode::kResourceExhausted, file_->path() + ": no space left on the device");
  }
  return status_;
}

void TraceFile::UseReserve() {
  const std::lock_guard lock(mutex_);
  use_reserve_ = true;
  // Until the reserve is found to be too small.
  full_ = false;
  work_.notify_all();
}

Status TraceFile::Finish() {
  {
    const std::lock_guard lock(mutex_);
    ++syncs_wanted_;
    use_reserve_ = true;
    stop_ = true;
    work_.notify_all();
  }
  thread_.join();
  RETURN_IF_ERROR(status_);
  if (!queue_.empty()) {
    return Status(StatusCode::kResourceExhausted,
                  file_->path() + ": no space left on the device to finish it");
  }
  if (ftruncate(fd_, static_cast<off_t>(written_bytes_)) != 0) {
    return ErrnoStatus(errno, file_->path());
  }
  const Status named = file_->GiveName();
  file_.reset();
  return named;
}

size_t TraceFile::queued_bytes() const {
  const std::lock_guard lock(mutex_);
  return queued_bytes_;
}

std::optional<SyncInterval> TraceFile::LastSync(int64_t ns) const {
  const std::lock_guard lock(mutex_);
  for (auto sync = syncs_.rbegin(); sync != syncs_.rend(); ++sync) {
    if (sync->begin_ns <= ns) return *sync;
  }
  return std::nullopt;
}

void TraceFile::Run() {
  // Signals are for the thread that records; the rights of root are for nobody here: a file
  // system's last blocks, kept for root, are not for traces.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  rights_dropped_ = DropCapabilities();
  if (options_.on_thread) options_.on_thread();
  std::unique_lock lock(mutex_);
  thread_id_ = static_cast<uint32_t>(gettid());
  done_.notify_all();
  while (true) {
    work_.wait(lock, [&] { return stop_ || !queue_.empty() || syncs_done_ < syncs_wanted_; });
    if (!queue_.empty() && status_.ok()) {
      WriteOne(&lock);
      if (!full_) continue;
      if (stop_) return;
      work_.wait_for(lock, kFullRetry, [&] { return stop_ || !full_; });
      continue;
    }
    if (syncs_done_ < syncs_wanted_) SyncNow(&lock);
    if (stop_ && (queue_.empty() || !status_.ok())) return;
    // A broken disk: callers have been told, nothing is left to do but end.
    if (!status_.ok()) work_.wait(lock, [&] { return stop_; });
  }
}

std::optional<uint64_t> TraceFile::FreeBytes() const {
  struct statvfs info{};
  if (fstatvfs(fd_, &info) != 0 || info.f_blocks == 0) return std::nullopt;
  const uint64_t size_bytes = static_cast<uint64_t>(info.f_blocks) * info.f_frsize;
  const uint64_t free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  const uint64_t left_bytes =
      options_.leave_free_bytes.value_or(std::min(size_bytes / 100, kLeaveFreeMaxBytes));
  return free_bytes - std::min(free_bytes, left_bytes);
}

uint64_t TraceFile::LackingBytes() const {
  constexpr uint64_t kLowBytes = 64 * 1024 * 1024;
  struct statvfs info{};
  const std::optional<uint64_t> free_bytes = FreeBytes();
  if (!free_bytes || fstatvfs(fd_, &info) != 0) return 0;
  const uint64_t size_bytes = static_cast<uint64_t>(info.f_blocks) * info.f_frsize;
  const uint64_t low_bytes = std::min(kLowBytes, size_bytes / 50);
  return low_bytes - std::min(low_bytes, *free_bytes);
}

bool TraceFile::HasRoom(uint64_t end_bytes) {
  const std::optional<uint64_t> free_bytes = FreeBytes();
  if (free_bytes && *free_bytes == 0) return false;
  const uint64_t wanted = end_bytes + options_.reserve_bytes;
  if (!can_allocate_ || wanted <= allocated_bytes_) return true;
  const uint64_t target = wanted + options_.reserve_bytes;
  if (fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(allocated_bytes_),
                static_cast<off_t>(target - allocated_bytes_)) == 0) {
    allocated_bytes_ = target;
    return true;
  }
  if (MeansFull(errno)) return false;
  // A file system without it: space is found, or not, by writing.
  can_allocate_ = false;
  return true;
}

Status TraceFile::Put(std::span<const std::byte> bytes, uint64_t offset, uint64_t* done) const {
  *done = 0;
  while (*done < bytes.size()) {
    const ssize_t put =
        pwrite(fd_, bytes.data() + *done, bytes.size() - *done, static_cast<off_t>(offset + *done));
    if (put < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno,
                         file_->path() + ": write at offset " + std::to_string(offset + *done));
    }
    *done += static_cast<uint64_t>(put);
  }
  return OkStatus();
}

void TraceFile::WriteOne(std::unique_lock<std::mutex>* lock) {
  const std::vector<std::byte> bytes(std::move(queue_.front()));
  queue_.pop_front();
  const bool into_reserve = use_reserve_;
  lock->unlock();
  uint64_t done = 0;
  Status status;
  const bool room = into_reserve || HasRoom(written_bytes_ + bytes.size());
  if (room) status = Put(bytes, written_bytes_, &done);
  lock->lock();
  written_bytes_ += done;
  queued_bytes_ -= done;
  const bool full = !room || status.code() == StatusCode::kResourceExhausted;
  if (full) {
    // The rest follows where this ended once there is room.
    queue_.emplace_front(bytes.begin() + static_cast<ptrdiff_t>(done), bytes.end());
  } else if (!status.ok()) {
    status_ = std::move(status);
  }
  full_ = full;
  done_.notify_all();
}

uint64_t TraceFile::UnsyncedBlockBytes() const {
  if (written_bytes_ == synced_bytes_) return 0;
  struct statvfs info{};
  const uint64_t block =
      fstatvfs(fd_, &info) == 0 && info.f_bsize > 0 ? info.f_bsize : uint64_t{4096};
  return (written_bytes_ + block - 1) / block * block - synced_bytes_ / block * block;
}

void TraceFile::SyncNow(std::unique_lock<std::mutex>* lock) {
  const uint64_t wanted = syncs_wanted_;
  syncs_.push_back({Clock::Monotonic()->NowNs(), 0, UnsyncedBlockBytes()});
  synced_bytes_ = written_bytes_;
  if (syncs_.size() > kSyncsRemembered) syncs_.pop_front();
  lock->unlock();
  const int err = fdatasync(fd_) == 0 || errno == EINVAL ? 0 : errno;
  // Without its name on the disk no frame would survive a power loss. Here, where what it causes is
  // known as ours.
  if (!std::exchange(name_synced_, true)) (void)file_->SyncName();
  lock->lock();
  syncs_.back().end_ns = Clock::Monotonic()->NowNs();
  syncs_done_ = wanted;
  if (err != 0 && !MeansFull(err) && status_.ok()) {
    status_ = ErrnoStatus(err, file_->path() + ": fdatasync");
  }
  done_.notify_all();
}

}  // namespace blktape
