#include "replay/plan/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace blktape {
namespace {

std::vector<IoRecord> All(const WorkloadSpec& spec) {
  auto stream = MakeGenerator(spec);
  EXPECT_TRUE(stream.ok()) << stream.status().message();
  std::vector<IoRecord> records;
  IoRecord io;
  uint64_t ordinal = 0;
  while (*(*stream)->Next(&io, &ordinal)) {
    EXPECT_EQ(ordinal, records.size());
    records.push_back(io);
  }
  return records;
}

TEST(GeneratorTest, SequentialCoversTheSpanInOrderAndBeginsAgain) {
  const auto records = All({.pattern = WorkloadSpec::Pattern::kSequential,
                            .sizes = {{.bytes = 8192}},
                            .begin_bytes = 1 << 20,
                            .span_bytes = 20'480,
                            .count = 3});
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].lba->bytes(), 1u << 20);
  EXPECT_EQ(records[1].lba->bytes(), (1u << 20) + 8192);
  EXPECT_EQ(records[2].lba->bytes(), 1u << 20) << "a third block would cross the end of the span";
}

TEST(GeneratorTest, RandomStaysInsideTheSpanAndOnItsGrid) {
  const auto records = All({.sizes = {{.bytes = 4096}},
                            .read_share = 0.65,
                            .begin_bytes = 512,
                            .span_bytes = 10 * 4096 + 1,
                            .count = 20'000});
  uint64_t reads = 0;
  std::vector<uint64_t> hits(10);
  for (const IoRecord& io : records) {
    ASSERT_EQ((io.lba->bytes() - 512) % 4096, 0u);
    ASSERT_LE(io.lba->bytes() - 512 + io.bytes, 10u * 4096 + 1);
    ++hits[(io.lba->bytes() - 512) / 4096];
    reads += io.op == Op::kRead ? 1 : 0;
  }
  // Binomial: 13,000 expected, standard deviation 67; 2,000 each, 42. Six of them on either side.
  EXPECT_NEAR(reads, 13'000, 400);
  for (const uint64_t one : hits) EXPECT_NEAR(one, 2'000, 260);
}

TEST(GeneratorTest, SizesComeInTheirShares) {
  const auto records = All({.sizes = {{.bytes = 512, .weight = 3}, {.bytes = 4096, .weight = 1}},
                            .span_bytes = 1 << 20,
                            .count = 10'000});
  uint64_t small = 0;
  for (const IoRecord& io : records) small += io.bytes == 512 ? 1 : 0;
  EXPECT_NEAR(small, 7'500, 260) << "standard deviation 43";
}

TEST(GeneratorTest, TheMeanSizeIsThatOfTheSharesWhateverTheyAddUpTo) {
  const auto generator =
      MakeGenerator({.sizes = {{.bytes = 512, .weight = 3}, {.bytes = 4096, .weight = 1}},
                     .span_bytes = 1 << 20});
  ASSERT_TRUE(generator.ok());
  EXPECT_EQ((*generator)->mean_data_bytes(), 1408u);  // (3 * 512 + 4096) / 4
}

TEST(GeneratorTest, EvenArrivalsAreOnePeriodApart) {
  const auto records = All({.span_bytes = 1 << 20, .count = 4, .rate = 1000.0});
  EXPECT_EQ(records[1].queue_ns, 1'000'000);
  EXPECT_EQ(records[3].queue_ns, 3'000'000);
}

TEST(GeneratorTest, ExponentialGapsHaveTheMeanOfTheRate) {
  const auto records =
      All({.span_bytes = 1 << 20, .count = 10'001, .rate = 1000.0, .exponential_gaps = true});
  EXPECT_EQ(records[0].queue_ns, 0);
  // Mean of 10,000 gaps of 1 ms: standard deviation 10 us a gap.
  EXPECT_NEAR(static_cast<double>(*records[10'000].queue_ns) / 10'000, 1e6, 6e4);
}

TEST(GeneratorTest, TheSameSeedYieldsTheSameRecordsAndAnotherDoesNot) {
  const WorkloadSpec spec{.span_bytes = 1 << 30, .count = 100};
  WorkloadSpec other = spec;
  other.seed = 2;
  EXPECT_EQ(All(spec), All(spec));
  EXPECT_NE(All(spec), All(other));
}

TEST(GeneratorTest, NonsenseIsRefusedByName) {
  EXPECT_THAT(MakeGenerator({.span_bytes = 2048, .count = 1}).status().message(),
              testing::HasSubstr("does not fit"));
  EXPECT_THAT(MakeGenerator({.read_share = 1.5, .span_bytes = 8192}).status().message(),
              testing::HasSubstr("0 to 100"));
  EXPECT_THAT(MakeGenerator({.span_bytes = 8192, .align_bytes = 100}).status().message(),
              testing::HasSubstr("alignment"));
}

}  // namespace
}  // namespace blktape
