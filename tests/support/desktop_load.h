#pragma once

#include <cstdint>
#include <random>

#include "format/io_record.h"

namespace blktape {

// What a desktop asks of its disk: ordered in time, in bursts and pauses, few sizes, mostly
// sequential, by several processes. Endless; the same arguments give the same I/Os.
class DesktopLoad {
 public:
  static constexpr uint32_t kProcesses = 20;  // process and pid of a record: N and 1000 + N
  static constexpr uint64_t kSpanSectors = uint64_t{1} << 31;
  // By the gaps of Next(): nine in ten are 0.1 ms on average, one 15 ms.
  static constexpr double kRate = 1e9 / (0.9 * 100'000 + 0.1 * 15'000'000);

  // `rate` is I/Os a second on average; no I/O ends beyond `span_sectors`, at least 1 MiB.
  explicit DesktopLoad(uint64_t seed, double rate = kRate, uint64_t span_sectors = kSpanSectors)
      : random_(seed), stretch_(kRate / rate), span_sectors_(span_sectors) {}
  IoRecord Next();

 private:
  std::mt19937_64 random_;
  double stretch_;
  uint64_t span_sectors_;
  int64_t now_ns_ = 1'000'000'000;
  uint64_t sector_ = 2048;
};

}  // namespace blktape
