#include "format/trace_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/saturating.h"
#include "base/version.h"
#include "format/column_codec.h"
#include "format/frame_index.h"
#include "format/frame_writer.h"
#include "format/loss.h"
#include "format/message_stream.h"
#include "format/process_dictionary.h"
#include "format/trace_identity.h"

namespace blktape {
namespace {

// A plane with fewer bytes is too small for its own entropy table (docs/trace_format.md).
constexpr uint32_t kMinSplitRecords = 400;
// A frame that contains only losses or marks ends here too.
constexpr size_t kFrameMessagesBytes = 4u << 20;
// Before each may stand a batch and names.
constexpr uint64_t kFrameMessages = kMaxFrameMessages / 4;
// Bounds the memory of CountQueued.
constexpr size_t kMaxQueuedSizes = 16'384;

class TraceWriterImpl : public TraceWriter {
 public:
  TraceWriterImpl(ByteSink* sink, const TraceWriterOptions& options)
      : frames_(sink, options.zstd_level),
        records_per_frame_(std::clamp(options.records_per_frame, 1u, kMaxBatchRecords)) {}

  Status Begin(const proto::Header& header) {
    proto::Message message;
    proto::Header* const written = message.mutable_header();
    *written = header;
    written->set_format_version(header.needs().empty() ? 1 : kFormatVersionOfNeeds);
    if (header.tool_version().empty()) written->set_tool_version(kVersion);
    MakeStringsUtf8(&message);
    written->set_trace_id(NewTraceId(*written));
    trace_ = FrameTrace(*written);
    if (message.ByteSizeLong() > kMaxSmallMessageBytes || header.devices_size() > kMaxDevices) {
      return Status(StatusCode::kInvalidArgument, "the trace header is too large");
    }
    device_count_ = static_cast<uint32_t>(header.devices_size());
    std::string content;
    AppendDelimited(message, &content);
    proto::Message copy;
    copy.mutable_header_copy()->Swap(written);
    AppendDelimited(copy, &header_copy_);
    return frames_.Write(content);
  }

  uint32_t ProcessId(std::string_view name) override { return processes_.IdOf(name); }

  Status Write(const IoRecord& record) override {
    RETURN_IF_ERROR(Usable());
    if (record.device >= device_count_) {
      return Status(StatusCode::kInvalidArgument,
                    "a record of device " + std::to_string(record.device) +
                        ", but the trace header has " + std::to_string(device_count_));
    }
    pending_.Add(record);
    Count(record);
    return EndFrameIfFull();
  }

  Status WriteLoss(const proto::Loss& loss) override {
    RETURN_IF_ERROR(Usable());
    losses_.Add(loss);
    contents_.AddOther();
    proto::Message message;
    *message.mutable_loss() = loss;
    return Append(&message);
  }

  Status WriteAnchor(const proto::ClockAnchor& anchor) override {
    RETURN_IF_ERROR(Usable());
    proto::Message message;
    *message.mutable_anchor() = anchor;
    contents_.AddAnchor();
    return Append(&message);
  }

  Status WriteMark(const proto::Mark& mark) override {
    RETURN_IF_ERROR(Usable());
    proto::Message message;
    *message.mutable_mark() = mark;
    contents_.AddOther();
    return Append(&message);
  }

  Status WriteUnknown(const proto::Message& unknown) override {
    RETURN_IF_ERROR(Usable());
    proto::Message message = unknown;
    contents_.AddOther();
    return Append(&message);
  }

  void CountQueued(Op op, uint64_t bytes, uint64_t count) override {
    if (op == Op::kFlush && bytes == 0) {
      flushes_asked_ += count;
      return;
    }
    queued_[{static_cast<uint32_t>(op), bytes}] += count;
    if (queued_.size() < kMaxQueuedSizes) return;
    AppendQueuedSizes();
    (void)EndFrameIfFull();  // the next call tells of a failure
  }

  void CountFlaggedWrites(uint64_t count) override { flagged_writes_ += count; }

  Status FlushFrame(bool sync) override {
    RETURN_IF_ERROR(Usable());
    RETURN_IF_ERROR(EndFrame());
    return sync ? frames_.Sync() : OkStatus();
  }

  Status Finish(const proto::Summary& extra) override {
    RETURN_IF_ERROR(Usable());
    RETURN_IF_ERROR(EndFrame());
    finished_ = true;
    proto::Message message;
    FillSummary(extra, message.mutable_summary());
    MakeStringsUtf8(&message);
    if (message.ByteSizeLong() > kMaxSmallMessageBytes) {
      return Status(StatusCode::kInvalidArgument, "the summary of the trace is too large");
    }
    AppendDelimited(message, &content_);
    content_ += header_copy_;
    RETURN_IF_ERROR(EmitFrame(std::nullopt));
    RETURN_IF_ERROR(frames_.WriteSeekTable());
    return frames_.Sync();
  }

  const LossTally& loss_tally() const override { return losses_; }
  uint64_t records() const override { return records_; }
  bool in_order() const override { return late_ns_max_ == 0; }
  uint64_t bytes_written() const override { return frames_.offset_bytes(); }

 private:
  Status Usable() const {
    BLKTAPE_CHECK(!finished_);
    return frames_.status();
  }

  void Count(const IoRecord& record) {
    ++records_;
    contents_.Add(record);
    ++records_by_op_[static_cast<int>(record.op)];
    if (record.op == Op::kRead) read_bytes_ += record.bytes;
    if (record.op == Op::kWrite || record.op == Op::kZoneAppend) write_bytes_ += record.bytes;
    if (record.op == Op::kDiscard) discard_bytes_ += record.bytes;
    if (record.complete_ns) ++completed_;
    CountExtent(record);
    if (const std::optional<int64_t> arrival_ns = record.arrival_ns()) {
      if (!frame_first_ns_) frame_first_ns_ = arrival_ns;
      first_ns_ = std::min(first_ns_.value_or(*arrival_ns), *arrival_ns);
      last_ns_ = std::max(last_ns_.value_or(*arrival_ns), *arrival_ns);
      late_ns_max_ = std::max(late_ns_max_, SaturatingSubtract(*last_ns_, *arrival_ns));
    }
  }

  void CountExtent(const IoRecord& record) {
    if (record.device >= extents_.size()) extents_.resize(record.device + 1);
    Extent& extent = extents_[record.device];
    ++extent.records;
    if (!record.lba || record.bytes == 0) return;
    const uint64_t begin_bytes = record.lba->bytes();
    extent.begin_bytes = std::min(extent.begin_bytes, begin_bytes);
    extent.end_bytes = std::max(extent.end_bytes, SaturatingAdd(begin_bytes, record.bytes));
    extent.address_bits |= begin_bytes | record.bytes;
  }

  // Messages keep their place between the records: those before go into a batch first.
  Status Append(proto::Message* message) {
    MakeStringsUtf8(message);
    AppendPendingBatch();
    AppendDelimited(*message, &content_);
    ++frame_messages_;
    return EndFrameIfFull();
  }

  void AppendPendingBatch() {
    AppendNewProcessNames();
    if (pending_.count() == 0) return;
    frame_records_ += pending_.count();
    pending_.Finish(batch_.mutable_batch());
    AppendDelimited(batch_, &content_);
    if (batch_.batch().count() < kMinSplitRecords) return;
    const size_t batch_begin = content_.size() - batch_.batch().ByteSizeLong();
    for (const size_t end : PlaneEnds(batch_.batch())) block_ends_.push_back(batch_begin + end);
  }

  void AppendNewProcessNames() {
    const std::vector<std::string>& names = processes_.names();
    if (names_written_ == names.size()) return;
    proto::Message message;
    message.mutable_process_names()->set_first_id(names_written_);
    for (; names_written_ < names.size(); ++names_written_) {
      message.mutable_process_names()->add_names(names[names_written_]);
    }
    AppendDelimited(message, &content_);
  }

  void AppendQueuedSizes() {
    if (queued_.empty() && flushes_asked_ == 0 && flagged_writes_ == 0) return;
    AppendPendingBatch();
    proto::Message message;
    proto::QueuedSizes* const sizes = message.mutable_queued_sizes();
    for (const auto& [key, count] : queued_) {
      proto::QueuedSizes::Entry* const entry = sizes->add_entries();
      entry->set_op(key.first);
      entry->set_bytes(key.second);
      entry->set_count(count);
    }
    sizes->set_flushes_asked(std::exchange(flushes_asked_, 0));
    sizes->set_flagged_writes(std::exchange(flagged_writes_, 0));
    queued_.clear();
    contents_.AddQueuedSizes();
    AppendDelimited(message, &content_);
  }

  Status EndFrameIfFull() {
    if (frame_records_ + pending_.count() >= records_per_frame_ ||
        content_.size() >= kFrameMessagesBytes || frame_messages_ >= kFrameMessages) {
      return EndFrame();
    }
    return OkStatus();
  }

  Status EndFrame() {
    AppendPendingBatch();
    AppendQueuedSizes();
    if (content_.empty()) return OkStatus();
    return EmitFrame(frame_first_ns_);
  }

  // Writes content_ as a frame, its FrameStart in front.
  Status EmitFrame(std::optional<int64_t> first_ns) {
    const uint64_t first_record = records_ - frame_records_;
    proto::Message start;
    start.mutable_frame()->set_number(++frame_number_);
    start.mutable_frame()->set_first_record(first_record);
    start.mutable_frame()->set_trace(trace_);
    if (first_ns) start.mutable_frame()->set_first_ns(*first_ns);
    std::string prefix;
    AppendDelimited(start, &prefix);
    if (HasHeaderCopy(frame_number_) && !finished_) prefix += header_copy_;
    content_.insert(0, prefix);
    for (size_t& end : block_ends_) end += prefix.size();
    index_.Add(frames_.offset_bytes(), first_ns, first_record, std::exchange(contents_, {}));
    const Status status = frames_.Write(content_, block_ends_);
    content_.clear();
    block_ends_.clear();
    frame_records_ = frame_messages_ = 0;
    frame_first_ns_.reset();
    return status;
  }

  void FillSummary(const proto::Summary& extra, proto::Summary* summary) const {
    *summary = extra;
    summary->set_records(records_);
    summary->clear_first_ns();
    summary->clear_last_ns();
    if (first_ns_) summary->set_first_ns(*first_ns_);
    if (last_ns_) summary->set_last_ns(*last_ns_);
    summary->set_late_ns_max(late_ns_max_);
    summary->clear_losses();
    for (const auto& [reason, total] : losses_.by_reason()) {
      proto::LossTotal* const loss = summary->add_losses();
      loss->set_reason(reason);
      loss->set_count(total.count);
      loss->set_unknowable(total.unknowable);
    }
    summary->clear_records_by_op();
    for (int op = 0; op < kOpCount; ++op) {
      if (records_by_op_[op] != 0) (*summary->mutable_records_by_op())[op] = records_by_op_[op];
    }
    summary->set_read_bytes(read_bytes_);
    summary->set_write_bytes(write_bytes_);
    summary->set_discard_bytes(discard_bytes_);
    summary->set_completed(completed_);
    summary->clear_extents();
    for (uint32_t device = 0; device < extents_.size(); ++device) {
      const Extent& extent = extents_[device];
      if (extent.records == 0) continue;
      proto::DeviceExtent* const stored = summary->add_extents();
      stored->set_device(device);
      stored->set_records(extent.records);
      stored->set_begin_bytes(extent.end_bytes == 0 ? 0 : extent.begin_bytes);
      stored->set_end_bytes(extent.end_bytes);
      stored->set_address_bits(extent.address_bits);
    }
    index_.Store(summary);
    summary->clear_process_names();
    for (const std::string& name : processes_.names()) summary->add_process_names(name);
  }

  FrameWriter frames_;
  const uint32_t records_per_frame_;
  uint32_t device_count_ = 0;
  uint64_t trace_ = 0;  // of every FrameStart
  std::string header_copy_;
  bool finished_ = false;

  // The frame being filled: messages so far, then the records that form its next batch.
  std::string content_;
  std::vector<size_t> block_ends_;
  BatchEncoder pending_;
  proto::Message batch_;  // kept for its memory
  uint64_t frame_number_ = 0;
  uint64_t frame_records_ = 0;   // in content_
  uint64_t frame_messages_ = 0;  // of Append, likewise
  std::optional<int64_t> frame_first_ns_;
  FrameContents contents_;  // of the frame

  ProcessDictionary processes_;
  uint32_t names_written_ = 0;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> queued_;  // (op, bytes) to count
  uint64_t flushes_asked_ = 0;
  uint64_t flagged_writes_ = 0;

  // Of the whole trace, for the summary.
  uint64_t records_ = 0;
  uint64_t records_by_op_[kOpCount] = {};
  uint64_t read_bytes_ = 0;
  uint64_t write_bytes_ = 0;
  uint64_t discard_bytes_ = 0;
  uint64_t completed_ = 0;
  // As proto::DeviceExtent.
  struct Extent {
    uint64_t records = 0;
    uint64_t begin_bytes = std::numeric_limits<uint64_t>::max();
    uint64_t end_bytes = 0;
    uint64_t address_bits = 0;
  };
  std::vector<Extent> extents_;  // by device
  std::optional<int64_t> first_ns_;
  std::optional<int64_t> last_ns_;
  int64_t late_ns_max_ = 0;
  LossTally losses_;
  FrameIndexBuilder index_;
};

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::ToSink(ByteSink* sink,
                                                         const proto::Header& header,
                                                         const TraceWriterOptions& options) {
  auto writer = std::make_unique<TraceWriterImpl>(sink, options);
  RETURN_IF_ERROR(writer->Begin(header));
  return std::unique_ptr<TraceWriter>(std::move(writer));
}

}  // namespace blktape
