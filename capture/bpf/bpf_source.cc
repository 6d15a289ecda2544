#include "capture/bpf/bpf_source.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/types.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/kernel_dev.h"
#include "base/process.h"
#include "base/units.h"
#include "capture/bpf/bpf_probe.h"
#include "capture/bpf/finished_record.h"
#include "capture/bpf/libbpf_log.h"
#include "capture/bpf/mapped_array.h"
#include "capture/bpf/queue_shape.h"
#include "capture/bpf/queued_sizes.h"
#include "capture/bpf/ring.h"
#include "capture/bpf/ring_set.h"
#include "capture/source/block_event.h"
#include "capture/source/process_names.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

// clang-format off: the generated skeleton uses the types of the shared header.
#include "capture/bpf/block_abi.h"
#include "capture/bpf/block.skel.h"
// clang-format on

namespace blktape {
namespace {

// Until this time has passed (the block layer's timeout), a completion without an issue and without
// a known queue time belongs to an I/O that began before the recording.
constexpr int64_t kLongestIoNs = 30 * kNanosPerSecond;
// Waiting records are fetched at least this often, even when there are few.
constexpr int kLongestNapMs = 50;
// A completion takes its timestamp first and is in the ring a moment later; if a virtual CPU loses
// its core in between, this can take milliseconds.
constexpr int64_t kCommitMarginNs = 20 * kNanosPerMilli;
// A backlog is delivered in slices of time, each from all CPUs. So only the records of a moment
// wait for sorting, however large the rings are.
constexpr int64_t kSliceNs = 50 * kNanosPerMilli;
// Counts of sizes are read this often: there are thousands of them.
constexpr int64_t kSizesIntervalNs = kNanosPerSecond / 4;
// Reserved for disks that appear during recording: this many disks, with this many slots together.
constexpr uint32_t kSpareDevices = 4;
constexpr uint32_t kSpareSlots = 16'384;
// After this many turns without a record, the next record must wake us. Long enough (half a second)
// for held records to become old and be written.
constexpr uint32_t kQuietTurns = 10;
// Time between two checks of a name that is being written.
constexpr int64_t kNamePauseNs = 50 * kNanosPerMicro;

// A header of the ring and a record fill a cache line.
static_assert(BPF_RINGBUF_HDR_SZ + sizeof(blktape_finished) == 64);

// The front of a ring that holds nothing but T; null if there is none.
template <typename T>
const T* FrontOf(Ring* ring) {
  const std::span<const std::byte> data = ring->Front();
  return data.size() < sizeof(T) ? nullptr : reinterpret_cast<const T*>(data.data());
}

class BpfSource : public LiveSource {
 public:
  BpfSource(std::vector<Disk> devices, const BpfSourceOptions& options)
      : devices_(std::move(devices)), options_(options) {}
  ~BpfSource() override { Release(); }

  std::string_view name() const override { return "bpf"; }
  std::vector<Disk> devices() const override { return devices_; }

  Status Start() override;
  Result<bool> Poll(int timeout_ms, CaptureSink* sink) override;
  Status Stop(CaptureSink* sink) override;

  uint64_t buffer_bytes_per_cpu() const override { return ring_bytes_; }
  Result<uint64_t> KernelLost() override { return told_.ring_full; }
  Result<bool> Grow(uint64_t limit_bytes) override;
  void SetOwnPids(const std::vector<uint32_t>& pids) override;
  void MarkThread() override;
  Status Add(const Disk& disk) override;
  void Remove(const Disk& disk) override;
  void SetLayers(const std::vector<Layer>& layers) override;
  // Reading the table of rare sizes is a bpf() call, as is making larger rings.
  std::vector<int> KeptCapabilities() const override { return {CAP_BPF}; }

 private:
  Status Load();
  void ShowDevice(size_t index, const blktape_device& device);
  void ChoosePrograms();
  Status OpenMaps();
  Status Attach();
  void SetWakeMask();
  void Release();
  // True if there was something.
  bool Drain(CaptureSink* sink);
  // Waits for new records, with fewer wake-ups the longer there are none.
  Status Wait(int timeout_ms);
  void LearnNames();
  void LearnOwnPids();
  void AddOwnPid(uint32_t pid);
  std::optional<int64_t> OldestCompletion();
  void DeliverUntil(int64_t ns, CaptureSink* sink);
  void SettleUntil(int64_t ns, CaptureSink* sink);
  void Deliver(uint32_t stream, IoRecord record, CaptureSink* sink);
  void ReportLosses(int64_t from_ns, int64_t to_ns, CaptureSink* sink);
  void ReportInFlight(CaptureSink* sink);

  std::vector<Disk> devices_;  // as the programs number them
  std::vector<bool> in_use_;   // by device
  BpfSourceOptions options_;
  block_bpf* skeleton_ = nullptr;
  std::unique_ptr<RingSet> rings_;
  uint32_t cpus_ = 0;
  uint32_t slot_count_ = 0;
  uint32_t slots_used_ = 0;  // the rest is for disks that come later
  uint32_t quiet_turns_ = 0;
  // Threads of the recorder that the programs know as own; freed entries are set to the recording
  // thread.
  std::mutex own_pids_mutex_;
  std::map<uint32_t, uint32_t> own_pids_by_seen_;  // the kernel's id to ours, where they differ
  uint64_t ring_bytes_ = 0;
  bool any_bio_based_ = false;
  MappedArray<blktape_counters> counters_;
  MappedArray<blktape_slot> slots_;
  QueuedSizes sizes_;
  blktape_counters told_{};  // totals already reported
  int64_t started_ns_ = 0;
  int64_t last_drain_ns_ = 0;
  int64_t sizes_told_ns_ = 0;
  bool lost_any_ = false;
  std::optional<Ring> name_ring_;  // read before the others, so that no record precedes its name
  ProcessNames names_;
};

QueueShape ShapeOf(const Disk& disk) {
  return ReadQueueShape("/sys/dev/block/" + KernelDevText(disk.dev));
}

constexpr blktape_device kNoDevice = {.dev = ~0u, .base = 0, .tags = 0, .queues = 0};

// The programs may read this concurrently: the number is written last, and removed first.
void BpfSource::ShowDevice(size_t index, const blktape_device& device) {
  auto& shown = skeleton_->bss->devices[index];
  std::atomic_ref(shown.dev).store(kNoDevice.dev);
  shown.base = device.base;
  shown.tags = device.tags;
  shown.queues = device.queues;
  std::atomic_ref(shown.dev).store(device.dev);
}

Status BpfSource::Add(const Disk& disk) {
  const QueueShape shape = ShapeOf(disk);
  const auto cannot = [&disk](const std::string& why) {
    return Status(StatusCode::kUnimplemented,
                  "bpf: " + disk.description.name() + " cannot be added while it records: " + why);
  };
  if (shape.queues == 0 && !any_bio_based_) return cannot("it has no queue of requests");
  const uint32_t slots = shape.queues * (shape.tags + 1);
  // A returning disk gets the slots of the disk that is gone; otherwise unused ones.
  size_t index = devices_.size();
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto& old = skeleton_->bss->devices[i];
    if (!in_use_[i] && slots <= old.queues * (old.tags + 1)) index = i;
  }
  uint32_t base = slots_used_;
  if (index < devices_.size()) {
    base = skeleton_->bss->devices[index].base;
    devices_[index] = disk;
    in_use_[index] = true;
  } else {
    if (devices_.size() >= skeleton_->rodata->device_count) return cannot("too many have come");
    if (slots_used_ + slots > slot_count_) return cannot("its queues are too deep");
    slots_used_ += slots;
    devices_.push_back(disk);
    in_use_.push_back(true);
  }
  for (uint32_t i = base; i < base + slots; ++i) slots_.writable(i).rq = 0;
  ShowDevice(index, {.dev = disk.dev, .base = base, .tags = shape.tags, .queues = shape.queues});
  return OkStatus();
}

void BpfSource::Remove(const Disk& disk) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (!in_use_[i] || devices_[i].dev != disk.dev) continue;
    in_use_[i] = false;
    // Its slots stay known as such.
    std::atomic_ref(skeleton_->bss->devices[i].dev).store(kNoDevice.dev);
  }
}

void BpfSource::SetLayers(const std::vector<Layer>& layers) {
  auto& shown = skeleton_->bss->layers;
  const std::atomic_ref count(skeleton_->bss->layer_count);
  const auto number = static_cast<uint32_t>(std::min<size_t>(layers.size(), BLKTAPE_MAX_LAYERS));
  for (uint32_t i = 0; i < number; ++i) {
    if (shown[i].dev == layers[i].dev && shown[i].one_disk == layers[i].one_disk) continue;
    // The programs may read this concurrently.
    std::atomic_ref(shown[i].dev).store(kNoDevice.dev);
    shown[i].one_disk = layers[i].one_disk;
    std::atomic_ref(shown[i].dev).store(layers[i].dev);
  }
  count.store(number);
}

Status BpfSource::Load() {
  BeginLibbpfLog();
  skeleton_ = block_bpf::open();
  if (skeleton_ == nullptr) return ErrnoStatus(errno, "bpf: opening the programs");
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return ErrnoStatus(-cpus, "bpf: number of CPUs");
  cpus_ = static_cast<uint32_t>(cpus);

  if (devices_.size() > BLKTAPE_MAX_DEVICES) {
    return Status(StatusCode::kUnavailable, "bpf: more than " +
                                                std::to_string(BLKTAPE_MAX_DEVICES) +
                                                " disks at once are not possible");
  }
  in_use_.assign(devices_.size(), true);
  skeleton_->rodata->device_count =
      static_cast<uint32_t>(std::min<size_t>(devices_.size() + kSpareDevices, BLKTAPE_MAX_DEVICES));
  skeleton_->rodata->want_names = options_.process_names;
  if (const std::optional<PidNamespace> local = LocalPidNamespace()) {
    skeleton_->rodata->pid_namespace_dev = local->device;
    skeleton_->rodata->pid_namespace_inode = local->inode;
  }
  for (size_t i = 0; i < BLKTAPE_MAX_DEVICES; ++i) ShowDevice(i, kNoDevice);
  slots_used_ = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const QueueShape shape = ShapeOf(devices_[i]);
    ShowDevice(
        i,
        {.dev = devices_[i].dev, .base = slots_used_, .tags = shape.tags, .queues = shape.queues});
    slots_used_ += shape.queues * (shape.tags + 1);
    any_bio_based_ = any_bio_based_ || shape.queues == 0;
  }
  slot_count_ = slots_used_ + kSpareSlots;
  bpf_map__set_max_entries(skeleton_->maps.slots, slot_count_);
  bpf_map__set_max_entries(skeleton_->maps.rings, cpus_);
  bpf_map__set_max_entries(skeleton_->maps.counters, cpus_);
  bpf_map__set_max_entries(skeleton_->maps.sizes, cpus_);
  if (!any_bio_based_) bpf_map__set_max_entries(skeleton_->maps.bios, 1);
  ChoosePrograms();
  const int error = block_bpf::load(skeleton_);
  if (error != 0) {
    const int err = -error;
    // The verifier also returns EACCES, to users who may load programs.
    if (err == EPERM || (err == EACCES && geteuid() != 0)) {
      return Status(StatusCode::kPermissionDenied,
                    "bpf: the kernel does not let this user load programs\n"
                    "  try:  as root, or with CAP_BPF and CAP_PERFMON");
    }
    return Status(StatusCode::kUnavailable, "bpf: this kernel does not take the programs (" +
                                                std::string(std::strerror(err)) +
                                                "): " + LibbpfLog());
  }
  return OkStatus();
}

void BpfSource::ChoosePrograms() {
  const bool preemptible = ProgramsArePreemptible();
  const auto take = [preemptible](bpf_program* first, bpf_program* again, bpf_program* at_last) {
    bpf_program__set_autoload(first, true);
    bpf_program__set_autoload(again, preemptible);
    bpf_program__set_autoload(at_last, preemptible);
  };
  const auto& all = skeleton_->progs;
  take(all.on_issue, all.on_issue_again, all.on_issue_at_last);
  take(all.on_requeue, all.on_requeue_again, all.on_requeue_at_last);
  take(all.on_complete, all.on_complete_again, all.on_complete_at_last);
  take(all.on_bio_queue, all.on_bio_queue_again, all.on_bio_queue_at_last);
  take(all.on_remap, all.on_remap_again, all.on_remap_at_last);
  take(all.on_split, all.on_split_again, all.on_split_at_last);
  if (any_bio_based_) {
    take(all.on_bio_complete, all.on_bio_complete_again, all.on_bio_complete_at_last);
  }
  for (bpf_program* one : {all.on_waking, all.on_wakeup_new, all.on_softirq, all.on_softirq_exit,
                           all.on_hrtimer, all.on_hrtimer_exit, all.on_irq_exit}) {
    bpf_program__set_autoload(one, true);
  }
  bpf_program__set_autoload(all.on_rename, options_.process_names);
  bpf_program__set_autoload(all.on_fork, options_.process_names);
}

Status BpfSource::OpenMaps() {
  rings_ = std::make_unique<RingSet>(bpf_map__fd(skeleton_->maps.rings), cpus_);
  // An offline CPU also has a ring: many machines have more possible CPUs than CPUs.
  RETURN_IF_ERROR(rings_->Make(options_.ring_bytes_per_cpu != 0
                                   ? options_.ring_bytes_per_cpu
                                   : PlanBuffersHere(cpus_).bytes_per_cpu / 2));
  SetWakeMask();
  UniqueFd names(fcntl(bpf_map__fd(skeleton_->maps.names), F_DUPFD_CLOEXEC, 0));
  if (!names) return ErrnoStatus(errno, "bpf: the ring of names");
  RETURN_IF_ERROR(name_ring_.emplace().Map(std::move(names), BLKTAPE_NAME_RING_BYTES));
  RETURN_IF_ERROR(counters_.Map(bpf_map__fd(skeleton_->maps.counters), cpus_));
  RETURN_IF_ERROR(sizes_.Open(bpf_map__fd(skeleton_->maps.sizes),
                              bpf_map__fd(skeleton_->maps.rare_sizes), cpus_));
  return slots_.Map(bpf_map__fd(skeleton_->maps.slots), slot_count_, PROT_READ | PROT_WRITE);
}

void BpfSource::SetWakeMask() {
  constexpr uint64_t kRecordBytes = sizeof(blktape_finished) + BPF_RINGBUF_HDR_SZ;
  ring_bytes_ = rings_->bytes_per_cpu();
  // At most a quarter of a ring may wait for us. Each wake-up takes a core from the recorded I/O.
  skeleton_->bss->wake_mask =
      static_cast<uint32_t>(std::bit_floor(ring_bytes_ / 4 / kRecordBytes)) - 1;
}

Status BpfSource::Attach() {
  const int error = block_bpf::attach(skeleton_);
  if (error != 0) {
    return Status(error == -EPERM || error == -EACCES ? StatusCode::kPermissionDenied
                                                      : StatusCode::kUnavailable,
                  "bpf: attaching to the block tracepoints: " + std::string(std::strerror(-error)) +
                      " " + LibbpfLog());
  }
  return OkStatus();
}

Status BpfSource::Start() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    return Status(StatusCode::kUnavailable,
                  "bpf: this kernel has no type information (/sys/kernel/btf/vmlinux)");
  }
  Status status = Load();
  if (status.ok()) status = OpenMaps();
  if (status.ok()) status = Attach();
  if (!status.ok()) {
    Release();
    return status;
  }
  // This order ensures that the issue of every request that begins after begun_ns was seen.
  std::atomic_ref(skeleton_->bss->recording).store(1);
  started_ns_ = last_drain_ns_ = Clock::Monotonic()->NowNs();
  std::atomic_ref(skeleton_->bss->begun_ns).store(static_cast<uint64_t>(started_ns_));
  return OkStatus();
}

void BpfSource::Release() {
  rings_.reset();
  name_ring_.reset();
  counters_.Unmap();
  sizes_.Close();
  slots_.Unmap();
  const std::lock_guard lock(own_pids_mutex_);
  if (skeleton_ != nullptr) block_bpf::destroy(skeleton_);
  skeleton_ = nullptr;
}

void BpfSource::Deliver(uint32_t stream, IoRecord record, CaptureSink* sink) {
  record.device = devices_[record.device].dev;
  if (!own_pids_by_seen_.empty()) {
    const auto own = own_pids_by_seen_.find(*record.pid);
    if (own != own_pids_by_seen_.end()) record.pid = OwnId(own->second);
  }
  const std::optional<int64_t> at_ns = record.queue_ns ? record.queue_ns : record.issue_ns;
  sink->OnFinished(stream, record, names_.Find(*record.pid, at_ns.value_or(0)));
}

void BpfSource::LearnNames() {
  name_ring_->Look();
  const int64_t give_up_ns = Clock::Monotonic()->NowNs() + kCommitMarginNs;
  while (true) {
    while (const auto* name = FrontOf<blktape_name>(&*name_ring_)) {
      ProcessComm comm{};
      std::memcpy(comm.data(), name->comm, comm.size() - 1);
      names_.Learn(name->pid, static_cast<int64_t>(name->since_ns), comm);
      name_ring_->Pop();
    }
    name_ring_->Release();
    // A record that is being written blocks those after it, which may be complete already.
    const int64_t now_ns = Clock::Monotonic()->NowNs();
    if (!name_ring_->Busy() || now_ns >= give_up_ns) return;
    Clock::Monotonic()->SleepUntilNs(now_ns + kNamePauseNs);
  }
}

std::optional<int64_t> BpfSource::OldestCompletion() {
  std::optional<int64_t> oldest_ns;
  for (RingSet::CpuRing& one : rings_->rings()) {
    const auto* event = FrontOf<blktape_finished>(&one.ring);
    if (event == nullptr) continue;
    const auto complete_ns = static_cast<int64_t>(event->complete_ns);
    oldest_ns = std::min(oldest_ns.value_or(complete_ns), complete_ns);
  }
  return oldest_ns;
}

void BpfSource::DeliverUntil(int64_t ns, CaptureSink* sink) {
  for (RingSet::CpuRing& one : rings_->rings()) {
    while (const auto* event = FrontOf<blktape_finished>(&one.ring)) {
      const auto complete_ns = static_cast<int64_t>(event->complete_ns);
      if (complete_ns >= ns) break;
      Deliver(one.cpu, RecordOf(*event), sink);
      one.read_to_ns = complete_ns;
      one.ring.Pop();
    }
    one.ring.Release();
  }
}

// Everything before `ns` has been delivered, as far as it was available.
void BpfSource::SettleUntil(int64_t ns, CaptureSink* sink) {
  sink->OnWatermark(RingSet::WrittenUntil(rings_->rings(), ns) - kCommitMarginNs);
}

bool BpfSource::Drain(CaptureSink* sink) {
  bool any = false;
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  // A process's name is sent before its first record: if its record is seen here, its name will be
  // seen afterwards.
  rings_->Look();
  LearnNames();
  if (skeleton_->rodata->pid_namespace_inode != 0) LearnOwnPids();
  while (const std::optional<int64_t> oldest_ns = OldestCompletion()) {
    any = true;
    const int64_t end_ns = *oldest_ns + kSliceNs;
    DeliverUntil(end_ns, sink);
    if (end_ns > last_drain_ns_ && end_ns < now_ns) SettleUntil(end_ns, sink);
  }
  ReportLosses(last_drain_ns_, now_ns, sink);
  if (now_ns - sizes_told_ns_ >= kSizesIntervalNs) {
    sizes_told_ns_ = now_ns;
    sizes_.Report(sink);
  }
  SettleUntil(now_ns, sink);
  last_drain_ns_ = now_ns;
  return any;
}

void BpfSource::ReportLosses(int64_t from_ns, int64_t to_ns, CaptureSink* sink) {
  blktape_counters total{};
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu) {
    const blktape_counters& one = counters_[cpu];
    total.ring_full += one.ring_full;
    total.missing_start += one.missing_start;
    total.unknown_start += one.unknown_start;
    total.tag_reused += one.tag_reused;
    total.tag_range += one.tag_range;
    total.bio_table_full += one.bio_table_full;
    total.flagged_writes += one.flagged_writes;
    total.flushes_asked += one.flushes_asked;
    total.unstamped += one.unstamped;
    total.unknown_op += one.unknown_op;
  }
  const auto report = [&](proto::LossReason reason, uint64_t now, uint64_t before,
                          const char* detail) {
    if (now <= before) return;
    proto::Loss loss;
    loss.set_reason(reason);
    loss.set_count(now - before);
    loss.set_from_ns(from_ns);
    loss.set_to_ns(to_ns);
    loss.set_detail(detail);
    sink->OnLoss(loss);
    if (reason != proto::IN_FLIGHT_AT_START) lost_any_ = true;
  };
  report(proto::RING_OVERRUN, total.ring_full, told_.ring_full, "bpf ring full");
  report(proto::TAG_REUSED, total.tag_reused, told_.tag_reused,
         "completions that the program was not run for");
  report(proto::UNDECODABLE_EVENT, total.tag_range, told_.tag_range,
         "a tag or queue beyond those the disk had at the start");
  report(proto::UNDECODABLE_EVENT, total.unknown_op, told_.unknown_op,
         "requests of an operation that is not known");
  // Not caused by the rings: larger ones would not help.
  report(proto::MISSING_START_TIME, total.bio_table_full, told_.bio_table_full,
         "table of bios full");
  report(proto::MISSING_START_TIME, total.missing_start, told_.missing_start, "");
  const bool begun_before_us = !lost_any_ && to_ns - started_ns_ < kLongestIoNs;
  const proto::LossReason unknown =
      begun_before_us ? proto::IN_FLIGHT_AT_START : proto::MISSING_START_TIME;
  report(unknown, total.unknown_start, told_.unknown_start, "");
  report(unknown, total.unstamped, told_.unstamped, "queue times that a table had no room for");
  if (total.flagged_writes > told_.flagged_writes) {
    sink->OnFlaggedWrites(total.flagged_writes - told_.flagged_writes);
  }
  if (total.flushes_asked > told_.flushes_asked) {
    sink->OnQueuedSizes(Op::kFlush, 0, total.flushes_asked - told_.flushes_asked);
  }
  told_ = total;
}

// A request still in its slot when recording ends was issued and has not completed; likewise the
// bios of a bio-based device.
void BpfSource::ReportInFlight(CaptureSink* sink) {
  std::vector<blktape_slot> waiting;
  for (uint32_t i = 0; i < slot_count_; ++i) {
    if (slots_[i].rq != 0) waiting.push_back(slots_[i]);
  }
  const int bios = bpf_map__fd(skeleton_->maps.bios);
  uint64_t key = 0;
  for (bool more = bpf_map_get_next_key(bios, nullptr, &key) == 0; more;
       more = bpf_map_get_next_key(bios, &key, &key) == 0) {
    blktape_slot slot{};
    if (bpf_map_lookup_elem(bios, &key, &slot) == 0) waiting.push_back(slot);
  }
  if (waiting.empty()) return;
  // They are ordered by tag, and some are too old to be sorted after this point.
  std::ranges::sort(waiting, {}, [](const blktape_slot& slot) {
    return slot.start_ns != 0 ? slot.start_ns : slot.issue_ns;
  });
  for (const blktape_slot& slot : waiting) Deliver(slot.cpu, RecordOf(slot), sink);
  proto::Loss loss;
  loss.set_reason(proto::IN_FLIGHT_AT_END);
  loss.set_count(waiting.size());
  sink->OnLoss(loss);
}

void BpfSource::SetOwnPids(const std::vector<uint32_t>& pids) {
  static_assert(kOwnPidsMost == BLKTAPE_OWN_PIDS);
  BLKTAPE_CHECK(skeleton_ != nullptr && pids.size() <= kOwnPidsMost);
  const auto stays = [&](uint32_t pid) {
    return std::find(pids.begin(), pids.end(), pid) != pids.end();
  };
  // What must be forgotten about an entry that another thread takes.
  LearnOwnPids();
  std::erase_if(own_pids_by_seen_, [&](const auto& pair) { return !stays(pair.second); });
  const std::lock_guard lock(own_pids_mutex_);
  for (size_t i = 0; i < kOwnPidsMost; ++i) {
    if (stays(skeleton_->bss->own_pids[i])) continue;
    std::atomic_ref(skeleton_->bss->own_pids[i]).store(0);
    std::atomic_ref(skeleton_->bss->own_pids_seen[i]).store(0);
  }
  // Existing entries keep their places: the programs may read them concurrently.
  for (const uint32_t pid : pids) AddOwnPid(pid);
}

// A thread calls this before its first I/O: the kernel's id of the thread is only seen for bios
// queued while its entry exists.
void BpfSource::MarkThread() {
  const std::lock_guard lock(own_pids_mutex_);
  if (skeleton_ != nullptr) AddOwnPid(static_cast<uint32_t>(gettid()));
}

// Requires own_pids_mutex_. If all entries are taken, SetOwnPids will free one.
void BpfSource::AddOwnPid(uint32_t pid) {
  auto& own = skeleton_->bss->own_pids;
  if (std::find(std::begin(own), std::end(own), pid) != std::end(own)) return;
  const auto free = std::find(std::begin(own), std::end(own), 0u);
  if (free != std::end(own)) std::atomic_ref(*free).store(pid);
}

Result<bool> BpfSource::Grow(uint64_t limit_bytes) {
  ASSIGN_OR_RETURN(const bool grown, rings_->Grow(limit_bytes));
  SetWakeMask();
  return grown;
}

void BpfSource::LearnOwnPids() {
  for (size_t i = 0; i < kOwnPidsMost; ++i) {
    const uint32_t seen = skeleton_->bss->own_pids_seen[i];
    if (seen != 0) own_pids_by_seen_[seen] = skeleton_->bss->own_pids[i];
  }
}

Status BpfSource::Wait(int timeout_ms) {
  // Programs wake us only when a ring fills; otherwise a busy disk would cost a wake-up per I/O.
  if (quiet_turns_ < kQuietTurns) return rings_->Wait(std::min(timeout_ms, kLongestNapMs));
  std::atomic_ref asleep(skeleton_->bss->asleep);
  asleep.store(1);
  // Records that came before that woke nobody.
  rings_->Look();
  const Status waited = rings_->Wait(OldestCompletion() ? 0 : timeout_ms);
  asleep.store(0);
  return waited;
}

Result<bool> BpfSource::Poll(int timeout_ms, CaptureSink* sink) {
  BLKTAPE_CHECK(rings_ != nullptr);
  RETURN_IF_ERROR(Wait(timeout_ms));
  quiet_turns_ = Drain(sink) ? 0 : quiet_turns_ + 1;
  return true;
}

Status BpfSource::Stop(CaptureSink* sink) {
  BLKTAPE_CHECK(rings_ != nullptr);
  std::atomic_ref(skeleton_->bss->recording).store(0);
  block_bpf::detach(skeleton_);
  Drain(sink);
  sizes_.Report(sink);
  ReportInFlight(sink);
  Release();
  return OkStatus();
}

}  // namespace

std::unique_ptr<LiveSource> MakeBpfSource(std::vector<Disk> devices,
                                          const BpfSourceOptions& options) {
  return std::make_unique<BpfSource>(std::move(devices), options);
}

}  // namespace blktape
