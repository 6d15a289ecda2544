#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "format/io_record.h"

namespace blktape {

// What happened to a bio or request, in blktrace's terms (its letter in brackets).
enum class BlockAction : uint8_t {
  kQueue,       // Q  a bio arrived
  kGetRequest,  // G
  kInsert,      // I
  kBackMerge,   // M  a bio was appended to a queued request
  kFrontMerge,  // F
  kSplit,       // X  a bio was split; split_lba is where the rest begins
  kRemap,       // A  a bio was redirected from (from_device, from_lba)
  kRequeue,     // R  the driver returned it to the queue
  kIssue,       // D
  kComplete,    // C  `bytes` of the request are done
};

// Process name as the kernel keeps it: at most 15 characters, NUL padded.
using ProcessComm = std::array<char, 16>;
// The characters of the name; valid as long as `comm` exists.
inline std::string_view CommView(const ProcessComm& comm) {
  return {comm.data(), strnlen(comm.data(), comm.size())};
}

// One event of one device. Plain data; times on the recorded machine's monotonic clock.
struct BlockEvent {
  int64_t time_ns = 0;
  uint32_t device = 0;  // kernel dev_t: major << 20 | minor
  uint32_t cpu = 0;
  BlockAction action = BlockAction::kQueue;
  Op op = Op::kRead;
  uint32_t flags = 0;  // kFlag... of io_record.h
  Lba lba;
  uint64_t bytes = 0;
  uint32_t pid = 0;              // its task; of issues and completions often a kernel thread
  uint32_t error = 0;            // positive errno, completions only
  uint64_t sequence = 0;         // per CPU, 0 = not numbered
  Lba split_lba;                 // kSplit
  uint32_t from_device = 0;      // kRemap
  Lba from_lba;                  // kRemap
  ProcessComm comm{};            // empty if the event does not contain it
  std::optional<uint16_t> prio;  // ioprio value of the request, if the source reports it
  // The source has no name for this op: write zeroes, or an append on a zoned disk.
  bool unnamed_op = false;
  // A flush that a layer above passes on as the first step of a write with PREFLUSH.
  bool of_write = false;
  bool passthrough = false;  // a SCSI/NVMe command from user space, not file system I/O
};

}  // namespace blktape
