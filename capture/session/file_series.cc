#include "capture/session/file_series.h"

#include <utility>

#include "base/status.h"
#include "base/units.h"

namespace blktape {
namespace {

constexpr int64_t kRotateRetryNs = 10 * kNanosPerSecond;
constexpr int64_t kQuotaIntervalNs = 60 * kNanosPerSecond;
constexpr int64_t kSpaceIntervalNs = kNanosPerSecond;

}  // namespace

FileSeries::FileSeries(CaptureSession* session, FileSeriesOptions options, int64_t wall_ns)
    : session_(session), options_(std::move(options)), clock_(options_.rotation, wall_ns) {}

bool FileSeries::Turn(int64_t now_ns, int64_t wall_ns, bool asked) {
  const bool begun = Rotate(now_ns, wall_ns, asked);
  if (begun || now_ns >= next_quota_ns_) RemoveBeyondQuota(now_ns);
  if (now_ns >= next_space_ns_) RemoveForSpace(now_ns);
  return begun;
}

bool FileSeries::Rotate(int64_t now_ns, int64_t wall_ns, bool asked) {
  if (!options_.next_path) return false;
  const bool due =
      options_.rotation.rotates() && clock_.Due(wall_ns, session_->file().bytes_written());
  const bool wanted = now_ns >= next_rotate_ns_ && (due || session_->WantsNewFile());
  if (!asked && !wanted) return false;
  const Status rotated = session_->Rotate(options_.next_path());
  if (!rotated.ok()) {
    // Better a file that is too long than none.
    news_.push_back("no new file: " + rotated.message());
    next_rotate_ns_ = now_ns + kRotateRetryNs;
    return false;
  }
  clock_.Begin(wall_ns);
  return true;
}

void FileSeries::RemoveBeyondQuota(int64_t now_ns) {
  next_quota_ns_ = now_ns + kQuotaIntervalNs;
  if (!removes()) return;
  for (const std::string& path :
       RemoveOldTraces(options_.folder, options_.series, *options_.rotation.keep_bytes,
                       session_->file().bytes_written())) {
    news_.push_back("removed " + path);
  }
}

// Before a full disk ends the recording the oldest traces go.
void FileSeries::RemoveForSpace(int64_t now_ns) {
  next_space_ns_ = now_ns + kSpaceIntervalNs;
  if (!removes()) return;
  const uint64_t lacking_bytes = session_->file().file().LackingBytes();
  if (lacking_bytes == 0) return;
  for (const std::string& path : RemoveOldest(options_.folder, options_.series, lacking_bytes)) {
    news_.push_back("the disk is nearly full: removed " + path);
  }
}

std::vector<std::string> FileSeries::TakeNews() { return std::exchange(news_, {}); }

}  // namespace blktape
