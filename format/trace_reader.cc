#include "format/trace_reader.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "format/column_codec.h"
#include "format/frame_index.h"
#include "format/frame_reader.h"
#include "format/message_stream.h"
#include "format/process_dictionary.h"
#include "format/seek_table.h"
#include "format/summary_check.h"
#include "format/trace_identity.h"

namespace blktape {
namespace {

class TraceReaderImpl : public TraceReader {
 public:
  TraceReaderImpl(std::unique_ptr<ByteSource> source, TraceObserver* observer)
      : source_(std::move(source)),
        observer_(observer != nullptr ? observer : &ignore_),
        frames_(source_.get()) {}

  Status Begin() {
    ASSIGN_OR_RETURN(std::optional<End> end, ReadEnd());
    RETURN_IF_ERROR(ReadHeader());
    RETURN_IF_ERROR(CheckUnderstood(header_, name()));
    if (header_.devices_size() > kMaxDevices) {
      return Status(StatusCode::kDataLoss, std::string(name()) + ": the header of the trace has " +
                                               std::to_string(header_.devices_size()) +
                                               " devices, and a trace has at most " +
                                               std::to_string(kMaxDevices));
    }
    trace_ = FrameTrace(header_);
    // One that cannot be this trace's is met again, and reported, where it stands.
    if (end && end->trace == trace_ && WhyNotOurs(end->summary, end->end_bytes) == nullptr) {
      TakeSummary(std::move(end->summary));
    }
    return OkStatus();
  }

  const proto::Header& header() const override { return header_; }
  const std::optional<proto::Summary>& summary() const override { return summary_; }
  uint64_t lost_events() const override { return losses_.lost_events(); }
  std::string_view name() const override { return source_->name(); }

  std::string_view ProcessName(uint32_t id) const override {
    const auto known = names_.find(id);
    return known == names_.end() ? std::string_view() : std::string_view(known->second);
  }

  Result<bool> Next(IoRecord* record) override {
    while (next_in_batch_ == batch_.size()) {
      if (!failure_.ok()) return failure_;
      decoder_.Take(&batch_);
      next_in_batch_ = 0;
      if (!batch_.empty()) break;
      if (at_end_) return false;
      failure_ = rest_.empty() ? NextFrame() : NextMessage();
      if (!failure_.ok()) return failure_;
    }
    // Not of `record`: what was copied just now has to be waited for.
    const IoRecord& next = batch_[next_in_batch_++];
    if (const std::optional<int64_t> arrival_ns = next.arrival_ns()) last_ns_ = arrival_ns;
    *record = next;
    return true;
  }

  Status SkipTo(int64_t arrival_ns) override {
    const proto::FrameIndex* const frame = summary_ ? FindFrame(*summary_, arrival_ns) : nullptr;
    if (frame == nullptr) {
      return Status(StatusCode::kUnimplemented,
                    std::string(name()) + ": no index; it has to be read from the start");
    }
    RETURN_IF_ERROR(frames_.Seek(frame->offset_bytes()));
    skipped_ = true;
    at_end_ = false;
    failure_ = OkStatus();
    decoder_.Drop();
    batch_.clear();
    next_in_batch_ = 0;
    rest_ = {};
    damage_.reset();
    last_ns_.reset();
    next_record_ = frame->first_record();
    next_frame_.reset();
    summary_seen_ = seek_table_seen_ = false;
    return OkStatus();
  }

 private:
  // A byte range that holds no usable frame, while it is not yet known what it held.
  struct Damage {
    uint64_t from_bytes = 0;
    uint64_t to_bytes = 0;
    bool truncated = false;
    std::string reason;
  };

  // The summary at the end of the file.
  struct End {
    proto::Summary summary;
    uint64_t trace = 0;      // its frame's
    uint64_t end_bytes = 0;  // where that ends
  };

  // Absent: there is none that could be read ahead.
  Result<std::optional<End>> ReadEnd() {
    std::optional<End> found;
    const Status rewound =
        source_->size_bytes() ? source_->Seek(0) : Status(StatusCode::kUnimplemented, "a pipe");
    if (rewound.code() == StatusCode::kUnimplemented) return found;
    RETURN_IF_ERROR(rewound);
    can_seek_ = true;
    ASSIGN_OR_RETURN(const std::optional<FrameExtent> last, FindLastFrame(source_.get()));
    if (last) {
      RETURN_IF_ERROR(source_->Seek(last->offset_bytes));
      FrameReader end(source_.get(), last->offset_bytes);
      ASSIGN_OR_RETURN(const FrameReader::Event event, end.Next());
      if (event.kind == FrameReader::Kind::kFrame) {
        std::string_view content = end.content();
        proto::Message start;
        proto::Message message;
        if (TakeDelimited(&content, &start) && start.has_frame() &&
            TakeDelimited(&content, &message) && message.has_summary()) {
          found = End{std::move(*message.mutable_summary()), start.frame().trace(), end.offset()};
        }
      }
    }
    RETURN_IF_ERROR(source_->Seek(0));
    return found;
  }

  // Null where `summary`, whose frame ends at `end_bytes`, can be that of this trace. Not held
  // against the size of the file, which a pipe does not know: either way the same summaries are
  // believed.
  const char* WhyNotOurs(const proto::Summary& summary, uint64_t end_bytes) const {
    return SummaryContradiction(header_, summary, end_bytes);
  }

  Status ReadHeader() {
    ASSIGN_OR_RETURN(const FrameReader::Event event, frames_.Next());
    const std::string where(name());
    if (event.kind == FrameReader::Kind::kEnd) {
      return Status(StatusCode::kDataLoss, where + ": is empty, so no trace");
    }
    if (event.kind != FrameReader::Kind::kFrame) {
      const Status unreadable(
          StatusCode::kDataLoss,
          where + ": the first frame, the header of the trace, is unreadable (bytes " +
              std::to_string(event.from_bytes) + " to " + std::to_string(event.to_bytes) +
              "), or this is no blktape trace");
      return BeginWithCopy(unreadable);
    }
    rest_ = frames_.content();
    Status none(StatusCode::kDataLoss, where + ": is no blktape trace");
    proto::Message message;
    if (!TakeDelimited(&rest_, &message)) return none;
    if (message.has_frame()) return BeginWithCopy(none);  // the beginning is cut off
    if (!message.has_header() || message.header().format_version() == 0) return none;
    header_ = std::move(*message.mutable_header());
    frame_at_ = {0, event.to_bytes};
    return OkStatus();
  }

  // Takes the header from its first copy in the file, and begins to read at the start of that
  // again, where the damage is met and reported. `without` is the failure where there is none.
  Status BeginWithCopy(const Status& without) {
    if (!can_seek_) return without;
    RETURN_IF_ERROR(source_->Seek(0));
    FrameReader frames(source_.get());
    while (!header_copy_at_) {
      ASSIGN_OR_RETURN(const FrameReader::Event event, frames.Next());
      if (event.kind == FrameReader::Kind::kEnd) return without;
      if (event.kind == FrameReader::Kind::kFrame && TakeCopy(frames.content())) {
        header_copy_at_ = event.from_bytes;
      }
    }
    rest_ = {};
    return frames_.Seek(0);
  }

  // Whether this frame has a copy of the header, which header_ then is.
  bool TakeCopy(std::string_view content) {
    proto::Message start;
    proto::Message message;
    if (!TakeDelimited(&content, &start) || !start.has_frame() ||
        !TakeDelimited(&content, &message)) {
      return false;
    }
    if (message.has_summary() && !TakeDelimited(&content, &message)) return false;
    if (!message.has_header_copy() || message.header_copy().format_version() == 0 ||
        FrameTrace(message.header_copy()) != start.frame().trace()) {
      return false;
    }
    header_ = std::move(*message.mutable_header_copy());
    return true;
  }

  Status NextFrame() {
    ASSIGN_OR_RETURN(const FrameReader::Event event, frames_.Next());
    switch (event.kind) {
      case FrameReader::Kind::kFrame:
        frame_at_ = {event.from_bytes, event.to_bytes};
        StartFrame();
        break;
      case FrameReader::Kind::kSeekTable:
        seek_table_seen_ = true;
        break;
      case FrameReader::Kind::kDamage:
        AddDamage({event.from_bytes, event.to_bytes, event.truncated,
                   std::string(event.reason) + OfHeader(event.from_bytes)});
        break;
      case FrameReader::Kind::kEnd:
        AtEnd(event.to_bytes);
        break;
    }
    return OkStatus();
  }

  // What is to be said of damage at the beginning of the file.
  std::string OfHeader(uint64_t from_bytes) const {
    if (from_bytes != 0 || !header_copy_at_) return "";
    return ": the header, read from its copy in the frame at byte " +
           std::to_string(*header_copy_at_);
  }

  // Ranges without a usable frame between them are reported as one.
  void AddDamage(Damage damage) {
    if (!damage_) {
      damage_ = std::move(damage);
      return;
    }
    damage_->to_bytes = damage.to_bytes;
    damage_->truncated = damage.truncated;
  }

  void DamagedFrame(std::string reason) {
    rest_ = {};
    AddDamage({frame_at_.first, frame_at_.second, false, std::move(reason)});
  }

  // frames_.content() is a frame whose checksum held: does it belong here, and what is missing
  // before it?
  void StartFrame() {
    rest_ = frames_.content();
    frame_messages_ = frame_records_ = 0;
    proto::Message message;
    if (!TakeDelimited(&rest_, &message) || !message.has_frame()) {
      DamagedFrame(message.has_header() ? "the header of another trace" : "a frame of no trace");
      return;
    }
    const proto::FrameStart& start = message.frame();
    if (start.trace() != trace_) {
      DamagedFrame("a frame of another trace");
      return;
    }
    if (summary_seen_ || (next_frame_ && start.number() < *next_frame_) ||
        start.first_record() < next_record_) {
      DamagedFrame("a frame that is repeated or out of place");
      return;
    }
    const uint64_t lost = start.first_record() - next_record_;
    if (damage_) {
      ReportDamage(lost);
    } else if (lost != 0 || (next_frame_ && start.number() != *next_frame_)) {
      damage_ = {frame_at_.first, frame_at_.first, false, "frames are missing here"};
      ReportDamage(lost);
    }
    next_record_ = start.first_record();
    next_frame_ = start.number() + 1;
  }

  void ReportDamage(std::optional<uint64_t> lost) {
    proto::Loss loss;
    loss.set_reason(damage_->truncated ? proto::TRUNCATED_INPUT : proto::DAMAGED_INPUT);
    if (lost) loss.set_count(*lost);
    if (last_ns_) loss.set_from_ns(*last_ns_);
    loss.set_from_bytes(damage_->from_bytes);
    loss.set_to_bytes(damage_->to_bytes);
    loss.set_detail(damage_->reason);
    damage_.reset();
    Report(loss);
  }

  void Report(const proto::Loss& loss) {
    losses_.Add(loss);
    observer_->OnLoss(loss);
  }

  Status NextMessage() {
    if (++frame_messages_ > kMaxFrameMessages) {
      DamagedFrame("a frame of more messages than the format allows");
      return OkStatus();
    }
    if (!TakeDelimited(&rest_, &message_)) {
      DamagedFrame("a frame that holds no whole messages");
      return OkStatus();
    }
    switch (message_.kind_case()) {
      case proto::Message::kBatch:
        TakeBatch();
        break;
      case proto::Message::kLoss:
        TakeLoss(message_.mutable_loss());
        break;
      case proto::Message::kAnchor:
        observer_->OnAnchor(message_.anchor());
        break;
      case proto::Message::kQueuedSizes:
        observer_->OnQueuedSizes(message_.queued_sizes());
        break;
      case proto::Message::kProcessNames:
        TakeNames(message_.process_names());
        break;
      case proto::Message::kMark:
        CutDetail(message_.mutable_mark()->mutable_detail());
        observer_->OnMark(message_.mark());
        break;
      case proto::Message::kSummary:
        if (const char* reason = WhyNotOurs(message_.summary(), frames_.offset());
            reason != nullptr) {
          DamagedFrame(std::string("a summary that contradicts the trace: ") + reason);
          break;
        }
        summary_seen_ = true;
        TakeSummary(std::move(*message_.mutable_summary()));
        break;
      case proto::Message::kHeaderCopy:
        break;
      case proto::Message::kHeader:
      case proto::Message::kFrame:
        DamagedFrame("a frame with a message out of place");
        break;
      case proto::Message::KIND_NOT_SET:  // of a newer writer
        if (HasUnknown(message_)) observer_->OnUnknown(message_);
        break;
    }
    return OkStatus();
  }

  void TakeBatch() {
    const Status decoded = decoder_.Begin(message_.batch());
    if (!decoded.ok()) {
      DamagedFrame("a batch of records that contradicts itself: " + decoded.message());
      return;
    }
    if (decoder_.devices() > static_cast<uint64_t>(header_.devices_size())) {
      decoder_.Drop();
      DamagedFrame("a record of a device that the header does not have");
      return;
    }
    frame_records_ += message_.batch().count();
    if (frame_records_ > kMaxBatchRecords) {
      decoder_.Drop();
      DamagedFrame("a frame of more records than the format allows");
      return;
    }
    if (HasUnknown(message_.batch()) || decoder_.unknown_ops() > 0) observer_->OnUnknownColumns();
    next_record_ += message_.batch().count();
    if (decoder_.unknown_ops() > 0) {
      proto::Loss loss;
      loss.set_reason(proto::UNDECODABLE_EVENT);
      loss.set_count(decoder_.unknown_ops());
      if (last_ns_) loss.set_from_ns(*last_ns_);
      loss.set_detail("operations that only a newer version knows");
      Report(loss);
    }
  }

  static bool HasUnknown(const google::protobuf::Message& message) {
    return !message.GetReflection()->GetUnknownFields(message).empty();
  }

  static void CutDetail(std::string* detail) {
    if (detail->size() > kMaxDetailBytes) detail->resize(kMaxDetailBytes);
  }

  void TakeLoss(proto::Loss* loss) {
    loss->set_reason(KnownLossReason(loss->reason()));
    CutDetail(loss->mutable_detail());
    if (loss->has_device() && loss->device() >= static_cast<uint32_t>(header_.devices_size())) {
      loss->clear_device();
    }
    stored_losses_.Add(*loss);
    Report(*loss);
  }

  void TakeName(uint32_t id, std::string_view name) {
    names_[id] = name.substr(0, ProcessDictionary::kMaxNameBytes);
  }

  void TakeNames(const proto::ProcessNames& names) {
    uint32_t id = names.first_id();
    for (const std::string& name : names.names()) {
      // A writer has no more: what refers to one of these has no name.
      if (id >= ProcessDictionary::kMaxNames) return;
      TakeName(id++, name);
    }
  }

  void TakeSummary(proto::Summary summary) {
    for (int id = 0; id < summary.process_names_size(); ++id) {
      TakeName(static_cast<uint32_t>(id), summary.process_names(id));
    }
    for (proto::LossTotal& total : *summary.mutable_losses()) {
      total.set_reason(KnownLossReason(total.reason()));
    }
    summary_ = std::move(summary);
  }

  void AtEnd(uint64_t file_bytes) {
    at_end_ = true;
    if (damage_) {
      // Behind the summary there are no records.
      ReportDamage(summary_seen_ ? std::optional<uint64_t>(0) : std::nullopt);
    } else if (!summary_seen_ || !seek_table_seen_) {
      damage_ = {file_bytes, file_bytes, true,
                 summary_seen_ ? "it ends without its seek table"
                               : "it ends without a summary: the recording was not finished, or "
                                 "the end is cut off"};
      ReportDamage(summary_seen_ ? std::optional<uint64_t>(0) : std::nullopt);
    }
    if (summary_seen_ && !skipped_) CompareWithSummary();
  }

  // A loss that was stored in a frame that is now damaged is still known to the summary.
  void CompareWithSummary() {
    for (const proto::LossTotal& total : summary_->losses()) {
      const auto met = stored_losses_.by_reason().find(total.reason());
      const LossTally::Total seen =
          met == stored_losses_.by_reason().end() ? LossTally::Total() : met->second;
      proto::Loss loss;
      loss.set_reason(total.reason());
      loss.set_detail("known from the summary alone: its place in the trace is damaged");
      if (total.count() > seen.count) {
        loss.set_count(total.count() - seen.count);
        Report(loss);
      }
      if (total.unknowable() > seen.unknowable) {
        loss.clear_count();
        Report(loss);
      }
    }
  }

  const std::unique_ptr<ByteSource> source_;
  TraceObserver ignore_;
  TraceObserver* const observer_;
  FrameReader frames_;
  bool can_seek_ = false;
  proto::Header header_;
  std::optional<uint64_t> header_copy_at_;  // the frame that it was read from, if not the first
  uint64_t trace_ = 0;                      // FrameStart.trace of this trace
  std::optional<proto::Summary> summary_;
  std::map<uint32_t, std::string> names_;

  std::string_view rest_;                   // of the frame, not yet parsed
  std::pair<uint64_t, uint64_t> frame_at_;  // where it lies in the file
  uint64_t frame_messages_ = 0;             // met in it so far
  uint64_t frame_records_ = 0;              // likewise
  proto::Message message_;                  // of it; decoder_ reads its batch
  BatchDecoder decoder_;
  std::vector<IoRecord> batch_;  // what it gave last
  size_t next_in_batch_ = 0;

  uint64_t next_record_ = 0;                // how many records lie before the next message
  std::optional<uint64_t> next_frame_ = 1;  // absent after a skip
  std::optional<Damage> damage_;            // not yet reported
  std::optional<int64_t> last_ns_;          // arrival of the last record
  LossTally losses_;
  LossTally stored_losses_;
  bool summary_seen_ = false;
  bool seek_table_seen_ = false;
  bool skipped_ = false;
  bool at_end_ = false;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path,
                                                       TraceObserver* observer) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenForReading(path));
  return FromSource(std::move(source), observer);
}

Result<std::unique_ptr<TraceReader>> TraceReader::FromSource(std::unique_ptr<ByteSource> source,
                                                             TraceObserver* observer) {
  auto reader = std::make_unique<TraceReaderImpl>(std::move(source), observer);
  RETURN_IF_ERROR(reader->Begin());
  return std::unique_ptr<TraceReader>(std::move(reader));
}

}  // namespace blktape
