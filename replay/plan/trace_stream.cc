#include "replay/plan/trace_stream.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/saturating.h"
#include "format/frame_index.h"

namespace blktape {
namespace {

void ShiftNs(std::optional<int64_t>* time_ns, int64_t by_ns) {
  if (*time_ns) **time_ns = SaturatingAdd(**time_ns, by_ns);
}

}  // namespace

Result<std::unique_ptr<TraceStream>> TraceStream::Open(const std::string& path,
                                                       const TraceStreamOptions& options) {
  // It is read again for its hash and for every pass.
  std::error_code error;
  if (path == "-" || std::filesystem::is_fifo(path, error)) {
    return Status(StatusCode::kInvalidArgument,
                  (path == "-" ? "standard input" : path) +
                      ": a trace that is replayed is read more than once\n  try:  a file");
  }
  std::unique_ptr<TraceStream> stream(new TraceStream(path, options));
  RETURN_IF_ERROR(stream->Rewind());
  if (stream->summary()) RETURN_IF_ERROR(stream->CheckBegin());
  return stream;
}

Status TraceStream::CheckBegin() const {
  if (!options_.from_ns) return OkStatus();
  return CheckPieceBegins(*options_.from_ns, summary(), met_);
}

Status TraceStream::Rewind() {
  ASSIGN_OR_RETURN(reader_, TraceReader::Open(path_));
  next_ordinal_ = 0;
  inside_ = Inside(0);
  delivered_in_pass_ = 0;
  const std::optional<proto::Summary>& summary = reader_->summary();
  if (!trace_first_ns_ && summary && summary->has_first_ns()) {
    trace_first_ns_ = summary->first_ns();
  }
  if (!options_.from_ns || !trace_first_ns_ || !summary) return OkStatus();
  const int64_t from_ns = SaturatingAdd(*trace_first_ns_, *options_.from_ns);
  const proto::FrameIndex* const frame = FindFrame(*summary, from_ns);
  if (frame == nullptr || !reader_->SkipTo(from_ns).ok()) return OkStatus();  // from the start
  next_ordinal_ = frame->first_record();
  return OkStatus();
}

// A record without any time is of the same piece as the one before it.
bool TraceStream::Inside(int64_t at_ns) const {
  return at_ns >= options_.from_ns.value_or(at_ns) && (!options_.to_ns || at_ns < *options_.to_ns);
}

// Whether only records beyond the piece can follow one of this time.
bool TraceStream::EndsAt(int64_t at_ns) const {
  const std::optional<proto::Summary>& summary = reader_->summary();
  return options_.to_ns && summary && summary->has_late_ns_max() &&
         at_ns >= SaturatingAdd(*options_.to_ns, summary->late_ns_max());
}

Result<bool> TraceStream::NextOfPass(IoRecord* record, uint64_t* ordinal) {
  while (!piece_end_ || next_ordinal_ < *piece_end_) {
    ASSIGN_OR_RETURN(const bool more, reader_->Next(record));
    if (!more) return false;
    *ordinal = next_ordinal_++;
    const std::optional<int64_t> arrival_ns = record->arrival_ns();
    met_.Add(arrival_ns);
    if (arrival_ns) {
      if (!trace_first_ns_) trace_first_ns_ = arrival_ns;
      const int64_t at_ns = SaturatingSubtract(*arrival_ns, *trace_first_ns_);
      inside_ = Inside(at_ns);
      if (EndsAt(at_ns)) return false;
    }
    if (inside_) return true;
  }
  return false;
}

Result<bool> TraceStream::Next(IoRecord* record, uint64_t* ordinal) {
  while (true) {
    ASSIGN_OR_RETURN(const bool more, NextOfPass(record, ordinal));
    if (more) break;
    const bool empty_pass = delivered_in_pass_ == 0;
    if (empty_pass) RETURN_IF_ERROR(CheckBegin());
    ++passes_done_;
    if (empty_pass || (options_.loops != 0 && passes_done_ >= options_.loops)) return false;
    lost_before_ = lost_events();
    piece_end_ = last_ordinal_ + 1;
    if (first_ns_) shift_ns_ = SaturatingAdd(shift_ns_, SaturatingSubtract(last_ns_, *first_ns_));
    RETURN_IF_ERROR(Rewind());
  }
  ++delivered_in_pass_;
  last_ordinal_ = *ordinal;
  if (const std::optional<int64_t> arrival_ns = record->arrival_ns()) {
    if (!first_ns_) {
      first_ns_ = arrival_ns;
      last_ns_ = *arrival_ns;
    }
    last_ns_ = std::max({last_ns_, *arrival_ns, record->complete_ns.value_or(*arrival_ns)});
  }
  if (shift_ns_ != 0) {
    ShiftNs(&record->queue_ns, shift_ns_);
    ShiftNs(&record->issue_ns, shift_ns_);
    ShiftNs(&record->complete_ns, shift_ns_);
  }
  return true;
}

std::optional<uint64_t> TraceStream::records() const {
  const std::optional<proto::Summary>& summary = reader_->summary();
  if (!summary || options_.from_ns || options_.to_ns || options_.loops == 0) return std::nullopt;
  uint64_t records = 0;
  if (__builtin_mul_overflow(summary->records(), options_.loops, &records)) return std::nullopt;
  return records;
}

std::optional<uint64_t> TraceStream::data_bytes() const {
  const std::optional<proto::Summary>& summary = reader_->summary();
  if (!summary || options_.loops != 1) return std::nullopt;
  return summary->read_bytes() + summary->write_bytes();
}

std::optional<uint64_t> TraceStream::mean_data_bytes() const {
  const std::optional<proto::Summary>& summary = reader_->summary();
  if (!summary) return std::nullopt;
  uint64_t moving = 0;
  for (const auto& [op, records] : summary->records_by_op()) {
    const bool moves =
        op == static_cast<uint32_t>(Op::kRead) || op == static_cast<uint32_t>(Op::kWrite);
    if (moves) moving += records;
  }
  if (moving == 0) return std::nullopt;
  return (summary->read_bytes() + summary->write_bytes()) / moving;
}

std::optional<int64_t> TraceStream::span_ns() const {
  const std::optional<proto::Summary>& summary = reader_->summary();
  if (!summary || !summary->has_first_ns() || !summary->has_last_ns() || options_.loops == 0) {
    return std::nullopt;
  }
  const int64_t whole_ns = SaturatingSubtract(summary->last_ns(), summary->first_ns());
  const int64_t from_ns = std::min(options_.from_ns.value_or(0), whole_ns);
  const int64_t to_ns = std::min(options_.to_ns.value_or(whole_ns), whole_ns);
  int64_t span_ns = 0;
  const int64_t pass_ns = std::max<int64_t>(to_ns - from_ns, 0);
  if (__builtin_mul_overflow(pass_ns, options_.loops, &span_ns)) return std::nullopt;
  return span_ns;
}

}  // namespace blktape
