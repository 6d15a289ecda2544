#include "replay/outcome/payload.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <string_view>

namespace blktape {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::string_view View(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What lies on a target after writes of mixed sizes, in random order, some over others.
std::vector<std::byte> Target(const PayloadOptions& options, uint64_t bytes = 16 * kMiB) {
  const Payload payload(options);
  std::vector<std::byte> target(bytes);
  uint32_t number = 0;
  for (uint64_t at = 0; at < bytes; at += 128 * 1024) {
    payload.Fill({target.data() + at, 128 * 1024}, at, ++number);
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    const uint64_t size = 4096u << (random() % 5);
    const uint64_t at = random() % ((bytes - size) / 4096) * 4096;
    payload.Fill({target.data() + at, size}, at, ++number);
  }
  return target;
}

// `zstd -3`, or with `far` also --long, which finds repetitions over a distance of megabytes.
double ZstdShare(const std::vector<std::byte>& data, bool far = false) {
  std::vector<char> out(ZSTD_compressBound(data.size()));
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
  ZSTD_CCtx_setParameter(context, ZSTD_c_enableLongDistanceMatching, far ? 1 : 0);
  const size_t size = ZSTD_compress2(context, out.data(), out.size(), data.data(), data.size());
  ZSTD_freeCCtx(context);
  EXPECT_FALSE(ZSTD_isError(size));
  return static_cast<double>(size) / static_cast<double>(data.size());
}

// By the program lz4; negative where there is none.
double Lz4Share(const std::vector<std::byte>& data) {
  const std::string path = testing::TempDir() + "/payload";
  std::ofstream(path).write(View(data).data(), static_cast<std::streamsize>(data.size()));
  FILE* const pipe = popen(("lz4 -q -c " + path + " 2>/dev/null | wc -c").c_str(), "r");
  long size = 0;
  const int fields = pipe != nullptr ? std::fscanf(pipe, "%ld", &size) : 0;
  if (pipe != nullptr) pclose(pipe);
  std::remove(path.c_str());
  if (fields != 1 || size == 0) return -1;
  return static_cast<double>(size) / static_cast<double>(data.size());
}

class CompressibleTest : public testing::TestWithParam<uint32_t> {};

TEST_P(CompressibleTest, ItsShareIsWhatCompressorsFind) {
  const std::vector<std::byte> target = Target({.compressible_percent = GetParam()});
  EXPECT_NEAR(1 - ZstdShare(target), GetParam() / 100.0, 0.02);
  const double lz4 = Lz4Share(target);
  if (lz4 < 0) GTEST_SKIP() << "SKIPPED in part: the program lz4 is not installed";
  EXPECT_NEAR(1 - lz4, GetParam() / 100.0, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Shares, CompressibleTest, testing::Values(0, 1, 25, 50, 75, 99, 100));

class DedupeTest : public testing::TestWithParam<uint32_t> {};

TEST_P(DedupeTest, ItsShareOfBlocksNeedNotBeStored) {
  const std::vector<std::byte> target = Target({.dedupe_percent = GetParam()}, 32 * kMiB);
  std::set<std::string_view> different;
  const uint64_t blocks = target.size() / 4096;
  for (uint64_t i = 0; i < blocks; ++i) different.insert(View({target.data() + i * 4096, 4096}));
  const double share = 1 - static_cast<double>(different.size()) / static_cast<double>(blocks);
  EXPECT_NEAR(share, GetParam() / 100.0, 0.02);
  EXPECT_NEAR(1 - ZstdShare(target, /*far=*/true), GetParam() / 100.0, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Shares, DedupeTest, testing::Values(0, 10, 50, 90, 100));

TEST(PayloadTest, CompressibleAndDedupeWorkTogether) {
  // 40 % duplicates, and half of the rest compresses: (1 - 0.4) x (1 - 0.5) remains.
  const std::vector<std::byte> target =
      Target({.compressible_percent = 50, .dedupe_percent = 40}, 32 * kMiB);
  EXPECT_NEAR(ZstdShare(target, /*far=*/true), 0.3, 0.02);
}

TEST(PayloadTest, NoTwoSectorsAreAlikeByDefaultWhateverTheWriteSize) {
  const Payload payload({});
  std::set<std::string> sectors;
  std::vector<std::byte> buffer(65536);
  size_t count = 0;
  for (uint32_t number = 1; number <= 200; ++number) {
    const uint64_t bytes = 512 * (1 + number % 128);
    // The same place each time: the address must not be all that tells writes apart.
    payload.Fill({buffer.data(), bytes}, 512 * (number % 8), number);
    for (uint64_t at = 0; at < bytes; at += 512, ++count) {
      sectors.emplace(View({buffer.data() + at, 512}));
    }
  }
  EXPECT_EQ(sectors.size(), count);
}

TEST(PayloadTest, CompressibleSmallWritesKeepTheShareToo) {
  const Payload payload({.compressible_percent = 50});
  std::vector<std::byte> target(4 * kMiB);
  for (uint64_t at = 0; at < target.size(); at += 512) {
    payload.Fill({target.data() + at, 512}, at, static_cast<uint32_t>(at / 512));
  }
  EXPECT_NEAR(1 - ZstdShare(target), 0.5, 0.02);
}

TEST(PayloadTest, EqualSeedsGiveEqualBytesAndOthersDoNot) {
  std::vector<std::byte> a(8192);
  std::vector<std::byte> b(8192);
  Payload({.seed = 5}).Fill(a, 0, 9);
  Payload({.seed = 5}).Fill(b, 0, 9);
  EXPECT_EQ(a, b);
  Payload({.seed = 6}).Fill(b, 0, 9);
  EXPECT_NE(a, b);
}

TEST(PayloadTest, RepeatIsOneByteThatIsNotZero) {
  std::vector<std::byte> a(4096);
  std::vector<std::byte> b(4096);
  const Payload payload({.repeat = true});
  payload.Fill(a, 0, 254);
  payload.Fill(b, 0, 255);
  EXPECT_EQ(std::set<std::byte>(a.begin(), a.end()).size(), 1u);
  EXPECT_NE(a[0], std::byte{0});
  EXPECT_NE(b[0], std::byte{0});
  EXPECT_NE(a[0], b[0]);
}

TEST(PayloadTest, AStampSaysWhereAndByWhichWrite) {
  std::vector<std::byte> buffer(8 * 512);
  const Payload payload({.stamp = true});
  payload.Fill(buffer, 1'000'000 * 512ull, 42);
  for (uint64_t i = 0; i < 8; ++i) {
    const std::span<const std::byte> sector(buffer.data() + i * 512, 512);
    EXPECT_TRUE(Payload::CheckStamp(sector, 1'000'000 + i, 42));
    EXPECT_FALSE(Payload::CheckStamp(sector, 1'000'001 + i, 42));
    EXPECT_FALSE(Payload::CheckStamp(sector, 1'000'000 + i, 41));
  }
}

TEST(PayloadTest, AFlippedBitAnywhereInAStampedSectorIsFound) {
  std::vector<std::byte> sector(512);
  Payload({.stamp = true}).Fill(sector, 77 * 512, 3);
  for (size_t bit = 0; bit < 512 * 8; ++bit) {
    sector[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(Payload::CheckStamp(sector, 77, 3)) << "bit " << bit;
    sector[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_TRUE(Payload::CheckStamp(sector, 77, 3));
}

TEST(PayloadTest, ASectorTornBetweenTwoWritesIsFound) {
  std::vector<std::byte> first(512);
  std::vector<std::byte> second(512);
  const Payload payload({.stamp = true});
  payload.Fill(first, 0, 1);
  payload.Fill(second, 0, 2);
  // Up to the number, in bytes 12 to 15, both are the same.
  for (size_t cut = 13; cut < 512; ++cut) {
    std::vector<std::byte> torn = second;
    std::copy_n(first.begin(), cut, torn.begin());
    EXPECT_FALSE(Payload::ReadStamp(torn).has_value()) << "cut at " << cut;
  }
}

TEST(PayloadTest, ZeroesAndForeignDataBearNoStamp) {
  std::vector<std::byte> sector(512);
  EXPECT_FALSE(Payload::ReadStamp(sector).has_value());
  Payload({}).Fill(sector, 0, 1);
  EXPECT_FALSE(Payload::ReadStamp(sector).has_value());
}

}  // namespace
}  // namespace blktape
