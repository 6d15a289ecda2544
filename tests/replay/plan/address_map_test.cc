#include "replay/plan/address_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blktape {
namespace {

constexpr uint64_t kMiB = 1 << 20;

AddressMap Make(Remap remap, uint64_t begin, uint64_t end, uint64_t target, uint32_t block = 512,
                std::optional<int64_t> offset = {}, bool align = false) {
  return AddressMap({.remap = remap, .offset_bytes = offset, .align = align}, begin, end, target,
                    block);
}

TEST(AddressMapTest, RefuseLeavesAddressesAsTheyAre) {
  const AddressMap map = Make(Remap::kRefuse, 0, kMiB, kMiB);
  const auto place = map.Map(Lba(8), 4096);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->offset_bytes, 4096u);
  EXPECT_EQ(place->bytes, 4096u);
  EXPECT_FALSE(place->moved);
}

TEST(AddressMapTest, TheLastBlockFitsAndOneSectorMoreDoesNot) {
  const AddressMap map = Make(Remap::kRefuse, 0, kMiB, kMiB);
  EXPECT_TRUE(map.Map(Lba(2048 - 8), 4096).ok());
  const auto beyond = map.Map(Lba(2048 - 7), 4096);
  EXPECT_EQ(beyond.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(beyond.status().message(), testing::HasSubstr("LBA 2041"));
}

// From byte 512 to 2^64, which is 0: widened to whole blocks it had no length, and so fitted.
TEST(AddressMapTest, ARequestWhoseEndFitsNoNumberIsBeyondTheTarget) {
  const AddressMap map({.remap = Remap::kWrap, .offset_bytes = {}, .align = true}, 0, 1 << 20,
                       1 << 20, 4096);
  EXPECT_EQ(map.Map(Lba(1), UINT64_MAX - 511).status().code(), StatusCode::kFailedPrecondition);
}

TEST(AddressMapTest, AnAddressWhoseBytesDoNotFitANumberIsBeyondTheTarget) {
  // 2^55 sectors are 2^64 bytes, which would come out as byte 0.
  EXPECT_FALSE(Make(Remap::kRefuse, 0, kMiB, kMiB).Map(Lba(uint64_t{1} << 55), 4096).ok());
  EXPECT_FALSE(Make(Remap::kWrap, 0, kMiB, kMiB).Map(Lba(uint64_t{1} << 55), 4096).ok());
}

TEST(AddressMapTest, OffsetMovesTheFootprintToTheStartByWholeMebibytes) {
  // Begins at 5 MiB + 4096: moved down by 5 MiB, so alignment to 1 MiB is kept.
  const AddressMap map = Make(Remap::kOffset, 5 * kMiB + 4096, 6 * kMiB, kMiB);
  const auto place = map.Map(Lba((5 * kMiB + 4096) / 512), 512);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->offset_bytes, 4096u);
  EXPECT_TRUE(place->moved);
}

TEST(AddressMapTest, AnExplicitOffsetBelowZeroIsRefused) {
  const AddressMap map = Make(Remap::kOffset, 0, kMiB, kMiB, 512, -4096);
  EXPECT_FALSE(map.Map(Lba(0), 512).ok());
  EXPECT_EQ(map.Map(Lba(8), 512)->offset_bytes, 0u);
}

TEST(AddressMapTest, AFootprintAtTheHighestAddressMovesToTheStartToo) {
  // 2^63 has no negative number of 64 bits.
  constexpr uint64_t kBegin = uint64_t{1} << 63;
  const AddressMap map = Make(Remap::kOffset, kBegin, kBegin + kMiB, kMiB);
  EXPECT_FALSE(map.Map(Lba(kBegin / 512), 4096).ok()) << "no address of a disk";
  EXPECT_FALSE(map.Map(Lba(0), 4096).ok()) << "2^63 bytes below the start";
}

TEST(AddressMapTest, ScaleHalvesAddressesAndKeepsTheirAlignment) {
  const AddressMap map = Make(Remap::kScale, 0, 8 * kMiB, 4 * kMiB);
  // 12,288 * 1/2 = 6,144, rounded down to the 4096 that start and size were multiples of.
  EXPECT_EQ(map.Map(Lba(24), 4096)->offset_bytes, 4096u);
  // 1,024 / 2 = 512: start and size were multiples of 512 only, and so is the result.
  EXPECT_EQ(map.Map(Lba(2), 512)->offset_bytes, 512u);
  // The last block of the footprint would begin at 4 MiB - 2048 and ends with the target instead.
  EXPECT_EQ(map.Map(Lba(8 * kMiB / 512 - 8), 4096)->offset_bytes, 4 * kMiB - 4096);
}

TEST(AddressMapTest, WrapTakesTheRemainderAndAnIoAcrossTheEndEndsThere) {
  const AddressMap map = Make(Remap::kWrap, 0, 10 * kMiB, 4 * kMiB);
  EXPECT_EQ(map.Map(Lba(9 * kMiB / 512), 4096)->offset_bytes, kMiB);
  EXPECT_FALSE(map.Map(Lba(kMiB / 512), 4096)->moved);
  EXPECT_EQ(map.Map(Lba(4 * kMiB / 512 - 1), 4096)->offset_bytes, 4 * kMiB - 4096);
  EXPECT_FALSE(map.Map(Lba(0), 5 * kMiB).ok()) << "larger than the target";
}

TEST(AddressMapTest, PartOfABlockIsRefusedOrWidenedToWholeOnes) {
  EXPECT_FALSE(Make(Remap::kRefuse, 0, kMiB, kMiB, 4096).Map(Lba(7), 512).ok());
  const AddressMap map = Make(Remap::kRefuse, 0, kMiB, kMiB, 4096, {}, /*align=*/true);
  const auto place = map.Map(Lba(7), 1024);  // bytes 3584 to 4608: blocks 0 and 1
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->offset_bytes, 0u);
  EXPECT_EQ(place->bytes, 8192u);
  EXPECT_TRUE(place->widened);
  EXPECT_FALSE(map.Map(Lba(8), 4096)->widened);
}

TEST(AddressMapTest, NamesAreThoseOfTheCommandLine) {
  for (const Remap remap : {Remap::kRefuse, Remap::kOffset, Remap::kScale, Remap::kWrap}) {
    EXPECT_EQ(*ParseRemap(RemapName(remap)), remap);
  }
  EXPECT_EQ(ParseRemap("modulo").status().code(), StatusCode::kInvalidArgument);
}

TEST(AddressMapTest, NothingFitsATargetSmallerThanABlock) {
  for (const Remap remap : {Remap::kRefuse, Remap::kOffset, Remap::kScale, Remap::kWrap}) {
    for (const bool align : {false, true}) {
      const AddressMap map = Make(remap, 0, kMiB, /*target=*/100, /*block=*/512, {}, align);
      EXPECT_FALSE(map.Map(Lba(8), 512).ok()) << RemapName(remap);
    }
  }
}

}  // namespace
}  // namespace blktape
