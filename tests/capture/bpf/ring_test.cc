#include "capture/bpf/ring.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "capture/bpf/ring_set.h"

namespace blktape {
namespace {

// A ring as the kernel lays it out (kernel/bpf/ringbuf.c: a page with the consumer's position, one
// with the producer's, the data twice), in a file that we write as programs would.
class RingTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 4096;

  void SetUp() override {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    UniqueFd fd(memfd_create("ring", MFD_CLOEXEC));
    ASSERT_TRUE(static_cast<bool>(fd));
    size_ = 2 * page_ + 2 * kBytes;
    ASSERT_EQ(ftruncate(fd.get(), static_cast<off_t>(size_)), 0);
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    ASSERT_TRUE(ring_.Map(std::move(fd), kBytes).ok());
  }
  void TearDown() override { munmap(memory_, size_); }

  uint64_t& consumed() { return *reinterpret_cast<uint64_t*>(memory_); }
  uint64_t& produced() { return *reinterpret_cast<uint64_t*>(memory_ + page_); }

  // Each byte where the second mapping would show it as well.
  void Store(uint64_t position, const void* from, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      std::byte* const to = memory_ + 2 * page_ + (position + i) % kBytes;
      to[0] = to[kBytes] = static_cast<const std::byte*>(from)[i];
    }
  }
  void SetLength(uint64_t position, uint32_t length) { Store(position, &length, sizeof length); }
  // A record that holds `value`; returns where it is.
  uint64_t Write(uint32_t value, uint32_t length_bits = 0) {
    const uint64_t position = produced();
    SetLength(position, static_cast<uint32_t>(sizeof value) | length_bits);
    Store(position + BPF_RINGBUF_HDR_SZ, &value, sizeof value);
    produced() += BPF_RINGBUF_HDR_SZ + 8;  // lengths are rounded up to 8
    return position;
  }
  // The value of the front, popped; 0 if there is none.
  uint32_t Take() {
    const std::span<const std::byte> data = ring_.Front();
    if (data.empty()) return 0;
    EXPECT_EQ(data.size(), sizeof(uint32_t));
    uint32_t value = 0;
    std::memcpy(&value, data.data(), sizeof value);
    ring_.Pop();
    return value;
  }

  size_t page_ = 0;
  size_t size_ = 0;
  std::byte* memory_ = nullptr;
  Ring ring_;
};

TEST_F(RingTest, RecordsAreReadInTheOrderWrittenAndTheirRoomGivenBackOnRelease) {
  Write(1);
  Write(2);
  ring_.Look();
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);
  EXPECT_EQ(Take(), 0u);
  EXPECT_FALSE(ring_.Busy());
  EXPECT_EQ(consumed(), 0u) << "not yet";
  ring_.Release();
  EXPECT_EQ(consumed(), 32u) << "two of a header of 8 bytes and 4 rounded up to 8";
}

TEST_F(RingTest, WhatIsWrittenAfterALookIsSeenByTheNext) {
  Write(1);
  ring_.Look();
  Write(2);
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 0u);
  EXPECT_FALSE(ring_.Busy());
  ring_.Look();
  EXPECT_EQ(Take(), 2u);
}

TEST_F(RingTest, ARecordBeingWrittenHoldsUpThoseBehindIt) {
  const uint64_t position = Write(1, BPF_RINGBUF_BUSY_BIT);
  Write(2);
  ring_.Look();
  EXPECT_EQ(Take(), 0u);
  EXPECT_TRUE(ring_.Busy());
  SetLength(position, sizeof(uint32_t));
  EXPECT_FALSE(ring_.Busy());
  EXPECT_EQ(Take(), 1u);
  EXPECT_EQ(Take(), 2u);
}

TEST_F(RingTest, WhatAProgramTookBackIsPassedOver) {
  Write(1, BPF_RINGBUF_DISCARD_BIT);
  Write(2);
  Write(3, BPF_RINGBUF_DISCARD_BIT);
  ring_.Look();
  EXPECT_EQ(Take(), 2u);
  EXPECT_EQ(Take(), 0u);
  ring_.Release();
  EXPECT_EQ(consumed(), produced());
}

TEST_F(RingTest, GoesRoundAndRound) {
  uint32_t written = 0;
  uint32_t read = 0;
  // 1000 times 3 records of 16 bytes: more than eleven times round.
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 3; ++i) Write(++written);
    ring_.Look();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(Take(), ++read);
    ring_.Release();
  }
  EXPECT_EQ(consumed(), 48'000u);
}

TEST_F(RingTest, ARecordBeingWrittenHidesWhatWasWrittenAfterTheLastOneRead) {
  std::vector<RingSet::CpuRing> rings;
  rings.push_back({.cpu = 0, .ring = std::move(ring_), .read_to_ns = 500});
  rings[0].ring.Look();
  EXPECT_EQ(RingSet::WrittenUntil(rings, 900), 900) << "empty: nothing is hidden";
  const uint64_t position = Write(1, BPF_RINGBUF_BUSY_BIT);
  rings[0].ring.Look();
  EXPECT_EQ(RingSet::WrittenUntil(rings, 900), 500);
  EXPECT_EQ(RingSet::WrittenUntil(rings, 300), 300) << "of before that all is there";
  SetLength(position, sizeof(uint32_t));
  EXPECT_EQ(RingSet::WrittenUntil(rings, 900), 900) << "there, if not read yet";
}

}  // namespace
}  // namespace blktape
