#include "format/frame_ahead.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include "format/column_codec.h"
#include "format/message_stream.h"
#include "format/zstd_frame.h"

namespace blktape {
namespace {

// Content of frames that are under way: with all that is made of them some 64 MiB.
constexpr uint64_t kMostAheadBytes = 16u << 20;
// A usual frame has a handful of messages.
constexpr size_t kUsualMessages = 1'024;

bool HasUnknown(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

}  // namespace

struct FramesAhead::Job {
  uint64_t from_bytes = 0;
  std::optional<FrameSkip> skip;  // before it
  uint64_t content_bytes = 0;
  std::string compressed;
  uint16_t fields = 0;
  std::unique_ptr<DecodedFrame> frame;  // null: it did not hold together
  std::atomic<bool> done = false;
};

// What a thread needs to decode a frame, kept from one to the next.
class FramesAhead::Benches {
 public:
  explicit Benches(const ColumnShelf& shelf) : shelf_(shelf) {}

  void Work(Job* job) {
    std::unique_ptr<Bench> bench = Take();
    const auto content = bench->decompressor.Decompress(std::as_bytes(std::span(job->compressed)),
                                                        job->content_bytes);
    if (content) {
      job->frame = std::make_unique<DecodedFrame>();
      job->frame->from_bytes = job->from_bytes;
      job->frame->to_bytes = job->from_bytes + job->compressed.size();
      job->frame->skip = job->skip;
      job->frame->decoded = Decode(*content, job->fields, bench.get(), job->frame.get());
      if (!job->frame->decoded) {
        job->frame->parts.clear();
        job->frame->content = *content;
      }
    }
    Put(std::move(bench));
    job->done.store(true, std::memory_order_release);
  }

 private:
  struct Bench {
    FrameDecompressor decompressor;
    BatchDecoder decoder;
    proto::Message message;
  };

  std::unique_ptr<Bench> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Bench>();
    std::unique_ptr<Bench> bench = std::move(free_.back());
    free_.pop_back();
    return bench;
  }
  void Put(std::unique_ptr<Bench> bench) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(bench));
  }

  // False where anything is unusual: whoever reads the frame message by message tells what it is.
  bool Decode(std::string_view content, uint16_t fields, Bench* bench, DecodedFrame* frame) {
    proto::Message& message = bench->message;
    if (!TakeDelimited(&content, &message) || !message.has_frame()) return false;
    frame->start = message.frame();
    uint64_t records = 0;
    while (!content.empty()) {
      if (frame->parts.size() == kUsualMessages || !TakeDelimited(&content, &message)) return false;
      if (message.has_header() || message.has_frame()) return false;
      DecodedFrame::Part& part = frame->parts.emplace_back();
      if (!message.has_batch()) {
        part.message.Swap(&message);
        continue;
      }
      records += message.batch().count();
      if (records > kMaxBatchRecords || HasUnknown(message.batch()) ||
          !bench->decoder.Begin(message.batch()).ok() || bench->decoder.unknown_ops() > 0 ||
          message.batch().count() == 0) {
        bench->decoder.Drop();
        return false;
      }
      part.devices = bench->decoder.devices();
      part.columns = shelf_.Take();
      bench->decoder.TakeAll(fields, part.columns.get());
    }
    return true;
  }

  ColumnShelf shelf_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Bench>> free_;
};

FramesAhead::FramesAhead(FrameReader* frames, TaskPool* pool, ColumnShelf* shelf, Skip skip)
    : frames_(frames),
      pool_(pool),
      shelf_(*shelf),
      skip_(std::move(skip)),
      benches_(std::make_shared<Benches>(*shelf)) {}

FramesAhead::~FramesAhead() = default;

void FramesAhead::Drop() {
  ahead_.clear();
  ahead_bytes_ = 0;
  failure_ = OkStatus();
}

Status FramesAhead::ReadAhead(uint16_t fields) {
  const size_t most = static_cast<size_t>(pool_->helpers()) + 1;
  while (failure_.ok() && ahead_.size() < most &&
         (ahead_.empty() || ahead_bytes_ < kMostAheadBytes)) {
    const std::optional<FrameSkip> skip = skip_(frames_->offset());
    if (skip) failure_ = frames_->Seek(skip->to_bytes);
    if (!failure_.ok()) break;
    Result<std::optional<FrameReader::RawFrame>> raw = frames_->NextRaw();
    if (!raw.ok()) {
      failure_ = raw.status();
      break;
    }
    if (!*raw) {
      // Whoever reads on passes over them once more.
      if (skip) failure_ = frames_->Seek(skip->from_bytes);
      break;
    }
    auto job = std::make_shared<Job>();
    job->skip = skip;
    job->from_bytes = (*raw)->from_bytes;
    job->content_bytes = (*raw)->content_bytes;
    job->compressed.assign(reinterpret_cast<const char*>((*raw)->bytes.data()),
                           (*raw)->bytes.size());
    job->fields = fields;
    ahead_bytes_ += job->content_bytes;
    ahead_.push_back(job);
    pool_->Run([job, benches = benches_] { benches->Work(job.get()); });
  }
  return ahead_.empty() ? failure_ : OkStatus();
}

Result<std::unique_ptr<DecodedFrame>> FramesAhead::Next(uint16_t fields) {
  RETURN_IF_ERROR(ReadAhead(fields));
  if (ahead_.empty()) return std::unique_ptr<DecodedFrame>();
  const std::shared_ptr<Job> job = ahead_.front();
  pool_->HelpUntil([&job] { return job->done.load(std::memory_order_acquire); });
  ahead_.pop_front();
  ahead_bytes_ -= job->content_bytes;
  if (job->frame == nullptr) {
    // What was read behind it may lie elsewhere once it is known how far the damage reaches.
    Drop();
    RETURN_IF_ERROR(frames_->Seek(job->skip ? job->skip->from_bytes : job->from_bytes));
    return std::unique_ptr<DecodedFrame>();
  }
  // While this one is looked at.
  (void)ReadAhead(fields);
  return std::move(job->frame);
}

}  // namespace blktape
