#include "tests/support/desktop_load.h"

#include "base/units.h"

namespace blktape {

IoRecord DesktopLoad::Next() {
  const uint64_t dice = random_() % 100;
  const uint64_t gap_ns = dice < 90 ? random_() % 200'000 : random_() % 30'000'000;
  now_ns_ += static_cast<int64_t>(static_cast<double>(gap_ns) * stretch_);
  if (random_() % 3 == 0) sector_ = random_() % (span_sectors_ / 8) * 8;
  IoRecord io;
  io.op = dice < 40 ? Op::kRead : Op::kWrite;
  if (dice == 50) io.flags = kFlagSync | kFlagFua;
  io.bytes = dice >= 70 ? 4096 * (1 + random_() % 32) : 4096;
  const uint64_t sectors = io.bytes / kSectorBytes;
  if (sector_ + sectors > span_sectors_) sector_ = 0;
  io.lba = Lba(sector_);
  sector_ += sectors;
  io.queue_ns = now_ns_;
  io.issue_ns = now_ns_ + 1'000 + static_cast<int64_t>(random_() % 4'000);
  io.complete_ns = *io.issue_ns + 20'000 + static_cast<int64_t>(random_() % 100'000);
  io.error = 0;
  io.process = static_cast<uint32_t>(random_() % kProcesses);
  io.pid = 1000 + *io.process;
  io.cpu = static_cast<uint32_t>(random_() % 8);
  io.merged_bios = 0;
  return io;
}

}  // namespace blktape
