#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/trace.pb.h"
#include "replay/issue/issued_io.h"
#include "replay/outcome/write_ledger.h"
#include "replay/target/target.h"

namespace blktape {

// Proves that the last write won: every sector written bears its own stamp (address, number of the
// write); reads that complete after it, and a sweep over everything written at the end, must find
// it. Rests on two things: conflicting I/Os are never in flight together, and completions come here
// in the order in which they happened. So the sectors of a read were last written by the write that
// came here last. Not thread-safe.
class Verifier {
 public:
  // Whether these 512 bytes are what write `number` put at `sector`.
  using StampCheck =
      std::function<bool(std::span<const std::byte> content, uint64_t sector, uint32_t number)>;

  Verifier(WriteLedger ledger, StampCheck check)
      : ledger_(std::move(ledger)), check_(std::move(check)) {}

  // An I/O that completed; the buffer of a read holds what was read. A failure is ours (the ledger
  // could not be kept), not a mismatch.
  Status Completed(const IssuedIo& io);

  // Reads everything that was written from the targets and checks it; sectors that cannot be read
  // (any more) are mismatches. kCancelled when `stop` is set.
  Status Sweep(const std::vector<std::unique_ptr<Target>>& targets, const std::atomic<bool>& stop);

  void Report(proto::ReplayOutcome* outcome) const;
  uint64_t mismatches() const { return mismatches_; }

 private:
  void Check(uint32_t target, uint64_t first_sector, std::span<const std::byte> content,
             std::span<const uint32_t> expected, const char* when);
  void SweepPiece(const Target& target, uint32_t index, std::span<std::byte> buffer,
                  uint64_t first_sector, std::span<const uint32_t> expected);
  void CountUnread(uint32_t target, uint64_t first_sector, std::span<const uint32_t> expected,
                   int error);

  WriteLedger ledger_;
  const StampCheck check_;
  std::vector<uint32_t> expected_;  // kept for its memory
  uint64_t reads_ = 0;
  uint64_t sectors_ = 0;
  uint64_t mismatches_ = 0;
  std::string first_mismatch_;
};

}  // namespace blktape
