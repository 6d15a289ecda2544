#include <linux/blktrace_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/kernel_dev.h"
#include "base/units.h"
#include "capture/export/exporter.h"

namespace blktape {
namespace {

// include/uapi/linux/blktrace_api.h.
constexpr uint32_t kMagic7 = BLK_IO_TRACE_MAGIC | 7;
constexpr size_t kHeaderBytes = sizeof(blk_io_trace);
static_assert(kHeaderBytes == 48);

// A file descriptor each; beyond it I/Os share the last one's.
constexpr uint32_t kMostCpus = 512;
// Completions wait for those of earlier I/Os; of more than so many in flight the oldest are written
// out of order of time.
constexpr size_t kMostWaiting = 1'000'000;

// blktrace's binary files, version 7: NAME.blktrace.CPU, as blkparse, btt and fio (after blkparse
// -d) read them. Of an I/O a Q event where it has a queue time, a D where it has an issue time, a C
// where it has completed, all on the CPU that issued it.
class Blktrace : public Exporter {
 public:
  explicit Blktrace(ExportOutput* output) : output_(output) {}

  Status Begin(const proto::Header& header) override {
    uint32_t minor = 0;
    for (const proto::Device& device : header.devices()) {
      // What was never a device of Linux gets numbers from the range for experiments (240).
      const bool known = device.major() != 0 || device.minor() != 0;
      const uint32_t number = known ? KernelDev(device.major(), KernelDevMinor(device.minor()))
                                    : KernelDev(240, minor++);
      devices_.push_back(number);
    }
    if (header.has_start()) {
      anchor_ = header.start();
    }
    return OkStatus();
  }

  Status Record(const IoRecord& io, std::string_view process) override {
    const std::optional<uint32_t> category = CategoryOf(io.op);
    const std::optional<int64_t> arrival_ns = io.arrival_ns();
    if (!category) {
      LeftOut("I/Os of an operation that version 7 does not name");
      return OkStatus();
    }
    if (!arrival_ns || *arrival_ns < 0) {
      LeftOut("I/Os of unknown time, or before the clock's zero");
      return OkStatus();
    }
    if (io.op == Op::kSecureErase) LeftOut("that an erase was secure: written as a discard");
    if (io.bytes > UINT32_MAX) LeftOut("bytes beyond 4 GiB of one I/O");
    if (io.merged_bios.value_or(0) > 0) LeftOut("the bios merged into an I/O");
    if (io.prio) LeftOut("priorities");
    if ((io.flags & ~(kFlagSync | kFlagFua | kFlagPreflush | kFlagMeta | kFlagReadahead)) != 0) {
      LeftOut("flags that version 7 does not name");
    }

    Event event;
    event.device = devices_[io.device];
    event.cpu = std::min(io.cpu.value_or(0), kMostCpus - 1);
    event.sector = io.lba ? io.lba->sectors : 0;
    event.bytes = static_cast<uint32_t>(std::min<uint64_t>(io.bytes, UINT32_MAX));
    event.pid = io.pid.value_or(0);
    event.category = *category | FlagsOf(io.flags);
    if (io.op == Op::kFlush) event.bytes = 0;
    if (io.pid && !process.empty()) RETURN_IF_ERROR(Name(*io.pid, process, *arrival_ns, event.cpu));

    if (io.queue_ns) {
      Event queue = event;
      // What asks for a flush is a write of nothing.
      if (io.op == Op::kFlush) queue.category |= BLK_TC_WRITE | BLK_TC_FLUSH;
      Push(queue, *io.queue_ns, __BLK_TA_QUEUE, BLK_TC_QUEUE);
    }
    if (io.issue_ns) Push(event, *io.issue_ns, __BLK_TA_ISSUE, BLK_TC_ISSUE);
    if (io.complete_ns) {
      event.error = static_cast<uint16_t>(std::min<uint32_t>(io.error.value_or(0), UINT16_MAX));
      event.pid = 0;
      Push(event, *io.complete_ns, __BLK_TA_COMPLETE, BLK_TC_COMPLETE);
    }
    // Nothing earlier than this I/O follows, but for the few that a trace holds out of order.
    while (!waiting_.empty() &&
           (waiting_.top().ns < *arrival_ns || waiting_.size() > kMostWaiting)) {
      RETURN_IF_ERROR(WriteOldest());
    }
    return OkStatus();
  }

  Status Finish() override {
    while (!waiting_.empty()) RETURN_IF_ERROR(WriteOldest());
    // blkparse wants the file of CPU 0.
    RETURN_IF_ERROR(FileOf(0).status());
    for (auto& [cpu, file] : files_) RETURN_IF_ERROR(Flush(&file));
    return OkStatus();
  }

 private:
  struct Event {
    int64_t ns = 0;
    uint64_t number = 0;  // of equal times the first added goes first
    uint64_t sector = 0;
    uint32_t bytes = 0;
    uint32_t category = 0;
    uint32_t what = 0;
    uint32_t pid = 0;
    uint32_t device = 0;
    uint32_t cpu = 0;
    uint16_t error = 0;
    bool operator>(const Event& other) const {
      return std::tie(ns, number) > std::tie(other.ns, other.number);
    }
  };
  struct File {
    ByteSink* sink = nullptr;
    std::string bytes;  // to be written
    uint32_t sequence = 0;
  };
  static constexpr size_t kFlushBytes = size_t{1} << 18;

  static std::optional<uint32_t> CategoryOf(Op op) {
    switch (op) {
      case Op::kRead:
        return BLK_TC_READ;
      case Op::kWrite:
        return BLK_TC_WRITE;
      case Op::kDiscard:
      case Op::kSecureErase:
        return BLK_TC_WRITE | BLK_TC_DISCARD;
      case Op::kFlush:
        return BLK_TC_FLUSH;
      default:
        return std::nullopt;
    }
  }
  static uint32_t FlagsOf(uint32_t flags) {
    uint32_t category = 0;
    if ((flags & kFlagSync) != 0) category |= BLK_TC_SYNC;
    if ((flags & kFlagFua) != 0) category |= BLK_TC_FUA;
    if ((flags & kFlagPreflush) != 0) category |= BLK_TC_FLUSH;
    if ((flags & kFlagMeta) != 0) category |= BLK_TC_META;
    if ((flags & kFlagReadahead) != 0) category |= BLK_TC_AHEAD;
    return category;
  }

  void Push(Event event, int64_t ns, uint32_t what, uint32_t stage) {
    event.ns = std::max<int64_t>(ns, 0);
    event.number = number_++;
    event.what = what;
    event.category |= stage;
    waiting_.push(event);
  }

  Result<File*> FileOf(uint32_t cpu) {
    File& file = files_[cpu];
    if (file.sink == nullptr) {
      ASSIGN_OR_RETURN(file.sink, output_->File(".blktrace." + std::to_string(cpu)));
      if (anchor_) {
        // CLOCK_REALTIME at `time` of the machine's monotonic clock.
        const int64_t wall_ns = std::max<int64_t>(anchor_->wall_ns(), 0);
        const uint32_t words[2] = {static_cast<uint32_t>(wall_ns / kNanosPerSecond),
                                   static_cast<uint32_t>(wall_ns % kNanosPerSecond)};
        Event event;
        event.ns = std::max<int64_t>(anchor_->monotonic_ns(), 0);
        event.cpu = cpu;
        event.what = __BLK_TN_TIMESTAMP;
        event.category = BLK_TC_NOTIFY;
        Append(event, std::as_bytes(std::span(words)), &file);
      }
    }
    return &file;
  }

  Status WriteOldest() {
    const Event event = waiting_.top();
    waiting_.pop();
    ASSIGN_OR_RETURN(File* const file, FileOf(event.cpu));
    Append(event, {}, file);
    return file->bytes.size() < kFlushBytes ? OkStatus() : Flush(file);
  }

  // A pid is called so from here on.
  Status Name(uint32_t pid, std::string_view process, int64_t ns, uint32_t cpu) {
    char comm[16] = {};
    if (process.size() > sizeof(comm) - 1) LeftOut("names beyond 15 characters");
    process.copy(comm, sizeof(comm) - 1);
    auto [known, added] = names_.try_emplace(pid, comm);
    if (!added && known->second == comm) return OkStatus();
    known->second = comm;
    ASSIGN_OR_RETURN(File* const file, FileOf(cpu));
    Event event;
    event.ns = ns;
    event.pid = pid;
    event.cpu = cpu;
    event.what = __BLK_TN_PROCESS;
    event.category = BLK_TC_NOTIFY;
    Append(event, std::as_bytes(std::span(comm)), file);
    return OkStatus();
  }

  static void Append(const Event& event, std::span<const std::byte> payload, File* file) {
    blk_io_trace trace{};
    trace.magic = kMagic7;
    const bool notify = (event.category & BLK_TC_NOTIFY) != 0;
    trace.sequence = notify ? 0 : ++file->sequence;
    trace.time = static_cast<uint64_t>(event.ns);
    trace.sector = event.sector;
    trace.bytes = event.bytes;
    trace.action = event.what | BLK_TC_ACT(event.category);
    trace.pid = event.pid;
    trace.device = event.device;
    trace.cpu = event.cpu;
    trace.error = event.error;
    trace.pdu_len = static_cast<uint16_t>(payload.size());
    file->bytes.append(reinterpret_cast<const char*>(&trace), sizeof(trace));
    file->bytes.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  }

  static Status Flush(File* file) {
    const Status status = file->sink->Write(std::as_bytes(std::span(file->bytes)));
    file->bytes.clear();
    return status;
  }

  ExportOutput* output_;
  std::vector<uint32_t> devices_;
  std::optional<proto::ClockAnchor> anchor_;
  std::map<uint32_t, File> files_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> waiting_;
  std::unordered_map<uint32_t, std::string> names_;
  uint64_t number_ = 0;
};

}  // namespace

ExportFormat BlktraceExport() {
  return {.name = "blktrace",
          .title = "blktrace binary version 7: -o NAME makes NAME.blktrace.CPU (blkparse, btt)",
          .lacks = "merges, write zeroes, zones, priorities, names beyond 15 characters, losses",
          .several_files = true,
          .make = [](ExportOutput* output) { return std::make_unique<Blktrace>(output); }};
}

}  // namespace blktape
