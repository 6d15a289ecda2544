#include "capture/files/row_file_source.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "base/kernel_dev.h"
#include "base/quantity.h"
#include "base/ring_queue.h"
#include "base/units.h"
#include "base/utf8.h"
#include "capture/files/step_by_time.h"
#include "capture/source/ignoring_sink.h"

namespace blktape {
namespace {

// Event texts are written in order of time, except for events from several CPUs at once.
constexpr int64_t kEventSlackNs = kNanosPerSecond;
constexpr uint32_t kStreamsPerFile = 4096;
// A file with a new device in every row does not have this format.
constexpr size_t kMostDevices = 65536;

}  // namespace

// The devices of all inputs, by name or number.
class RowFileSource::Devices {
 public:
  struct Device {
    Disk disk;
    bool queued = false;
    bool issued = false;
    bool completed = false;
  };

  uint32_t Named(std::string_view name) {
    const auto it = numbers_.find(name);
    if (it != numbers_.end()) return it->second;
    if (devices_.size() == kMostDevices) {
      too_many_ = true;
      return 0;
    }
    const auto number = static_cast<uint32_t>(devices_.size());
    numbers_.emplace(std::string(name), number);
    devices_.emplace_back().disk.description.set_name(ToUtf8(name));
    return number;
  }
  void See(const BlockEvent& event) {
    auto [it, added] = events_.try_emplace(event.device, 0);
    if (added) {
      it->second = Named(KernelDevText(event.device));
      Disk& disk = devices_[it->second].disk;
      disk.dev = event.device;
      disk.description.set_major(KernelDevMajor(event.device));
      disk.description.set_minor(KernelDevMinor(event.device));
    }
    Device& device = devices_[it->second];
    if (event.passthrough) return;
    device.queued |= event.action == BlockAction::kQueue;
    device.issued |= event.action == BlockAction::kIssue;
    device.completed |= event.action == BlockAction::kComplete;
  }
  proto::Device* Describe(uint32_t number) { return &devices_[number].disk.description; }

  bool too_many() const { return too_many_; }
  std::vector<Disk> Disks() const {
    std::vector<Disk> disks;
    for (const Device& device : devices_) {
      disks.push_back(device.disk);
      if (events_.empty()) continue;
      disks.back().bio_based = device.queued && device.completed && !device.issued;
    }
    return disks;
  }

 private:
  std::vector<Device> devices_;
  std::map<std::string, uint32_t, std::less<>> numbers_;
  std::map<uint32_t, uint32_t> events_;  // by dev_t
  bool too_many_ = false;
};

// One file, decoded a chunk at a time. What the importer finds waits here.
class RowFileSource::Input : private RowSink {
 public:
  Input(RowFileSource* parent, std::unique_ptr<ByteSource> source, uint32_t number)
      : parent_(*parent), source_(std::move(source)), number_(number) {}

  Status Rewind() {
    importer_ = parent_.format_.make();
    begin_ = end_ = 0;
    read_bytes_ = 0;
    ended_ = false;
    items_.clear();
    return source_->Seek(0);
  }

  // Reads on until more than kStepAhead items wait or the file has ended.
  Status Fill(CaptureSink* sink) {
    bool read = false;
    while (!ended_ && items_.size() <= kStepAhead) {
      RETURN_IF_ERROR(ReadChunk(sink));
      read = true;
    }
    if (!read) return OkStatus();
    SetPlaces([](const Item& item) { return std::optional(item.at_ns); }, &items_);
    return OkStatus();
  }

  bool empty() const { return items_.empty(); }
  int64_t place_ns() const { return items_.front().place_ns; }

  void DeliverOne(CaptureSink* sink) {
    const Item& item = items_.front();
    bool in_time = true;
    switch (item.kind) {
      case Item::kRow:
        in_time = parent_.sorter_->Add(item.record, item.process);
        break;
      case Item::kBegin:
        in_time = parent_.sorter_->Begin(item.id, item.record, item.process);
        break;
      case Item::kEnd:
        if (!parent_.sorter_->End(item.id, item.at_ns, item.error)) ++parent_.orphans_;
        break;
      case Item::kEvent:
        sink->OnEvent(number_ * kStreamsPerFile + item.event.cpu % kStreamsPerFile, item.event);
        break;
    }
    if (item.kind != Item::kEnd) ++parent_.report_.rows;
    if (!in_time && parent_.failed_.ok()) {
      parent_.failed_ = Status(
          StatusCode::kFailedPrecondition,
          std::string(source_->name()) + ": " + PlaceName(item.place) +
              ": earlier than rows more than " + FormatCount(parent_.window_) +
              " rows before it\n  try:  sort the file by time, as with sort -n, and import that");
    }
    items_.pop_front();
  }

  Status Verdict() const {
    Status verdict = importer_->Verdict();
    if (verdict.ok()) return verdict;
    return Status(verdict.code(), std::string(source_->name()) + ": not " + parent_.format_.title +
                                      ": " + verdict.message());
  }
  uint64_t read_bytes() const { return read_bytes_; }
  std::string_view name() const { return source_->name(); }

 private:
  struct Item {
    enum Kind : uint8_t { kRow, kBegin, kEnd, kEvent };
    Kind kind = kRow;
    int64_t at_ns = 0;
    int64_t place_ns = 0;
    uint64_t place = 0;  // in the file
    uint64_t id = 0;
    uint32_t error = 0;
    IoRecord record;
    std::string process;
    BlockEvent event;
  };

  Status ReadChunk(CaptureSink* sink) {
    // The bytes that the importer has left are at the front.
    if (begin_ > 0) {
      std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
                buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() < end_ + kStepChunkBytes) buffer_.resize(end_ + kStepChunkBytes);
    const Result<size_t> got =
        source_->Read(std::as_writable_bytes(std::span(buffer_).subspan(end_, kStepChunkBytes)));
    if (!got.ok() && got.status().code() != StatusCode::kDataLoss) return got.status();
    const size_t count = got.ok() ? *got : 0;
    read_bytes_ += count;
    end_ += count;
    const bool at_end = count == 0;
    begin_ +=
        importer_->Decode(std::string_view(buffer_.data() + begin_, end_ - begin_), at_end, this);
    if (!at_end) return OkStatus();
    ended_ = true;
    if (!got.ok()) {  // the compressed file is damaged; what came before is good
      proto::Loss loss;
      loss.set_reason(proto::DAMAGED_INPUT);
      loss.set_from_bytes(read_bytes_);
      loss.set_detail(got.status().message());
      if (sink != nullptr) sink->OnLoss(loss);
    }
    return OkStatus();
  }

  std::string PlaceName(uint64_t place) const {
    std::string where = (parent_.format_.binary ? "offset " : "line ") + std::to_string(place);
    if (parent_.inputs_.size() < 2) return where;
    return std::filesystem::path(std::string(source_->name())).filename().string() + " " + where;
  }

  // RowSink.
  void At(uint64_t place) override { at_ = place; }
  uint32_t Device(std::string_view name) override { return parent_.found_->Named(name); }
  proto::Device* Describe(uint32_t device) override { return parent_.found_->Describe(device); }
  Item& Push(Item::Kind kind, int64_t at_ns) {
    items_.push_back(Item());
    Item& item = items_.back();
    item.kind = kind;
    item.at_ns = at_ns;
    item.place = at_;
    return item;
  }
  void Row(const IoRecord& record, std::string_view process) override {
    last_ns_ = record.arrival_ns().value_or(last_ns_);
    Item& item = Push(Item::kRow, last_ns_);
    item.record = record;
    item.process.assign(process);
  }
  void Begin(uint64_t id, const IoRecord& record, std::string_view process) override {
    Item& item = Push(Item::kBegin, record.arrival_ns().value_or(0));
    item.id = id;
    item.record = record;
    item.process.assign(process);
  }
  void End(uint64_t id, int64_t complete_ns, uint32_t error) override {
    Item& item = Push(Item::kEnd, complete_ns);
    item.id = id;
    item.error = error;
  }
  void Event(const BlockEvent& event) override {
    parent_.found_->See(event);
    Push(Item::kEvent, event.time_ns).event = event;
  }
  void Anchor(const proto::ClockAnchor& anchor) override {
    if (!parent_.start_) parent_.start_ = anchor;
  }
  void Lost(proto::LossReason reason, uint64_t count, const char* detail) override {
    proto::Loss loss;
    loss.set_reason(reason);
    loss.set_count(count);
    loss.set_detail(detail);
    if (parent_.sink_ != nullptr) parent_.sink_->OnLoss(loss);
  }
  void Dropped(const char* reason) override {
    Count(&parent_.report_.dropped, reason, PlaceName(at_));
  }
  void Repaired(const char* what) override {
    Count(&parent_.report_.repaired, what, PlaceName(at_));
  }

  RowFileSource& parent_;
  std::unique_ptr<ByteSource> source_;
  uint32_t number_;
  std::unique_ptr<RowImporter> importer_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t read_bytes_ = 0;  // decompressed
  bool ended_ = false;
  uint64_t at_ = 0;
  int64_t last_ns_ = std::numeric_limits<int64_t>::min();
  RingQueue<Item> items_;
};

RowFileSource::RowFileSource(ImportFormat format, std::vector<std::unique_ptr<ByteSource>> inputs,
                             size_t window)
    : format_(std::move(format)), window_(window), found_(std::make_unique<Devices>()) {
  for (std::unique_ptr<ByteSource>& input : inputs) {
    inputs_.push_back(
        std::make_unique<Input>(this, std::move(input), static_cast<uint32_t>(inputs_.size())));
  }
}
RowFileSource::~RowFileSource() = default;

Status RowFileSource::Rewind() {
  for (const std::unique_ptr<Input>& input : inputs_) RETURN_IF_ERROR(input->Rewind());
  report_ = ImportReport();
  orphans_ = 0;
  ended_ = false;
  sorter_ = std::make_unique<RowSorter>(window_,
                                        [this](const IoRecord& record, std::string_view process) {
                                          if (sink_ != nullptr) sink_->OnRecord(record, process);
                                        });
  return OkStatus();
}

Status RowFileSource::Start() {
  // The first pass is for the devices, and for what would make it fail.
  IgnoringSink nothing;
  RETURN_IF_ERROR(Rewind());
  while (true) {
    ASSIGN_OR_RETURN(const bool more, DeliverSome(&nothing));
    if (!more) break;
  }
  for (const std::unique_ptr<Input>& input : inputs_) {
    RETURN_IF_ERROR(input->Verdict());
    bytes_total_ += input->read_bytes();
  }
  if (found_->too_many()) {
    return Status(StatusCode::kDataLoss,
                  std::string(inputs_.front()->name()) + ": names more than 65,536 devices");
  }
  if (report_.rows == 0) {
    std::string why;
    for (const ImportReport::Entry& entry : report_.dropped) {
      why += "\n  " + FormatCount(entry.count) + ": " + EntryText(entry);
    }
    return Status(StatusCode::kDataLoss, std::string(inputs_.front()->name()) + ": read as " +
                                             format_.title + " it holds no I/O" + why);
  }
  devices_ = found_->Disks();
  return Rewind();
}

Result<bool> RowFileSource::DeliverSome(CaptureSink* sink) {
  sink_ = sink;
  for (const std::unique_ptr<Input>& input : inputs_) RETURN_IF_ERROR(input->Fill(sink));
  for (int i = 0; i < kStepItems; ++i) {
    Input* input = Earliest(inputs_);
    if (input == nullptr) {
      sorter_->Flush();
      if (!std::exchange(ended_, true)) DeliverEnd(sink);
      return false;
    }
    input->DeliverOne(sink);
    RETURN_IF_ERROR(failed_);
    RETURN_IF_ERROR(input->Fill(sink));
  }
  const Input* next = Earliest(inputs_);
  if (next != nullptr && next->place_ns() != kNoPlace &&
      next->place_ns() > std::numeric_limits<int64_t>::min() + kEventSlackNs) {
    sink->OnWatermark(next->place_ns() - kEventSlackNs);
  }
  return true;
}

// What is missing, once all has been read.
void RowFileSource::DeliverEnd(CaptureSink* sink) {
  report_.sorted = sorter_->sorted();
  const auto lose = [sink](proto::LossReason reason, uint64_t count, const std::string& detail) {
    if (count == 0) return;
    proto::Loss loss;
    loss.set_reason(reason);
    loss.set_count(count);
    loss.set_detail(detail);
    sink->OnLoss(loss);
  };
  for (const ImportReport::Entry& entry : report_.dropped) {
    lose(proto::UNDECODABLE_EVENT, entry.count, EntryText(entry));
  }
  lose(proto::ORPHAN_COMPLETION, orphans_, "");
  lose(proto::ISSUE_WITHOUT_COMPLETION, sorter_->unended(), "");
}

Result<bool> RowFileSource::Poll(int /*timeout_ms*/, CaptureSink* sink) {
  const Result<bool> more = DeliverSome(sink);
  sink_ = nullptr;
  return more;
}

Status RowFileSource::Stop(CaptureSink* /*sink*/) { return OkStatus(); }

double RowFileSource::progress() const { return ShareRead(inputs_, bytes_total_); }

}  // namespace blktape
