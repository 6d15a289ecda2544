#include "capture/bpf/bpf_source.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <linux/types.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "format/io_record.h"

// clang-format off: the generated skeleton uses the types of the shared header.
#include "capture/bpf/block_abi.h"
#include "capture/bpf/block.skel.h"
// clang-format on

namespace blktape {
namespace {

// block.bpf.c cannot include io_record.h and repeats these.
static_assert(static_cast<int>(Op::kFlush) == 3 && static_cast<int>(Op::kWriteZeroes) == 4 &&
              static_cast<int>(Op::kSecureErase) == 5 && static_cast<int>(Op::kZoneReset) == 6 &&
              static_cast<int>(Op::kZoneAppend) == 11);
static_assert(kFlagSync == 1 && kFlagFua == 2 && kFlagPreflush == 4 && kFlagMeta == 8 &&
              kFlagReadahead == 16 && kFlagDerived == 32 && kFlagAtomic == 64);

// A completion without an issue is an I/O begun before us as long as this has not passed: the block
// layer's time-out.
constexpr int64_t kLongestIoNs = 30 * kNanosPerSecond;
// What is waiting is fetched at least this often, however quiet.
constexpr int kLongestNapMs = 50;
// Counts of sizes are read this often: there are thousands of them.
constexpr int64_t kSizesIntervalNs = kNanosPerSecond / 4;
constexpr uint64_t kLargestRingBytes = 1u << 30;
constexpr size_t kKnownNames = 65536;

// include/linux/blk_types.h, BLK_STS_*; block/blk-core.c gives each its errno.
uint32_t ErrnoOfStatus(int32_t status) {
  if (status < 0) return static_cast<uint32_t>(-status);
  switch (status) {
    case 0:
      return 0;
    case 1:
      return EOPNOTSUPP;
    case 2:
      return ETIMEDOUT;
    case 3:
      return ENOSPC;
    case 4:
      return ENOLINK;
    case 5:
      return EREMOTEIO;
    case 6:
      return EBADE;
    case 7:
      return ENODATA;
    case 8:
      return EILSEQ;
    case 9:
      return ENOMEM;
    case 11:
      return EREMCHG;
    case 12:
      return EAGAIN;
    case 13:
      return EBUSY;
    default:
      return EIO;
  }
}

// Memory of a map that the kernel shares with us.
template <typename T>
class MappedArray {
 public:
  MappedArray() = default;
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;
  ~MappedArray() { Unmap(); }

  Status Map(int fd, size_t entries, bool writable) {
    Unmap();
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (entries * sizeof(T) + page - 1) / page * page;
    void* memory =
        mmap(nullptr, bytes_, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return ErrnoStatus(errno, "bpf: mapping an array");
    data_ = static_cast<T*>(memory);
    return OkStatus();
  }
  void Unmap() {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
  }
  const T& operator[](size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  size_t bytes_ = 0;
};

struct SizeCounts {
  uint64_t count[BLKTAPE_SIZE_OPS][BLKTAPE_SIZE_SLOTS];
};

// The last lines libbpf printed: what a refusal is explained with. libbpf's printer is one a
// process.
std::string& LibbpfLog() {
  static std::string log;
  return log;
}

__attribute__((format(printf, 2, 0))) int KeepLog(enum libbpf_print_level level, const char* format,
                                                  va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  std::vector<char> line(1 << 16);
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  LibbpfLog() += line.data();
  // The verifier's verdict stands at the end of a long log.
  if (LibbpfLog().size() > 2048) LibbpfLog().erase(0, LibbpfLog().size() - 2048);
  return length;
}

// Hardware queues and tags of a request-based disk; absent members mean bio-based.
struct QueueShape {
  uint32_t queues = 0;
  uint32_t tags = 0;
};

QueueShape ShapeOf(uint32_t dev) {
  QueueShape shape;
  std::error_code error;
  const std::string folder =
      "/sys/dev/block/" + std::to_string(dev >> 20) + ":" + std::to_string(dev & 0xfffff) + "/mq";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const uint32_t number =
        static_cast<uint32_t>(std::strtoul(entry.path().filename().c_str(), nullptr, 10));
    shape.queues = std::max(shape.queues, number + 1);
    uint32_t tags = 0;
    for (const char* name : {"/nr_tags", "/nr_reserved_tags"}) {
      const Result<std::string> text = ReadFile(entry.path().string() + name);
      if (text.ok()) tags += static_cast<uint32_t>(std::strtoul(text->c_str(), nullptr, 10));
    }
    shape.tags = std::max(shape.tags, tags);
  }
  // The queue's depth can be raised while we record.
  if (shape.queues > 0) shape.tags = std::max<uint32_t>(shape.tags, 256);
  return shape;
}

class BpfSource : public LiveSource {
 public:
  BpfSource(std::vector<CaptureDevice> devices, const BpfSourceOptions& options)
      : devices_(std::move(devices)), options_(options) {}
  ~BpfSource() override { Release(); }

  std::string_view name() const override { return "bpf"; }
  std::vector<CaptureDevice> devices() const override { return devices_; }

  Status Start() override;
  Result<bool> Poll(int timeout_ms, CaptureSink* sink) override;
  Status Stop(CaptureSink* sink) override;

  uint64_t buffer_bytes_per_cpu() const override { return ring_bytes_; }
  Result<uint64_t> KernelLost() override { return told_.ring_full + told_.bio_table_full; }
  Result<bool> Grow(uint64_t limit_bytes) override;
  // Reading the table of rare sizes is a bpf() call, as is making larger rings.
  std::vector<int> KeptCapabilities() const override { return {CAP_BPF}; }

 private:
  struct Finished {
    uint32_t stream;
    blktape_finished event;
  };
  struct RingContext {
    BpfSource* source;
    uint32_t cpu;
  };

  Status Load();
  Status MakeRing(uint32_t cpu);
  Status MakeRings();
  Status Attach();
  void Release();
  void Drain(CaptureSink* sink);
  void Deliver(uint32_t stream, const IoRecord& record, CaptureSink* sink) const;
  void ReportLosses(int64_t from_ns, int64_t to_ns, CaptureSink* sink);
  void ReportSizes(CaptureSink* sink);
  void ReportInFlight(CaptureSink* sink);
  IoRecord RecordOf(const blktape_finished& event) const;
  static int OnRingData(void* context, void* data, size_t size);

  std::vector<CaptureDevice> devices_;
  BpfSourceOptions options_;
  block_bpf* skeleton_ = nullptr;
  ring_buffer* buffers_ = nullptr;
  std::vector<UniqueFd> rings_;
  std::vector<RingContext> contexts_;
  uint32_t cpus_ = 0;
  uint32_t slot_count_ = 0;
  uint64_t ring_bytes_ = 0;
  bool any_bio_based_ = false;
  MappedArray<blktape_counters> counters_;
  MappedArray<SizeCounts> sizes_;
  MappedArray<blktape_slot> slots_;
  blktape_counters told_{};  // totals already reported
  std::vector<SizeCounts> told_sizes_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> told_rare_sizes_;
  int64_t started_ns_ = 0;
  int64_t last_drain_ns_ = 0;
  int64_t sizes_told_ns_ = 0;
  bool lost_any_ = false;
  // One round's harvest: names first, so that no record precedes the name of its process.
  std::vector<Finished> finished_;
  std::vector<blktape_name> names_;
  std::unordered_map<uint32_t, ProcessComm> known_names_;
};

Status BpfSource::Load() {
  LibbpfLog().clear();
  libbpf_set_print(&KeepLog);
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
  skeleton_->rodata->device_count = static_cast<uint32_t>(devices_.size());
  skeleton_->rodata->want_names = options_.process_names;
  slot_count_ = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const QueueShape shape = ShapeOf(devices_[i].dev);
    skeleton_->rodata->devices[i] = {
        .dev = devices_[i].dev, .base = slot_count_, .tags = shape.tags, .queues = shape.queues};
    slot_count_ += shape.queues * (shape.tags + 1);
    any_bio_based_ = any_bio_based_ || shape.queues == 0;
  }
  bpf_map__set_max_entries(skeleton_->maps.slots, std::max<uint32_t>(slot_count_, 1));
  bpf_map__set_max_entries(skeleton_->maps.rings, cpus_);
  bpf_map__set_max_entries(skeleton_->maps.counters, cpus_);
  bpf_map__set_max_entries(skeleton_->maps.sizes, cpus_);
  bpf_program__set_autoload(skeleton_->progs.on_bio_complete, any_bio_based_);
  bpf_program__set_autoload(skeleton_->progs.on_rename, options_.process_names);
  const int error = block_bpf::load(skeleton_);
  if (error != 0) {
    const int err = -error;
    // EACCES comes from the verifier as well, to those who may load programs.
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

// Gives `cpu` a ring of ring_bytes_. One it had before stays with us, to be read empty.
Status BpfSource::MakeRing(uint32_t cpu) {
  UniqueFd ring(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "blktape_ring", 0, 0,
                               static_cast<uint32_t>(ring_bytes_), nullptr));
  if (!ring) return ErrnoStatus(errno, "bpf: a ring of " + std::to_string(ring_bytes_) + " bytes");
  const int fd = ring.get();
  if (buffers_ == nullptr) {
    buffers_ = ring_buffer__new(fd, &OnRingData, &contexts_[cpu], nullptr);
    if (buffers_ == nullptr) return ErrnoStatus(errno, "bpf: opening a ring");
  } else if (const int error = ring_buffer__add(buffers_, fd, &OnRingData, &contexts_[cpu]);
             error != 0) {
    return ErrnoStatus(-error, "bpf: opening a ring");
  }
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.rings), &cpu, &fd, BPF_ANY) != 0) {
    return ErrnoStatus(errno, "bpf: installing a ring");
  }
  rings_.push_back(std::move(ring));
  return OkStatus();
}

Status BpfSource::MakeRings() {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t wanted = options_.ring_bytes_per_cpu != 0 ? options_.ring_bytes_per_cpu
                                                           : PlanBuffersHere().bytes_per_cpu / 2;
  const uint64_t bytes = std::bit_ceil(std::max(wanted, page));
  ring_bytes_ = bytes;
  if (bytes > kLargestRingBytes) {
    return Status(StatusCode::kInvalidArgument, "bpf: a ring is at most 1 GiB");
  }
  contexts_.reserve(cpus_);
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu) contexts_.push_back({this, cpu});
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu) RETURN_IF_ERROR(MakeRing(cpu));
  RETURN_IF_ERROR(counters_.Map(bpf_map__fd(skeleton_->maps.counters), cpus_, false));
  RETURN_IF_ERROR(sizes_.Map(bpf_map__fd(skeleton_->maps.sizes), cpus_, false));
  if (slot_count_ > 0) {
    RETURN_IF_ERROR(slots_.Map(bpf_map__fd(skeleton_->maps.slots), slot_count_, false));
  }
  told_sizes_.assign(cpus_, SizeCounts{});
  return OkStatus();
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
  if (status.ok()) status = MakeRings();
  if (status.ok()) status = Attach();
  if (!status.ok()) {
    Release();
    return status;
  }
  started_ns_ = last_drain_ns_ = Clock::Monotonic()->NowNs();
  return OkStatus();
}

void BpfSource::Release() {
  if (buffers_ != nullptr) ring_buffer__free(buffers_);
  buffers_ = nullptr;
  counters_.Unmap();
  sizes_.Unmap();
  slots_.Unmap();
  if (skeleton_ != nullptr) block_bpf::destroy(skeleton_);
  skeleton_ = nullptr;
  rings_.clear();
  contexts_.clear();
}

int BpfSource::OnRingData(void* context, void* data, size_t size) {
  const RingContext& ring = *static_cast<RingContext*>(context);
  uint32_t kind = 0;
  std::memcpy(&kind, data, sizeof kind);
  if (kind == BLKTAPE_FINISHED && size >= sizeof(blktape_finished)) {
    Finished finished{ring.cpu, {}};
    std::memcpy(&finished.event, data, sizeof finished.event);
    ring.source->finished_.push_back(finished);
  } else if (kind == BLKTAPE_NAME && size >= sizeof(blktape_name)) {
    blktape_name name{};
    std::memcpy(&name, data, sizeof name);
    ring.source->names_.push_back(name);
  }
  return 0;
}

IoRecord BpfSource::RecordOf(const blktape_finished& event) const {
  IoRecord record;
  record.device = event.dev;
  record.op = static_cast<Op>(event.op);
  record.flags = event.flags;
  if (record.op != Op::kFlush) {
    record.lba = Lba(event.sector);
  } else {
    // The flush that software asks for is a bio with PREFLUSH and SYNC; of it the record keeps
    // SYNC.
    record.flags &= ~kFlagPreflush;
    if (event.asked > 0) record.flags |= kFlagSync;
  }
  record.bytes = event.bytes;
  // One cached stamp serves a whole plugged batch and can be a little older or, on a busy queue,
  // absent.
  // Nobody queued a derived flush: its stamp is of its own issue.
  if (event.start_ns != 0 && (event.flags & kFlagDerived) == 0) {
    record.queue_ns = static_cast<int64_t>(event.start_ns);
  }
  if (event.issue_ns != 0) record.issue_ns = static_cast<int64_t>(event.issue_ns);
  if (event.complete_ns != 0) {
    record.complete_ns = static_cast<int64_t>(event.complete_ns);
    record.error = ErrnoOfStatus(event.status);
  }
  record.pid = event.pid;
  record.cpu = event.cpu;
  if (event.prio != 0) record.prio = event.prio;
  if (event.asked > 1) record.merged_bios = event.asked - 1;
  return record;
}

void BpfSource::Deliver(uint32_t stream, const IoRecord& record, CaptureSink* sink) const {
  const auto known = known_names_.find(*record.pid);
  sink->OnFinished(stream, record, known == known_names_.end() ? ProcessComm{} : known->second);
}

void BpfSource::Drain(CaptureSink* sink) {
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  ring_buffer__consume(buffers_);
  if (known_names_.size() > kKnownNames) known_names_.clear();
  for (const blktape_name& name : names_) {
    ProcessComm comm{};
    std::memcpy(comm.data(), name.comm, comm.size() - 1);
    known_names_[name.pid] = comm;
    sink->OnProcessName(name.pid, comm);
  }
  names_.clear();
  for (const Finished& finished : finished_) {
    Deliver(finished.stream, RecordOf(finished.event), sink);
  }
  finished_.clear();
  ReportLosses(last_drain_ns_, now_ns, sink);
  if (now_ns - sizes_told_ns_ >= kSizesIntervalNs) {
    sizes_told_ns_ = now_ns;
    ReportSizes(sink);
  }
  sink->OnWatermark(now_ns);
  last_drain_ns_ = now_ns;
}

void BpfSource::ReportLosses(int64_t from_ns, int64_t to_ns, CaptureSink* sink) {
  blktape_counters total{};
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu) {
    const blktape_counters& one = counters_[cpu];
    total.ring_full += one.ring_full;
    total.missing_start += one.missing_start;
    total.tag_reused += one.tag_reused;
    total.tag_range += one.tag_range;
    total.bio_table_full += one.bio_table_full;
    total.flagged_writes += one.flagged_writes;
    total.flushes_asked += one.flushes_asked;
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
  report(proto::RING_OVERRUN, total.bio_table_full, told_.bio_table_full, "table of bios full");
  const bool begun_before_us = !lost_any_ && to_ns - started_ns_ < kLongestIoNs;
  report(begun_before_us ? proto::IN_FLIGHT_AT_START : proto::MISSING_START_TIME,
         total.missing_start, told_.missing_start, "");
  if (total.flagged_writes > told_.flagged_writes) {
    sink->OnFlaggedWrites(total.flagged_writes - told_.flagged_writes);
  }
  if (total.flushes_asked > told_.flushes_asked) {
    sink->OnQueuedSizes(Op::kFlush, 0, total.flushes_asked - told_.flushes_asked);
  }
  told_ = total;
}

void BpfSource::ReportSizes(CaptureSink* sink) {
  for (uint32_t op = 0; op < BLKTAPE_SIZE_OPS; ++op) {
    for (uint32_t sectors = 0; sectors < BLKTAPE_SIZE_SLOTS; ++sectors) {
      uint64_t count = 0;
      for (uint32_t cpu = 0; cpu < cpus_; ++cpu) {
        const uint64_t now = sizes_[cpu].count[op][sectors];
        uint64_t& before = told_sizes_[cpu].count[op][sectors];
        count += now - before;
        before = now;
      }
      if (count > 0) sink->OnQueuedSizes(static_cast<Op>(op), sectors * kSectorBytes, count);
    }
  }
  const int fd = bpf_map__fd(skeleton_->maps.rare_sizes);
  blktape_size_key key{};
  blktape_size_key* previous = nullptr;
  blktape_size_key next{};
  while (bpf_map_get_next_key(fd, previous, &next) == 0) {
    uint64_t now = 0;
    if (bpf_map_lookup_elem(fd, &next, &now) == 0) {
      uint64_t& before = told_rare_sizes_[{next.op, next.bytes}];
      if (now > before) sink->OnQueuedSizes(static_cast<Op>(next.op), next.bytes, now - before);
      before = now;
    }
    key = next;
    previous = &key;
  }
}

// What is still in its slot when recording ends was issued and has not completed.
void BpfSource::ReportInFlight(CaptureSink* sink) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < slot_count_; ++i) {
    const blktape_slot& slot = slots_[i];
    if (slot.rq == 0) continue;
    const IoRecord record = RecordOf({.kind = BLKTAPE_FINISHED,
                                      .dev = slot.dev,
                                      .issue_ns = slot.issue_ns,
                                      .start_ns = slot.start_ns,
                                      .complete_ns = 0,
                                      .sector = slot.sector,
                                      .bytes = slot.bytes,
                                      .pid = slot.pid,
                                      .flags = slot.flags,
                                      .cpu = slot.cpu,
                                      .op = slot.op,
                                      .unused = 0,
                                      .prio = slot.prio,
                                      .status = 0,
                                      .asked = slot.asked});
    Deliver(slot.cpu, record, sink);
    ++count;
  }
  if (count == 0) return;
  proto::Loss loss;
  loss.set_reason(proto::IN_FLIGHT_AT_END);
  loss.set_count(count);
  sink->OnLoss(loss);
}

Result<bool> BpfSource::Grow(uint64_t limit_bytes) {
  // The smaller ones stay until the end: together less than the new.
  const uint64_t bytes = ring_bytes_ * 2;
  if (bytes > kLargestRingBytes || bytes * 2 * cpus_ > limit_bytes) return false;
  ring_bytes_ = bytes;
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu) RETURN_IF_ERROR(MakeRing(cpu));
  return true;
}

Result<bool> BpfSource::Poll(int timeout_ms, CaptureSink* sink) {
  BLKTAPE_CHECK(buffers_ != nullptr);
  // Programs wake us only every so many records of a CPU, or an idle disk would cost a wake-up an
  // I/O.
  epoll_event event{};
  if (epoll_wait(ring_buffer__epoll_fd(buffers_), &event, 1, std::min(timeout_ms, kLongestNapMs)) <
          0 &&
      errno != EINTR) {
    return ErrnoStatus(errno, "bpf: waiting for the rings");
  }
  Drain(sink);
  return true;
}

Status BpfSource::Stop(CaptureSink* sink) {
  BLKTAPE_CHECK(buffers_ != nullptr);
  block_bpf::detach(skeleton_);
  Drain(sink);
  ReportSizes(sink);
  ReportInFlight(sink);
  Release();
  return OkStatus();
}

}  // namespace

std::unique_ptr<LiveSource> MakeBpfSource(std::vector<CaptureDevice> devices,
                                          const BpfSourceOptions& options) {
  return std::make_unique<BpfSource>(std::move(devices), options);
}

std::optional<std::string> WhyBpfMayMissEvents() {
  // Any function of the kernel would do.
  const int function = libbpf_find_vmlinux_btf_id("blk_mq_start_request", BPF_TRACE_FENTRY);
  if (function <= 0) return std::nullopt;
  const bpf_insn return_zero[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
  };
  bpf_prog_load_opts options{};
  options.sz = sizeof options;
  options.expected_attach_type = BPF_TRACE_FENTRY;
  options.attach_btf_id = static_cast<__u32>(function);
  const UniqueFd program(bpf_prog_load(BPF_PROG_TYPE_TRACING, "blktape_probe", "GPL", return_zero,
                                       std::size(return_zero), &options));
  if (program || errno != EPERM) return std::nullopt;
  return "bpf: this kernel restricts BPF (no programs at functions' entries) and may\n"
         "  miss events; it counts them. --source=bpf takes it nevertheless";
}

}  // namespace blktape
