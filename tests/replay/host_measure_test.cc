#include "replay/host_measure.h"

#include <gtest/gtest.h>

namespace blktape {
namespace {

constexpr int64_t kMs = 1'000'000;

// 100 I/Os that the issuer saw take 102 ms, and the disk 100: 20 us each are the host's.
TEST(HostMeasureTest, WhatTheDisksStatisticsDoNotHoldIsTheHosts) {
  EXPECT_EQ(HostPartNs({{.ios = 100, .seen_ns = 102 * kMs, .counted = 100, .counted_ms = 100}}),
            20'000);
}

TEST(HostMeasureTest, OneSampleInWhichTheHostStoppedChangesNothing) {
  const HostSample quiet = {.ios = 100, .seen_ns = 102 * kMs, .counted = 100, .counted_ms = 100};
  const HostSample stopped = {.ios = 80, .seen_ns = 122 * kMs, .counted = 80, .counted_ms = 80};
  EXPECT_EQ(HostPartNs({quiet, stopped, quiet}), 20'000);
}

// What a busy host adds comes and goes. If more were taken out than it added to the run, a drive
// would look better than it is.
TEST(HostMeasureTest, OfABusyHostTheQuietestSampleTells) {
  const HostSample quiet = {.ios = 100, .seen_ns = 102 * kMs, .counted = 100, .counted_ms = 100};
  const HostSample busy = {.ios = 90, .seen_ns = 128 * kMs, .counted = 90, .counted_ms = 90};
  const HostSample busier = {.ios = 80, .seen_ns = 140 * kMs, .counted = 80, .counted_ms = 80};
  EXPECT_EQ(HostPartNs({busy, busier, quiet, busy, busier}), 20'000);
}

// 100 I/Os take the disk 105.5 ms, of which the statistics hold 105 or 106. With 107.5 ms as seen,
// 20 us an I/O are the host's: no single sample says so.
TEST(HostMeasureTest, WhatTheStatisticsCutOffIsInTheNextSample) {
  const HostSample cut = {.ios = 100, .seen_ns = 107'500'000, .counted = 100, .counted_ms = 105};
  HostSample more = cut;
  more.counted_ms = 106;
  EXPECT_EQ(HostPartNs({cut, more, cut, more}), 20'000);
}

// The statistics count whole ms, so that they can hold more than was seen.
TEST(HostMeasureTest, ItIsNeverLessThanNothing) {
  EXPECT_EQ(HostPartNs({{.ios = 100, .seen_ns = 99 * kMs, .counted = 100, .counted_ms = 100}}), 0);
}

// Flushes of a disk without a write cache end in the kernel.
TEST(HostMeasureTest, WhatTheDiskWasNeverSentIsTheHostsAlone) {
  EXPECT_EQ(HostPartNs({{.ios = 100, .seen_ns = 1 * kMs, .counted = 0, .counted_ms = 0}}), 10'000);
}

TEST(HostMeasureTest, WhereTheDiskWorkedForOthersNothingIsKnown) {
  EXPECT_EQ(HostPartNs({{.ios = 100, .seen_ns = 102 * kMs, .counted = 101, .counted_ms = 100}}),
            std::nullopt);
  EXPECT_EQ(HostPartNs({}), std::nullopt);
  EXPECT_EQ(HostPartNs({{}}), std::nullopt);
}

// The second flush right after the first, as the data.
TEST(HostPartTest, WhereTwoFlushesComeFirstBothAreTheHosts) {
  HostPart part = {.transfer = {.at_once_ns = 10, .after_pause_ns = 15},
                   .flush = {.at_once_ns = 30, .after_pause_ns = 50}};
  constexpr uint32_t kFlags = kFlagPreflush | kFlagFua | kFlagMapped;
  EXPECT_EQ(part.Of(Op::kWrite, kFlags, 4096, kHostPauseNs), 50 + 10);
  part.has_fua = false;
  EXPECT_EQ(part.Of(Op::kWrite, kFlags, 4096, kHostPauseNs), 50 + 30 + 10);
  EXPECT_EQ(part.Of(Op::kWrite, kFlags & ~kFlagMapped, 4096, kHostPauseNs), 50 + 10);
}

}  // namespace
}  // namespace blktape
