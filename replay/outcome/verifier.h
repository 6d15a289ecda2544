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

// Proves that each sector holds the last write to it. Every sector written has its own stamp
// (address, number of the write); reads that complete later, and a final sweep over everything
// written, must find that stamp. This relies on two conditions: conflicting I/Os are never in
// flight together, and completions are passed to the verifier in the order in which they happened.
// So the last write passed to the verifier is also the last one on the sectors of a read. Not
// thread-safe.
class Verifier {
 public:
  // Whether these 512 bytes are the content of write `number` at `sector`.
  using StampCheck =
      std::function<bool(std::span<const std::byte> content, uint64_t sector, uint32_t number)>;

  Verifier(WriteLedger ledger, StampCheck check)
      : ledger_(std::move(ledger)), check_(std::move(check)) {}

  // Takes a completed I/O; a read's buffer must hold the data that was read. Fails only if the
  // ledger cannot be written; a mismatch is counted and is no failure.
  Status Completed(const IssuedIo& io);

  // Reads everything that was written from the targets and checks it. Sectors that cannot be read
  // are mismatches. kCancelled when `stop` is set.
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
  std::vector<uint32_t> expected_;  // a member only to reuse its memory
  uint64_t reads_ = 0;
  uint64_t sectors_ = 0;
  uint64_t mismatches_ = 0;
  std::string first_mismatch_;
};

}  // namespace blktape
