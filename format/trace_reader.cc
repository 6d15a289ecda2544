#include "format/trace_reader.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "format/column_codec.h"
#include "format/frame_ahead.h"
#include "format/frame_index.h"
#include "format/frame_reader.h"
#include "format/message_stream.h"
#include "format/process_dictionary.h"
#include "format/summary_check.h"
#include "format/trace_end.h"
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
    ASSIGN_OR_RETURN(can_seek_, Rewind());
    std::optional<TraceEnd> end;
    if (can_seek_) {
      ASSIGN_OR_RETURN(end, ReadTraceEnd(source_.get()));
      RETURN_IF_ERROR(source_->Seek(0));
    }
    RETURN_IF_ERROR(ReadHeader());
    RETURN_IF_ERROR(CheckUnderstood(header_, name()));
    if (header_.devices_size() > kMaxDevices) {
      return Status(StatusCode::kDataLoss, std::string(name()) + ": the header of the trace has " +
                                               std::to_string(header_.devices_size()) +
                                               " devices, and a trace has at most " +
                                               std::to_string(kMaxDevices));
    }
    trace_ = FrameTrace(header_);
    // A summary that cannot belong to this trace is read again, and reported, at its place.
    if (end && end->trace == trace_ && WhyNotOurs(end->summary, end->end_bytes) == nullptr) {
      TakeSummary(std::move(end->summary));
      summary_at_ = end->begin_bytes;
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
    // Not from `record`: reading what was just copied would wait for the store.
    const IoRecord& next = batch_[next_in_batch_++];
    if (const std::optional<int64_t> arrival_ns = next.arrival_ns()) last_ns_ = arrival_ns;
    *record = next;
    return true;
  }

  Result<std::shared_ptr<RecordColumns>> NextColumns(uint16_t fields) override {
    fields_ = fields;
    as_columns_ = true;
    while (true) {
      if (!failure_.ok()) return failure_;
      if (columns_ != nullptr) {
        SetLastArrival(*columns_);
        return std::exchange(columns_, nullptr);
      }
      if (at_end_) return std::shared_ptr<RecordColumns>();
      failure_ = next_part_ < parts_.size() ? NextPart()
                 : rest_.empty()            ? NextFrame()
                                            : NextMessage();
    }
  }

  void DecodeAhead(TaskPool* pool) override {
    ahead_ = pool == nullptr || !can_seek_
                 ? nullptr
                 : std::make_unique<FramesAhead>(
                       &frames_, pool, &shelf_, [this](uint64_t offset) { return SkipAt(offset); });
  }

  void SkipFramesUnless(std::function<bool(const proto::FrameContents&)> wanted,
                        int64_t before_ns) override {
    if (summary_at_) choice_ = FrameChoice{std::move(wanted), before_ns};
  }

  uint64_t skipped_records() const override { return skipped_records_; }

  Status SkipTo(int64_t arrival_ns) override {
    const proto::FrameIndex* const frame = summary_ ? FindFrame(*summary_, arrival_ns) : nullptr;
    if (frame == nullptr) {
      return Status(StatusCode::kUnimplemented,
                    std::string(name()) + ": no index; it has to be read from the start");
    }
    if (ahead_ != nullptr) ahead_->Drop();
    RETURN_IF_ERROR(frames_.Seek(frame->offset_bytes()));
    skipped_ = true;
    at_end_ = false;
    failure_ = OkStatus();
    decoder_.Drop();
    batch_.clear();
    next_in_batch_ = 0;
    columns_ = nullptr;
    parts_.clear();
    rest_ = {};
    damage_.reset();
    last_ns_.reset();
    next_record_ = frame->first_record();
    next_frame_.reset();
    summary_seen_ = seek_table_seen_ = false;
    return OkStatus();
  }

 private:
  // A byte range without a usable frame, while it is not yet known what is missing.
  struct Damage {
    uint64_t from_bytes = 0;
    uint64_t to_bytes = 0;
    bool truncated = false;
    std::string reason;
  };

  // Null if `summary`, whose frame ends at `end_bytes`, can belong to this trace. Not checked
  // against the size of the file, which is unknown for a pipe: so a file and a pipe accept the same
  // summaries.
  const char* WhyNotOurs(const proto::Summary& summary, uint64_t end_bytes) const {
    return SummaryContradiction(header_, summary, end_bytes);
  }

  // False: a pipe, which is read once, from start to end.
  Result<bool> Rewind() {
    const Status rewound =
        source_->size_bytes() ? source_->Seek(0) : Status(StatusCode::kUnimplemented, "a pipe");
    if (rewound.code() == StatusCode::kUnimplemented) return false;
    RETURN_IF_ERROR(rewound);
    return true;
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

  // Takes the header from its first copy in the file and starts reading at the file's start again,
  // where the damage is found and reported. `without` is the failure to return if there is no copy.
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

  // As it was in the records that `columns` holds, if any of them has one.
  void SetLastArrival(const RecordColumns& columns) {
    for (size_t i = columns.count; i-- > 0;) {
      if (columns.Has(i, RecordColumns::kQueue | RecordColumns::kIssue)) {
        last_ns_ =
            columns.Has(i, RecordColumns::kQueue) ? columns.queue_ns[i] : columns.issue_ns[i];
        return;
      }
    }
  }

  Status NextFrame() {
    parts_.clear();
    next_part_ = 0;
    if (ahead_ != nullptr && as_columns_) {
      ASSIGN_OR_RETURN(current_, ahead_->Next(fields_));
      if (current_ != nullptr && current_->skip && !LandsWell(*current_)) {
        // Perhaps it was passed over before the damage in front of it was known.
        ahead_->Drop();
        RETURN_IF_ERROR(frames_.Seek(current_->skip->from_bytes));
        ASSIGN_OR_RETURN(current_, ahead_->Next(fields_));
      }
      if (current_ != nullptr) {
        frame_at_ = {current_->from_bytes, current_->to_bytes};
        StartFrame(current_->content);
        return OkStatus();
      }
    }
    const std::optional<FrameSkip> skip = SkipAt(frames_.offset());
    if (skip) RETURN_IF_ERROR(frames_.Seek(skip->to_bytes));
    ASSIGN_OR_RETURN(FrameReader::Event event, frames_.Next());
    if (skip && !(event.kind == FrameReader::Kind::kFrame &&
                  TakeSkip(*skip, FirstRecordOf(frames_.content())))) {
      choice_.reset();
      RETURN_IF_ERROR(frames_.Seek(skip->from_bytes));
      ASSIGN_OR_RETURN(event, frames_.Next());
    }
    switch (event.kind) {
      case FrameReader::Kind::kFrame:
        frame_at_ = {event.from_bytes, event.to_bytes};
        current_ = nullptr;
        StartFrame(frames_.content());
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

  // What to skip from there on. Nothing behind damage: the frame behind it tells what is missing.
  std::optional<FrameSkip> SkipAt(uint64_t offset_bytes) const {
    if (!choice_ || damage_ || !summary_) return std::nullopt;
    return FindSkip(*summary_, *summary_at_, *choice_, offset_bytes);
  }

  // Of a frame's content; absent: it does not begin as a frame does.
  static std::optional<uint64_t> FirstRecordOf(std::string_view content) {
    proto::Message message;
    if (!TakeDelimited(&content, &message) || !message.has_frame()) return std::nullopt;
    return message.frame().first_record();
  }

  bool LandsWell(const DecodedFrame& frame) {
    return TakeSkip(*frame.skip, frame.decoded ? std::optional(frame.start.first_record())
                                               : FirstRecordOf(frame.content));
  }

  // `first_record` is that of the frame behind it. False, and nothing is skipped, where it does not
  // fit to what was read before and behind it: then the file is not what the index says, and from
  // now on all of it is read.
  bool TakeSkip(const FrameSkip& skip, std::optional<uint64_t> first_record) {
    if (damage_) return false;
    if (skip.to_record < next_record_ || first_record != skip.to_record) {
      choice_.reset();
      return false;
    }
    skipped_records_ += skip.to_record - next_record_;
    next_record_ = skip.to_record;
    next_frame_.reset();
    return true;
  }

  // The message about damage at the beginning of the file.
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
    parts_.clear();
    AddDamage({frame_at_.first, frame_at_.second, false, std::move(reason)});
  }

  // `content` is a frame's whose checksum held: does it belong here, and what is missing before it?
  // That of current_ may have been taken to pieces in advance.
  void StartFrame(std::string_view content) {
    rest_ = content;
    frame_messages_ = frame_records_ = 0;
    proto::Message message;
    if (current_ != nullptr && current_->decoded) {
      rest_ = {};
      *message.mutable_frame() = current_->start;
      parts_ = std::move(current_->parts);
      next_part_ = 0;
    } else if (!TakeDelimited(&rest_, &message) || !message.has_frame()) {
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
    TakeMessage();
    return OkStatus();
  }

  // Of a frame that was decoded ahead.
  Status NextPart() {
    DecodedFrame::Part& part = parts_[next_part_++];
    if (part.columns == nullptr) {
      message_ = std::move(part.message);
      TakeMessage();
    } else if (part.devices > static_cast<uint64_t>(header_.devices_size())) {
      DamagedFrame(kStrangeDevice);
    } else {
      next_record_ += part.columns->count;
      columns_ = std::move(part.columns);
    }
    return OkStatus();
  }

  void TakeMessage() {
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
        if (const char* reason = WhyNotOurs(message_.summary(), frame_at_.second);
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
  }

  void TakeBatch() {
    const Status decoded = decoder_.Begin(message_.batch());
    if (!decoded.ok()) {
      DamagedFrame("a batch of records that contradicts itself: " + decoded.message());
      return;
    }
    if (decoder_.devices() > static_cast<uint64_t>(header_.devices_size())) {
      decoder_.Drop();
      DamagedFrame(kStrangeDevice);
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
    if (!as_columns_) return;
    columns_ = shelf_.Take();
    decoder_.TakeAll(fields_, columns_.get());
    if (columns_->count == 0) columns_ = nullptr;
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
      // Writers have no more names: a record that refers to one of these has no name.
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
      // There are no records after the summary.
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
  static constexpr const char* kStrangeDevice =
      "a record of a device that the header does not have";

  FrameReader frames_;
  ColumnShelf shelf_;
  std::unique_ptr<FramesAhead> ahead_;  // null: each frame is decoded when it is asked for
  bool can_seek_ = false;
  proto::Header header_;
  std::optional<uint64_t> header_copy_at_;  // the frame that it was read from, if not the first
  uint64_t trace_ = 0;                      // FrameStart.trace of this trace
  std::optional<proto::Summary> summary_;
  std::optional<uint64_t> summary_at_;  // where its frame lies, if it was read first of all
  std::optional<FrameChoice> choice_;   // absent: nothing is skipped
  uint64_t skipped_records_ = 0;
  std::map<uint32_t, std::string> names_;

  std::unique_ptr<DecodedFrame> current_;  // where ahead_ gave the frame under way
  std::vector<DecodedFrame::Part> parts_;  // of it, if it was decoded
  size_t next_part_ = 0;
  bool as_columns_ = false;
  uint16_t fields_ = 0;
  std::shared_ptr<RecordColumns> columns_;  // taken, not yet handed out

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
