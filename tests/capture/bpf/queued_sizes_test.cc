#include "capture/bpf/queued_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "base/file.h"
#include "tests/capture/source/recording_sink.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// What the programs' map "sizes" holds for a CPU.
struct Counts {
  uint64_t count[BLKTAPE_SIZE_OPS * BLKTAPE_SIZE_SLOTS];
  uint8_t touched[BLKTAPE_SIZE_PARTS];
};

class SizesSink : public RecordingSink {
 public:
  void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) override {
    sizes.emplace_back(op, bytes, count);
  }
  std::vector<std::tuple<Op, uint64_t, uint64_t>> sizes;
};

// Memory in the place of the kernel's map.
class QueuedSizesTest : public ::testing::Test {
 protected:
  static constexpr size_t kCpus = 3;
  QueuedSizesTest() : fd_(memfd_create("sizes", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), sizeof(Counts) * kCpus), 0);
    map_ = static_cast<Counts*>(
        mmap(nullptr, sizeof(Counts) * kCpus, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
    EXPECT_TRUE(sizes_.Open(fd_.get(), -1, kCpus).ok());
  }
  ~QueuedSizesTest() override { munmap(map_, sizeof(Counts) * kCpus); }

  void Count(size_t cpu, Op op, uint64_t sectors) {
    const size_t index = static_cast<size_t>(op) * BLKTAPE_SIZE_SLOTS + sectors;
    ++map_[cpu].count[index];
    map_[cpu].touched[index / BLKTAPE_SIZE_PART] = 1;
  }
  std::vector<std::tuple<Op, uint64_t, uint64_t>> Report() {
    SizesSink sink;
    sizes_.Report(&sink);
    return sink.sizes;
  }

  UniqueFd fd_;
  Counts* map_;
  QueuedSizes sizes_;
};

TEST_F(QueuedSizesTest, OfAllCpusTogetherAndOnlyWhatIsNew) {
  Count(0, Op::kRead, 8);
  Count(2, Op::kRead, 8);
  Count(1, Op::kWrite, 8);
  EXPECT_THAT(Report(), UnorderedElementsAre(std::tuple(Op::kRead, 4096u, 2u),
                                             std::tuple(Op::kWrite, 4096u, 1u)));
  EXPECT_THAT(Report(), IsEmpty());
  Count(2, Op::kRead, 8);
  EXPECT_THAT(Report(), ElementsAre(std::tuple(Op::kRead, 4096u, 1u)));
}

TEST_F(QueuedSizesTest, TheFirstAndTheLastSizeOfEach) {
  for (const uint64_t sectors : {0, BLKTAPE_SIZE_SLOTS - 1}) {
    Count(0, Op::kRead, sectors);
    Count(0, Op::kWrite, sectors);
  }
  EXPECT_THAT(Report(), UnorderedElementsAre(
                            std::tuple(Op::kRead, 0u, 1u), std::tuple(Op::kRead, 2u << 20, 1u),
                            std::tuple(Op::kWrite, 0u, 1u), std::tuple(Op::kWrite, 2u << 20, 1u)));
}

TEST_F(QueuedSizesTest, WhatNobodyTouchedIsNotReadAgain) {
  Count(1, Op::kRead, 8);
  Report();
  // A count without its mark, as no program leaves one.
  ++map_[1].count[8];
  EXPECT_THAT(Report(), IsEmpty());
  Count(1, Op::kRead, 9);
  EXPECT_THAT(Report(),
              ElementsAre(std::tuple(Op::kRead, 4096u, 1u), std::tuple(Op::kRead, 4608u, 1u)));
}

}  // namespace
}  // namespace blktape
