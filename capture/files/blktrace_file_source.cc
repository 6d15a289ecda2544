#include "capture/files/blktrace_file_source.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/kernel_dev.h"
#include "base/ring_queue.h"
#include "base/units.h"
#include "capture/files/step_by_time.h"
#include "capture/source/ignoring_sink.h"

namespace blktape {
namespace {

// "sda" of "/x/sda.blktrace.0.zst"; empty if the file is called otherwise.
std::string DiskOf(std::string_view path) {
  const std::string file = std::filesystem::path(path).filename().string();
  const size_t end = file.find(".blktrace");
  return end == std::string::npos ? std::string() : file.substr(0, end);
}

}  // namespace

// One file, decoded a chunk at a time. What the decoder delivers waits here.
class BlktraceFileSource::Input : private IgnoringSink {
 public:
  Input(std::unique_ptr<ByteSource> source, uint32_t number)
      : source_(std::move(source)), number_(number), buffer_(kStepChunkBytes) {
    Rewind();
  }

  // Reads on until more than kStepAhead items wait or the file has ended.
  Status Fill() {
    bool read = false;
    while (!ended_ && items_.size() <= kStepAhead) {
      RETURN_IF_ERROR(ReadChunk(this));
      read = true;
    }
    if (!read) return OkStatus();
    SetPlaces(
        [](const Item& item) {
          return item.kind == Item::kEvent ? std::optional(item.event.time_ns) : std::nullopt;
        },
        &items_);
    return OkStatus();
  }

  bool empty() const { return items_.empty(); }
  int64_t place_ns() const { return items_.front().place_ns; }

  // Delivers the first item; `shift_ns` moves anchors.
  void DeliverOne(int64_t shift_ns, CaptureSink* sink) {
    const Item& item = items_.front();
    switch (item.kind) {
      case Item::kEvent:
        sink->OnEvent(item.stream, item.event);
        break;
      case Item::kName:
        sink->OnProcessName(item.event.pid, item.event.time_ns, item.event.comm);
        break;
      case Item::kAnchor: {
        proto::ClockAnchor anchor = anchors_.front();
        anchors_.pop_front();
        anchor.set_monotonic_ns(anchor.monotonic_ns() + shift_ns);
        sink->OnAnchor(anchor);
        break;
      }
      case Item::kLoss:
        sink->OnLoss(losses_.front());
        losses_.pop_front();
        break;
    }
    items_.pop_front();
  }

  // Reads the whole file into `sink`.
  Status ReadAll(CaptureSink* sink) {
    while (!ended_) RETURN_IF_ERROR(ReadChunk(sink));
    return OkStatus();
  }

  Status Restart() {
    Rewind();
    return source_->Seek(0);
  }

  std::string disk() const { return DiskOf(source_->name()); }
  uint64_t read_bytes() const { return decoder_->bytes(); }
  int version() const { return decoder_->version(); }

 private:
  struct Item {
    enum Kind : uint8_t { kEvent, kName, kAnchor, kLoss };
    Kind kind = kEvent;
    uint32_t stream = 0;
    int64_t place_ns = 0;
    BlockEvent event;  // of a name: pid and comm
  };

  Item& Push(Item::Kind kind) {
    items_.push_back(Item());
    items_.back().kind = kind;
    return items_.back();
  }

  void Rewind() {
    decoder_.emplace(std::string(source_->name()), number_ * kBlktraceStreamsPerFile);
    ended_ = false;
  }

  Status ReadChunk(CaptureSink* sink) {
    const Result<size_t> got = source_->Read(buffer_);
    if (!got.ok() && got.status().code() != StatusCode::kDataLoss) return got.status();
    if (got.ok() && *got > 0) {
      decoder_->Decode(std::span(buffer_).first(*got), sink);
      return OkStatus();
    }
    decoder_->Finish(sink);
    if (!got.ok()) {  // the compressed file is damaged; what came before is good
      proto::Loss loss;
      loss.set_reason(proto::DAMAGED_INPUT);
      loss.set_from_bytes(decoder_->bytes());
      loss.set_detail(got.status().message());
      sink->OnLoss(loss);
    }
    ended_ = true;
    return OkStatus();
  }

  void OnEvent(uint32_t stream, const BlockEvent& event) override {
    Push(Item::kEvent).stream = stream;
    items_.back().event = event;
  }
  void OnProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) override {
    BlockEvent& event = Push(Item::kName).event;
    event.pid = pid;
    event.time_ns = since_ns;
    event.comm = comm;
  }
  void OnAnchor(const proto::ClockAnchor& anchor) override {
    anchors_.push_back(anchor);
    Push(Item::kAnchor);
  }
  void OnLoss(const proto::Loss& loss) override {
    losses_.push_back(loss);
    Push(Item::kLoss);
  }

  std::unique_ptr<ByteSource> source_;
  uint32_t number_;
  std::vector<std::byte> buffer_;
  std::optional<BlktraceDecoder> decoder_;
  bool ended_ = false;
  RingQueue<Item> items_;
  RingQueue<proto::ClockAnchor> anchors_;
  RingQueue<proto::Loss> losses_;
};

// What the first pass learns of one file.
class BlktraceFileSource::Scan : public IgnoringSink {
 public:
  struct Device {
    bool queued = false;
    bool issued = false;
    bool completed = false;
  };

  void OnEvent(uint32_t /*stream*/, const BlockEvent& event) override {
    if (!first_ns_) first_ns_ = event.time_ns;
    auto [it, added] = devices_.try_emplace(event.device);
    if (added) order_.push_back(event.device);
    if (event.passthrough) return;
    it->second.queued |= event.action == BlockAction::kQueue;
    it->second.issued |= event.action == BlockAction::kIssue;
    it->second.completed |= event.action == BlockAction::kComplete;
  }
  void OnAnchor(const proto::ClockAnchor& anchor) override {
    if (!anchor_) anchor_ = anchor;
  }

  std::map<uint32_t, Device> devices_;
  std::vector<uint32_t> order_;  // of appearance
  std::optional<int64_t> first_ns_;
  std::optional<proto::ClockAnchor> anchor_;
};

BlktraceFileSource::BlktraceFileSource(std::vector<std::unique_ptr<ByteSource>> inputs) {
  for (std::unique_ptr<ByteSource>& input : inputs) {
    inputs_.push_back(
        std::make_unique<Input>(std::move(input), static_cast<uint32_t>(inputs_.size())));
  }
}
BlktraceFileSource::~BlktraceFileSource() = default;

Status BlktraceFileSource::Start() {
  std::map<uint32_t, Scan::Device> found;
  std::vector<uint32_t> order;
  std::map<uint32_t, std::string> names;
  std::optional<int64_t> first_ns;
  for (const std::unique_ptr<Input>& input : inputs_) {
    Scan scan;
    RETURN_IF_ERROR(input->ReadAll(&scan));
    bytes_total_ += input->read_bytes();
    if (version_ == 0) version_ = input->version();
    for (const uint32_t dev : scan.order_) {
      if (std::find(order.begin(), order.end(), dev) == order.end()) order.push_back(dev);
      const Scan::Device& part = scan.devices_[dev];
      Scan::Device& whole = found[dev];
      whole.queued |= part.queued;
      whole.issued |= part.issued;
      whole.completed |= part.completed;
    }
    // A file of one disk is called by its name.
    if (scan.order_.size() == 1 && !input->disk().empty()) {
      names[scan.order_.front()] = input->disk();
    }
    if (scan.first_ns_) first_ns = std::min(first_ns.value_or(*scan.first_ns_), *scan.first_ns_);
    if (scan.anchor_ && !start_) start_ = scan.anchor_;
    RETURN_IF_ERROR(input->Restart());
  }
  if (order.empty()) {
    return Status(StatusCode::kDataLoss, "the input holds no block event");
  }
  for (const uint32_t dev : order) {
    Disk device;
    device.dev = dev;
    const auto name = names.find(dev);
    device.description.set_name(name != names.end() ? name->second : KernelDevText(dev));
    device.description.set_major(KernelDevMajor(dev));
    device.description.set_minor(KernelDevMinor(dev));
    const Scan::Device& seen = found[dev];
    device.bio_based = seen.queued && seen.completed && !seen.issued;
    devices_.push_back(device);
  }
  // Events long before the recording began: times of a dump, relative to its first event.
  if (start_ && *first_ns + kNanosPerSecond < start_->monotonic_ns()) {
    anchor_shift_ns_ = -start_->monotonic_ns();
    start_->set_monotonic_ns(0);
  }
  return OkStatus();
}

Result<bool> BlktraceFileSource::Poll(int /*timeout_ms*/, CaptureSink* sink) {
  for (const std::unique_ptr<Input>& input : inputs_) RETURN_IF_ERROR(input->Fill());
  for (int i = 0; i < kStepItems; ++i) {
    Input* input = Earliest(inputs_);
    if (input == nullptr) return false;
    input->DeliverOne(anchor_shift_ns_, sink);
    RETURN_IF_ERROR(input->Fill());
  }
  const Input* next = Earliest(inputs_);
  if (next != nullptr && next->place_ns() != kNoPlace) sink->OnWatermark(next->place_ns());
  return true;
}

Status BlktraceFileSource::Stop(CaptureSink* /*sink*/) { return OkStatus(); }

std::string BlktraceFileSource::description() const {
  return "blktrace version " + std::to_string(version_);
}

double BlktraceFileSource::progress() const { return ShareRead(inputs_, bytes_total_); }

}  // namespace blktape
