#include "replay/outcome/verifier.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "format/io_record.h"
#include "replay/issue/buffer_arena.h"

namespace blktape {
namespace {

constexpr uint64_t kSweepBytes = 1 << 20;
// The size of reads in a piece that cannot be read as a whole.
constexpr size_t kSweepStepBytes = 4096;

// Whether the ledger knows the content of a sector.
bool IsKnown(uint32_t number) {
  return number != WriteLedger::kNeverWritten && number != WriteLedger::kUnknown;
}

bool AllZero(std::span<const std::byte> content) {
  return std::all_of(content.begin(), content.end(),
                     [](std::byte one) { return one == std::byte{0}; });
}

}  // namespace

void Verifier::Check(uint32_t target, uint64_t first_sector, std::span<const std::byte> content,
                     std::span<const uint32_t> expected, const char* when) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const uint32_t number = expected[i];
    if (!IsKnown(number)) continue;
    const std::span<const std::byte> sector = content.subspan(i * kSectorBytes, kSectorBytes);
    ++sectors_;
    const bool right =
        number == WriteLedger::kZeroes ? AllZero(sector) : check_(sector, first_sector + i, number);
    if (right) continue;
    if (mismatches_++ == 0) {
      first_mismatch_ = number == WriteLedger::kZeroes
                            ? fmt::format("{}: sector {} of target {} is not all zeroes", when,
                                          first_sector + i, target)
                            : fmt::format("{}: sector {} of target {} does not hold write {}", when,
                                          first_sector + i, target, number);
    }
  }
}

Status Verifier::Completed(const IssuedIo& io) {
  const uint64_t first_sector = io.offset_bytes / kSectorBytes;
  const uint64_t sectors = io.bytes / kSectorBytes;
  const bool done = io.error == 0 && io.bytes_done == io.bytes;
  switch (io.op) {
    case Op::kFlush:
      return OkStatus();
    case Op::kRead: {
      if (!done) return OkStatus();
      ++reads_;
      expected_.resize(sectors);
      RETURN_IF_ERROR(ledger_.Get(io.target, first_sector, expected_));
      Check(io.target, first_sector, {io.buffer, io.bytes}, expected_, "read");
      return OkStatus();
    }
    case Op::kWrite:
      return ledger_.Set(io.target, first_sector, sectors,
                         !done             ? WriteLedger::kUnknown
                         : io.zero_payload ? WriteLedger::kZeroes
                                           : WriteLedger::NumberOf(io.sequence));
    case Op::kWriteZeroes:
      return ledger_.Set(io.target, first_sector, sectors,
                         io.error == 0 ? WriteLedger::kZeroes : WriteLedger::kUnknown);
    default:
      return ledger_.Set(io.target, first_sector, sectors, WriteLedger::kUnknown);
  }
}

void Verifier::SweepPiece(const Target& target, uint32_t index, std::span<std::byte> buffer,
                          uint64_t first_sector, std::span<const uint32_t> expected) {
  const ssize_t got = pread(target.fd(), buffer.data(), buffer.size(),
                            static_cast<off_t>(first_sector * kSectorBytes));
  const int error = got < 0 ? errno : 0;
  if (got == static_cast<ssize_t>(buffer.size())) {
    Check(index, first_sector, buffer, expected, "final sweep");
  } else if (const size_t step = std::max<size_t>(kSweepStepBytes, target.logical_block_bytes());
             buffer.size() > step) {
    // Checks the readable part, so that a bad sector does not make its neighbours mismatches.
    for (size_t at = 0; at < buffer.size(); at += step) {
      const size_t bytes = std::min(step, buffer.size() - at);
      const auto part = expected.subspan(at / kSectorBytes, bytes / kSectorBytes);
      if (std::none_of(part.begin(), part.end(), IsKnown)) continue;
      SweepPiece(target, index, buffer.subspan(at, bytes), first_sector + at / kSectorBytes, part);
    }
  } else {
    CountUnread(index, first_sector, expected, error);
  }
}

// Unreadable sectors are mismatches. `error` is 0 if the target ended before them.
void Verifier::CountUnread(uint32_t target, uint64_t first_sector,
                           std::span<const uint32_t> expected, int error) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!IsKnown(expected[i])) continue;
    ++sectors_;
    if (mismatches_++ > 0) continue;
    first_mismatch_ =
        fmt::format("final sweep: sector {} of target {} cannot be read: {}", first_sector + i,
                    target, error != 0 ? std::strerror(error) : "the target ends before it");
  }
}

Status Verifier::Sweep(const std::vector<std::unique_ptr<Target>>& targets,
                       const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(BufferArena arena, BufferArena::Create(kSweepBytes));
  std::byte* const buffer = arena.Acquire(kSweepBytes);
  for (uint32_t index = 0; index < targets.size(); ++index) {
    const Target& target = *targets[index];
    uint64_t at = 0;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<WriteLedger::Stretch> stretch,
                       ledger_.NextWritten(index, at));
      if (!stretch) break;
      // Whole pieces, because reads with O_DIRECT need aligned addresses.
      at = stretch->first_sector * kSectorBytes / kSweepBytes * (kSweepBytes / kSectorBytes);
      for (; at < stretch->end_sector; at += kSweepBytes / kSectorBytes) {
        if (stop.load(std::memory_order_relaxed)) {
          return Status(StatusCode::kCancelled, "the final sweep was interrupted");
        }
        const uint64_t begin_bytes = at * kSectorBytes;
        BLKTAPE_CHECK(begin_bytes < target.size_bytes());
        const uint64_t bytes = std::min(kSweepBytes, target.size_bytes() - begin_bytes);
        expected_.resize(bytes / kSectorBytes);
        RETURN_IF_ERROR(ledger_.Get(index, at, expected_));
        SweepPiece(target, index, {buffer, bytes}, at, expected_);
      }
    }
  }
  return OkStatus();
}

void Verifier::Report(proto::ReplayOutcome* outcome) const {
  outcome->set_verified_reads(reads_);
  outcome->set_verified_sectors(sectors_);
  outcome->set_verify_mismatches(mismatches_);
  if (!first_mismatch_.empty()) outcome->set_first_mismatch(first_mismatch_);
}

}  // namespace blktape
