#pragma once

#include <cstddef>
#include <cstdint>

#include "format/io_record.h"

namespace blktape {

inline constexpr uint64_t kNoSequence = UINT64_MAX;

// An I/O that was issued and completed: what is kept of its PlannedIo, and what became of it.
// Small, as it goes from the issuing thread's processor to the recorder's.
struct IssuedIo {
  Op op = Op::kRead;
  bool zero_payload = false;
  bool punted = false;
  // Not issued: a copy of a commit's I/O that another commit stood in for. Has no times.
  bool left_out = false;
  uint8_t lane = 0;  // of the issuing thread
  uint32_t flags = 0;
  uint32_t target = 0;
  uint32_t error = 0;
  uint64_t sequence = 0;
  uint64_t ordinal = 0;
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
  std::byte* buffer = nullptr;
  uint64_t bytes_done = 0;
  int64_t due_ns = 0;
  // When the thread saw that what it waited for at the drive, other than a slot, had completed: a
  // conflicting I/O, one that held the memory, one that the driver did within the submission's
  // call. INT64_MIN: nothing.
  int64_t freed_ns = INT64_MIN;
  uint64_t freed_by = kNoSequence;  // the sequence of that one, of whatever lane, where it is known
  // How long its thread had had none of its kind (a transfer, or one that begins with a flush) at
  // the drive when it was due; INT64_MAX if never.
  int64_t pause_ns = 0;
  int64_t issue_ns = 0;
  // Until when it is known to have been at the drive, and when the thread saw that it was complete:
  // the same, but where the host stopped in between.
  int64_t complete_ns = 0;
  int64_t seen_ns = 0;
};

// Takes what was issued, in the order of completion, and what is left out. Called by one thread at
// a time; must not block for long.
class IssueSink {
 public:
  virtual ~IssueSink() = default;
  virtual void Done(const IssuedIo& io) = 0;
};

}  // namespace blktape
