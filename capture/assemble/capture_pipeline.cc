#include "capture/assemble/capture_pipeline.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "capture/assemble/arrival_sorter.h"
#include "capture/assemble/bio_origins.h"
#include "capture/assemble/event_merger.h"
#include "capture/assemble/io_assembler.h"
#include "capture/source/process_names.h"

namespace blktape {
namespace {

// The ids of process names in the dictionary of the trace that is being written.
class NameTable {
 public:
  explicit NameTable(const CapturePipelineOptions* options) : options_(options) {}

  // The name's id in `writer`'s dictionary, absent for an empty name.
  std::optional<uint32_t> IdIn(TraceWriter* writer, const ProcessComm& comm) {
    if (comm[0] == '\0') return std::nullopt;
    if (comm == last_) return last_id_;
    last_ = comm;
    last_id_ = Find(writer, CommView(comm));
    return last_id_;
  }
  // The same of a name that may be longer than the kernel keeps.
  std::optional<uint32_t> IdIn(TraceWriter* writer, std::string_view name) {
    if (name.empty()) return std::nullopt;
    if (name == last_long_) return last_long_id_;
    last_long_ = name;
    last_long_id_ = Find(writer, name);
    return last_long_id_;
  }
  void Forget() {
    last_ = {};
    last_long_.clear();
  }

 private:
  std::optional<uint32_t> Find(TraceWriter* writer, std::string_view name) const {
    if (!options_->rename_process) return writer->ProcessId(name);
    const std::string renamed = options_->rename_process(name);
    if (renamed.empty()) return std::nullopt;
    return writer->ProcessId(renamed);
  }

  const CapturePipelineOptions* options_;
  // Most records come from the process of the one before.
  ProcessComm last_{};
  std::optional<uint32_t> last_id_;
  std::string last_long_;
  std::optional<uint32_t> last_long_id_;
};

IoAssemblerOptions AssemblerOptions(const CapturePipelineOptions& options) {
  IoAssemblerOptions assembler;
  assembler.hold_ns = options.hold_ns;
  assembler.hold_records = options.hold_records;
  assembler.own_pids = options.own_pids;
  return assembler;
}

}  // namespace

class CapturePipeline::Impl : public EventMerger::Output, public IoAssembler::Output {
 public:
  Impl(TraceWriter* writer, const std::vector<Disk>& devices, const CapturePipelineOptions& options)
      : options_(options),
        writer_(writer),
        names_(&options_),
        merger_(this, EventMergerOptions()),
        assembler_(this, AssemblerOptions(options)),
        finished_(options.hold_records, [this](FinishedIo& io) { Write(&io); }) {
    BLKTAPE_CHECK(options.flush_interval_ns == 0 || options.clock != nullptr);
    if (options.clock != nullptr) flushed_ns_ = options.clock->NowNs();
    for (const Disk& device : devices) AddDevice(device);
  }

  void AddDevice(const Disk& device) {
    assembler_.Introduce(static_cast<uint32_t>(devices_.size()),
                         {.bio_based = device.bio_based.value_or(false),
                          .discard_ranges = device.discard_ranges,
                          .zone_sectors = device.zone_sectors});
    devices_.push_back(device.dev);
  }

  void RemoveDevice(uint32_t dev) { std::replace(devices_.begin(), devices_.end(), dev, kNobody); }

  void Event(uint32_t stream, const BlockEvent& event) {
    ++counts_.events;
    if (LacksName(event)) {
      merger_.Add(stream, Named(event));
    } else {
      merger_.Add(stream, event);
    }
  }

  void Watermark(int64_t ns) {
    merger_.Release(ns);
    assembler_.Advance(ns);
    finished_.Release(ns - options_.hold_ns);
    Keep(FlushIfDue());
  }

  void Finished(const IoRecord& record, const ProcessComm& comm) {
    ++counts_.events;
    const std::optional<uint32_t> device = DeviceIndex(record.device);
    if (!device) return;
    counts_.issued += record.issue_ns.has_value();
    counts_.completed += record.complete_ns.has_value();
    if (record.pid && IsOwn(*record.pid)) {
      CountOwn(record);
      return;
    }
    sorts_finished_ = true;
    finished_.Add(record, *device, comm);
  }

  void Record(const IoRecord& record, std::string_view process) {
    if (!status_.ok()) return;
    if (options_.keep && !options_.keep(record)) {
      ++counts_.filtered;
      return;
    }
    IoRecord written = record;
    written.process = names_.IdIn(writer_, process);
    ++counts_.records;
    Keep(writer_->Write(written));
  }

  void QueuedSizes(Op op, uint64_t bytes, uint64_t count) {
    writer_->CountQueued(op, bytes, count);
  }
  void FlaggedWrites(uint64_t count) { writer_->CountFlaggedWrites(count); }

  void ProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) {
    process_names_.Learn(pid, since_ns, comm);
  }

  void Anchor(const proto::ClockAnchor& anchor) { Keep(writer_->WriteAnchor(anchor)); }

  void Loss(const proto::Loss& loss) {
    assembler_.NoteLoss(loss.has_to_ns() ? std::optional<int64_t>(loss.to_ns()) : std::nullopt);
    WriteLossOfDev(loss);
  }

  // EventMerger::Output.
  void OnOrderedEvent(const BlockEvent& ordered) override {
    BlockEvent event = ordered;
    if (event.action == BlockAction::kRemap) origins_.Remapped(event);
    // The name of a process that has moved to another CPU is in the stream of its first CPU, which
    // may be read after this one.
    if (LacksName(event)) event = Named(event);
    if (origins_.IsLayer(event.device)) return origins_.Above(event);
    const std::optional<uint32_t> device = DeviceIndex(event.device);
    if (!device) return;
    switch (event.action) {
      case BlockAction::kQueue:
        origins_.Queued(&event);
        counts_.queued += !event.passthrough;
        break;
      case BlockAction::kIssue:
        counts_.issued += !event.passthrough;
        break;
      case BlockAction::kComplete:
        counts_.completed += !event.passthrough;
        break;
      case BlockAction::kBackMerge:
      case BlockAction::kFrontMerge:
        ++counts_.merged;
        break;
      case BlockAction::kRequeue:
        ++counts_.requeued;
        break;
      default:
        break;
    }
    assembler_.Add(*device, event);
  }
  void OnMergeLoss(const proto::Loss& loss) override { WriteLossOfDev(loss); }

  // IoAssembler::Output.
  void OnRecord(const FinishedIo& io) override {
    if (sorts_finished_) {
      finished_.Add(io.record, io.record.device, io.comm);
    } else {
      FinishedIo written = io;
      Write(&written);
    }
  }
  void OnOwnRecord(const FinishedIo& io) override { CountOwn(io.record); }
  void OnQueued(const BlockEvent& event) override {
    writer_->CountQueued(event.op, event.bytes, 1);
    if (event.op != Op::kFlush && (event.flags & (kFlagPreflush | kFlagFua)) != 0) {
      writer_->CountFlaggedWrites(1);
    }
  }
  void OnAssemblerLoss(const proto::Loss& loss) override { Keep(writer_->WriteLoss(loss)); }

  void SetWriter(TraceWriter* writer) {
    writer_ = writer;
    names_.Forget();
    status_ = OkStatus();
    counts_before_writer_ = counts_;
  }

  void SetLayers(const std::vector<Layer>& layers) { origins_.SetLayers(layers); }

  void SetOwnPids(const std::vector<uint32_t>& pids) {
    options_.own_pids = pids;
    assembler_.SetOwnPids(pids);
  }

  void FillSummary(proto::Summary* summary) const {
    const CaptureCounts& before = counts_before_writer_;
    summary->set_own_excluded(counts_.own_excluded - before.own_excluded);
    summary->set_own_excluded_bytes(counts_.own_excluded_bytes - before.own_excluded_bytes);
    summary->set_filtered(counts_.filtered - before.filtered);
  }

  Status FlushIfDue() {
    if (options_.flush_interval_ns == 0 || !status_.ok()) return status_;
    const int64_t now_ns = options_.clock->NowNs();
    if (now_ns - flushed_ns_ < options_.flush_interval_ns) return OkStatus();
    flushed_ns_ = now_ns;
    Keep(writer_->FlushFrame(/*sync=*/false));
    return status_;
  }

  Status Finish() {
    merger_.Finish();
    assembler_.Finish();
    finished_.Release(std::numeric_limits<int64_t>::max());
    return status_;
  }

  const Status& status() const { return status_; }
  CaptureCounts counts() const {
    CaptureCounts counts = counts_;
    counts.passthrough = assembler_.passthrough();
    counts.late_records = assembler_.late_records() + finished_.late();
    return counts;
  }

 private:
  // The first failure stays.
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  static bool LacksName(const BlockEvent& event) {
    return event.comm[0] == '\0' &&
           (event.action == BlockAction::kQueue || event.action == BlockAction::kIssue);
  }
  BlockEvent Named(const BlockEvent& event) {
    BlockEvent named = event;
    named.comm = process_names_.Find(event.pid, event.time_ns);
    return named;
  }

  bool IsOwn(uint32_t pid) const {
    return std::find(options_.own_pids.begin(), options_.own_pids.end(), pid) !=
           options_.own_pids.end();
  }

  std::optional<uint32_t> DeviceIndex(uint32_t dev) {
    const auto it = std::find(devices_.begin(), devices_.end(), dev);
    if (it == devices_.end()) {
      ++counts_.unknown_device;
      return std::nullopt;
    }
    return static_cast<uint32_t>(it - devices_.begin());
  }

  // `loss.device` is a dev_t.
  void WriteLossOfDev(const proto::Loss& loss) {
    proto::Loss written = loss;
    if (loss.has_device()) {
      const auto it = std::find(devices_.begin(), devices_.end(), loss.device());
      if (it == devices_.end()) {
        written.clear_device();
      } else {
        written.set_device(static_cast<uint32_t>(it - devices_.begin()));
      }
    }
    Keep(writer_->WriteLoss(written));
  }

  void CountOwn(const IoRecord& record) {
    ++counts_.own_excluded;
    counts_.own_excluded_bytes += record.bytes;
  }

  // Sets the record's process to the writer's id.
  void Write(FinishedIo* io) {
    if (!status_.ok()) return;
    IoRecord& record = io->record;
    if (options_.is_own && options_.is_own(record, io->comm)) {
      CountOwn(record);
      return;
    }
    if (options_.keep && !options_.keep(record)) {
      ++counts_.filtered;
      return;
    }
    record.process = names_.IdIn(writer_, io->comm);
    ++counts_.records;
    Keep(writer_->Write(record));
  }

  CapturePipelineOptions options_;
  TraceWriter* writer_;
  NameTable names_;
  static constexpr uint32_t kNobody = ~uint32_t{0};
  std::vector<uint32_t> devices_;  // dev_t by place in the header, kNobody once it is gone
  EventMerger merger_;
  BioOrigins origins_;
  IoAssembler assembler_;
  ProcessNames process_names_;
  ArrivalSorter finished_;  // records of sources that pair themselves
  bool sorts_finished_ = false;
  int64_t flushed_ns_ = 0;
  Status status_;
  CaptureCounts counts_;
  CaptureCounts counts_before_writer_;  // as they were when this writer came
};

CapturePipeline::CapturePipeline(TraceWriter* writer, const std::vector<Disk>& devices,
                                 const CapturePipelineOptions& options)
    : impl_(std::make_unique<Impl>(writer, devices, options)) {}
CapturePipeline::~CapturePipeline() = default;

void CapturePipeline::OnEvent(uint32_t stream, const BlockEvent& event) {
  impl_->Event(stream, event);
}
void CapturePipeline::OnWatermark(int64_t ns) { impl_->Watermark(ns); }
void CapturePipeline::OnFinished(uint32_t /*stream*/, const IoRecord& record,
                                 const ProcessComm& comm) {
  impl_->Finished(record, comm);
}
void CapturePipeline::OnRecord(const IoRecord& record, std::string_view process) {
  impl_->Record(record, process);
}
void CapturePipeline::OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) {
  impl_->QueuedSizes(op, bytes, count);
}
void CapturePipeline::OnFlaggedWrites(uint64_t count) { impl_->FlaggedWrites(count); }
void CapturePipeline::OnProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) {
  impl_->ProcessName(pid, since_ns, comm);
}
void CapturePipeline::OnAnchor(const proto::ClockAnchor& anchor) { impl_->Anchor(anchor); }
void CapturePipeline::OnLoss(const proto::Loss& loss) { impl_->Loss(loss); }
void CapturePipeline::SetWriter(TraceWriter* writer) { impl_->SetWriter(writer); }
void CapturePipeline::AddDevice(const Disk& device) { impl_->AddDevice(device); }
void CapturePipeline::RemoveDevice(uint32_t dev) { impl_->RemoveDevice(dev); }
void CapturePipeline::SetLayers(const std::vector<Layer>& layers) { impl_->SetLayers(layers); }
void CapturePipeline::SetOwnPids(const std::vector<uint32_t>& pids) { impl_->SetOwnPids(pids); }
Status CapturePipeline::FlushIfDue() { return impl_->FlushIfDue(); }
Status CapturePipeline::Finish() { return impl_->Finish(); }
const Status& CapturePipeline::status() const { return impl_->status(); }
CaptureCounts CapturePipeline::counts() const { return impl_->counts(); }
void CapturePipeline::FillSummary(proto::Summary* summary) const { impl_->FillSummary(summary); }

}  // namespace blktape
