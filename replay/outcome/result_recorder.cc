#include "replay/outcome/result_recorder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "format/io_record.h"

namespace blktape {
namespace {

constexpr size_t kFirstWindow = 1024;

bool MovesData(Op op) { return op == Op::kRead || op == Op::kWrite; }

bool IsShort(const IssuedIo& io) {
  return io.error == 0 && MovesData(io.op) && io.bytes_done < io.bytes;
}

}  // namespace

ResultRecorder::ResultRecorder(TraceWriter* writer, const std::vector<uint32_t>& depths,
                               std::function<void(const IoRecord&)> observe, uint32_t window)
    : writer_(writer),
      observe_(std::move(observe)),
      window_(window),
      held_(std::min<size_t>(kFirstWindow, window)),
      split_(depths) {
  BLKTAPE_CHECK(std::has_single_bit(window) && !depths.empty());
}

void ResultRecorder::Count(const IssuedIo& io) {
  ++completed_;
  bytes_ += io.bytes;
  if (io.punted) ++punted_;
  if (io.error != 0) {
    ++errors_;
    ++errors_by_errno_[static_cast<int32_t>(io.error)];
  } else if (IsShort(io)) {
    ++short_transfers_;
  }
}

LatenessSplit::Parts ResultRecorder::Split(const IssuedIo& io) {
  const LatenessSplit::Parts parts = split_.Add(io);
  // If a completion was seen late, it is unknown how much of the time the drive took.
  const int64_t host_ns = std::max(parts.lateness_ns, io.seen_ns - io.complete_ns);
  lateness_.Add(host_ns);
  if (host_ns > 100 * kNanosPerMicro) ++late_100us_;
  if (host_ns > kNanosPerMilli) ++late_1ms_;
  return parts;
}

Status ResultRecorder::Write(const IssuedIo& io) {
  if (io.left_out) return OkStatus();
  const LatenessSplit::Parts parts = Split(io);
  if (writer_ == nullptr && !observe_) return OkStatus();
  IoRecord record;
  record.device = io.target;
  record.op = io.op;
  record.flags = io.flags | (parts.backlog_ns > 0 ? kFlagBacklog : 0);
  record.backlog_ns = static_cast<uint64_t>(parts.backlog_ns);
  record.bytes = IsShort(io) ? io.bytes_done : io.bytes;
  record.queue_ns = io.due_ns;
  record.issue_ns = io.issue_ns;
  record.complete_ns = io.complete_ns;
  if (!host_parts_.empty()) {
    const int64_t host_ns = host_parts_[io.target].Of(io.op, io.flags, io.bytes, io.pause_ns);
    record.complete_ns = std::max(io.issue_ns, io.complete_ns - host_ns);
  }
  record.error = io.error;
  record.ordinal = io.ordinal;
  if (io.op != Op::kFlush) record.lba = Lba(io.offset_bytes / kSectorBytes);
  if (writer_ != nullptr) status_ = writer_->Write(record);
  if (observe_) observe_(record);
  return status_;
}

Status ResultRecorder::WriteReady() {
  while (held_count_ > 0) {
    Held& held = held_[next_ % held_.size()];
    if (!held.there) return OkStatus();
    held.there = false;
    --held_count_;
    ++next_;
    RETURN_IF_ERROR(Write(held.io));
  }
  return OkStatus();
}

Status ResultRecorder::Add(const IssuedIo& io) {
  RETURN_IF_ERROR(status_);
  if (!io.left_out) Count(io);
  const uint64_t sequence = io.sequence;
  if (sequence < next_) return Write(io);  // the recorder no longer waits for it
  if (sequence == next_ && held_count_ == 0) {
    ++next_;
    return Write(io);
  }
  while (sequence - next_ >= held_.size()) {
    if (held_.size() < window_) {
      std::vector<Held> larger(held_.size() * 2);
      for (Held& held : held_) {
        if (held.there) larger[held.io.sequence % larger.size()] = held;
      }
      held_ = std::move(larger);
    } else {
      // The window is full: the missing I/Os at the front will be written out of order.
      ++next_;
      RETURN_IF_ERROR(WriteReady());
    }
  }
  held_[sequence % held_.size()] = {.io = io, .there = true};
  ++held_count_;
  return WriteReady();
}

Status ResultRecorder::Flush() {
  RETURN_IF_ERROR(status_);
  while (held_count_ > 0) {
    if (!held_[next_ % held_.size()].there) {
      ++next_;
      continue;
    }
    RETURN_IF_ERROR(WriteReady());
  }
  return OkStatus();
}

void ResultRecorder::Report(proto::ReplayOutcome* outcome) const {
  outcome->set_completed(completed_);
  outcome->set_errors(errors_);
  outcome->set_short_transfers(short_transfers_);
  outcome->set_issued_bytes(bytes_);
  if (punted_ > 0) outcome->set_punted(punted_);
  for (const auto& [error, count] : errors_by_errno_) {
    (*outcome->mutable_errors_by_errno())[error] = count;
  }
  outcome->set_timed_ios(lateness_.count());
  outcome->set_late_100us(late_100us_);
  outcome->set_late_1ms(late_1ms_);
  if (const std::optional<int64_t> p999_ns = lateness_.Quantile(0.999)) {
    outcome->set_lateness_p999_ns(*p999_ns);
  }
}

}  // namespace blktape
