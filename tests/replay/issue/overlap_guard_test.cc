#include "replay/issue/overlap_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace blktape {
namespace {

constexpr uint64_t kLater = UINT64_MAX;

TEST(OverlapGuardTest, AWriteConflictsWithWhatSharesASector) {
  OverlapGuard guard(4);
  guard.Add(0, /*target=*/0, Op::kWrite, 4096, 4096, /*sequence=*/0);
  EXPECT_TRUE(guard.Conflicts(0, Op::kRead, 8191, 512, kLater));
  EXPECT_TRUE(guard.Conflicts(0, Op::kDiscard, 0, 1 << 20, kLater));
  EXPECT_FALSE(guard.Conflicts(0, Op::kWrite, 8192, 4096, kLater)) << "adjacent";
  EXPECT_FALSE(guard.Conflicts(0, Op::kWrite, 0, 4096, kLater)) << "adjacent";
  EXPECT_FALSE(guard.Conflicts(1, Op::kWrite, 4096, 4096, kLater)) << "another target";
  EXPECT_FALSE(guard.Conflicts(0, Op::kFlush, 0, 0, kLater));
  guard.Remove(0);
  EXPECT_FALSE(guard.Conflicts(0, Op::kWrite, 4096, 4096, kLater));
}

TEST(OverlapGuardTest, ReadsDoNotConflictWithReads) {
  OverlapGuard guard(4);
  guard.Add(2, 0, Op::kRead, 0, 4096, 0);
  EXPECT_FALSE(guard.Conflicts(0, Op::kRead, 0, 4096, kLater));
  EXPECT_TRUE(guard.Conflicts(0, Op::kWrite, 0, 4096, kLater));
}

TEST(OverlapGuardTest, OnlyEarlierOnesCount) {
  OverlapGuard guard(4);
  guard.Add(0, 0, Op::kWrite, 0, 4096, /*sequence=*/5);
  EXPECT_FALSE(guard.Conflicts(0, Op::kWrite, 0, 4096, 5));
  EXPECT_TRUE(guard.Conflicts(0, Op::kWrite, 0, 4096, 6));
}

TEST(OverlapGuardTest, ADiscardOfManyGibibytesConflictsEverywhereInside) {
  OverlapGuard guard(4);
  guard.Add(0, 0, Op::kDiscard, 0, uint64_t{64} << 30, 0);
  EXPECT_TRUE(guard.Conflicts(0, Op::kRead, uint64_t{63} << 30, 512, kLater));
  EXPECT_FALSE(guard.Conflicts(0, Op::kRead, uint64_t{64} << 30, 512, kLater));
}

// Against the definition, applied to everything that is out.
TEST(OverlapGuardTest, AgreesWithComparingAllPairs) {
  constexpr uint32_t kSlots = 64;
  struct Out {
    bool used = false;
    uint32_t target;
    Op op;
    uint64_t begin, bytes, sequence;
  };
  OverlapGuard guard(kSlots);
  std::vector<Out> out(kSlots);
  std::mt19937_64 random(11);
  uint64_t conflicts = 0;
  for (uint64_t step = 0; step < 50'000; ++step) {
    const uint32_t slot = random() % kSlots;
    if (out[slot].used) {
      guard.Remove(slot);
      out[slot].used = false;
      continue;
    }
    const Op ops[] = {Op::kRead, Op::kWrite, Op::kDiscard};
    const uint64_t shift = random() % 26;
    const Out one{true,
                  static_cast<uint32_t>(random() % 2),
                  ops[random() % 3],
                  random() % (1 << 16) * 4096,
                  (1 + random() % 8) * 512 << (shift > 20 ? shift - 8 : 0),
                  step};
    const bool expected = std::any_of(out.begin(), out.end(), [&one](const Out& other) {
      return other.used && other.target == one.target && other.begin < one.begin + one.bytes &&
             one.begin < other.begin + other.bytes &&
             (other.op != Op::kRead || one.op != Op::kRead);
    });
    conflicts += expected ? 1 : 0;
    ASSERT_EQ(guard.Conflicts(one.target, one.op, one.begin, one.bytes, one.sequence), expected)
        << "step " << step;
    guard.Add(slot, one.target, one.op, one.begin, one.bytes, one.sequence);
    out[slot] = one;
  }
  EXPECT_GT(conflicts, 100u) << "the case was exercised";
}

}  // namespace
}  // namespace blktape
