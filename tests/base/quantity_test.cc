#include "base/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/status.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;

TEST(ParseBytesTest, BareNumbersAreBytes) {
  EXPECT_EQ(ParseBytes("0").value(), 0u);
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
}

TEST(ParseBytesTest, SingleLettersAndIecNamesAreBinary) {
  EXPECT_EQ(ParseBytes("4k").value(), 4096u);
  EXPECT_EQ(ParseBytes("4K").value(), 4096u);
  EXPECT_EQ(ParseBytes("128 KiB").value(), 131072u);
  EXPECT_EQ(ParseBytes("5G").value(), 5368709120u);
  EXPECT_EQ(ParseBytes("1.5M").value(), 1572864u);
}

TEST(ParseBytesTest, SiNamesAreDecimal) {
  EXPECT_EQ(ParseBytes("4kB").value(), 4000u);
  EXPECT_EQ(ParseBytes("1TB").value(), 1000000000000u);
}

TEST(ParseBytesTest, NonsenseIsNamedAndRefused) {
  for (const std::string text : {"", "k", "4q", "-1", "4 k k", "0x10", "1e3", "nan", "inf"}) {
    const Result<uint64_t> bytes = ParseBytes(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(bytes.status().message(), HasSubstr("\"" + text + "\""));
  }
}

TEST(ParseBytesTest, WhatDoesNotFitIsRefused) { EXPECT_FALSE(ParseBytes("99999999999T").ok()); }

TEST(ParseDurationTest, BareNumbersAreSeconds) {
  EXPECT_EQ(ParseDurationNs("90").value(), 90'000'000'000);
}

TEST(ParseDurationTest, EveryUnitCounts) {
  EXPECT_EQ(ParseDurationNs("7ns").value(), 7);
  EXPECT_EQ(ParseDurationNs("10us").value(), 10'000);
  EXPECT_EQ(ParseDurationNs("25ms").value(), 25'000'000);
  EXPECT_EQ(ParseDurationNs("1.5s").value(), 1'500'000'000);
  EXPECT_EQ(ParseDurationNs("2m").value(), 120'000'000'000);
  EXPECT_EQ(ParseDurationNs("8h").value(), 28'800'000'000'000);
  EXPECT_EQ(ParseDurationNs("1d").value(), 86'400'000'000'000);
}

TEST(ParseDurationTest, NonsenseIsRefused) {
  EXPECT_FALSE(ParseDurationNs("soon").ok());
  EXPECT_FALSE(ParseDurationNs("-5s").ok());
  EXPECT_FALSE(ParseDurationNs("1000000d").ok());
}

TEST(FormatBytesTest, WholeUnitsHaveNoDecimals) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(4096), "4 KiB");
  EXPECT_EQ(FormatBytes(1024u * 1024u), "1 MiB");
}

TEST(FormatBytesTest, OthersHaveThreeDigits) {
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(18291933696), "17.0 GiB");     // 17.0357...
  EXPECT_EQ(FormatBytes((1u << 20) - 1), "1.00 MiB");  // never "1024 KiB"
}

TEST(FormatDurationTest, UnitsFollowTheMagnitude) {
  EXPECT_EQ(FormatDurationNs(812), "812 ns");
  EXPECT_EQ(FormatDurationNs(56'100), "56.1 us");
  EXPECT_EQ(FormatDurationNs(3'200'000), "3.20 ms");
  EXPECT_EQ(FormatDurationNs(999'600'000), "1.00 s");
  EXPECT_EQ(FormatDurationNs(119'000'000'000), "119 s");
  EXPECT_EQ(FormatDurationNs(28'980'000'000'000), "8 h 03 min");
}

TEST(FormatDurationTest, NegativesKeepTheirSign) {
  EXPECT_EQ(FormatDurationNs(-56'100), "-56.1 us");
  EXPECT_THAT(FormatDurationNs(std::numeric_limits<int64_t>::min()), HasSubstr("-"));
}

TEST(FormatCountTest, ThousandsAreGrouped) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
}

TEST(FormatCountedTest, OneIsNoPlural) {
  EXPECT_EQ(FormatCounted(0, "segment"), "0 segments");
  EXPECT_EQ(FormatCounted(1, "segment"), "1 segment");
  EXPECT_EQ(FormatCounted(12'450, "I/O"), "12,450 I/Os");
}

TEST(FormatNumberTest, ThreeDigitsCountWhateverTheMagnitude) {
  EXPECT_EQ(FormatNumber(0), "0");
  EXPECT_EQ(FormatNumber(12'450.3), "12,450");
  EXPECT_EQ(FormatNumber(118.4), "118");
  EXPECT_EQ(FormatNumber(99.96), "100");
  EXPECT_EQ(FormatNumber(23.04), "23.0");
  EXPECT_EQ(FormatNumber(9.996), "10.0");
  EXPECT_EQ(FormatNumber(1.234), "1.23");
  EXPECT_EQ(FormatNumber(0.9996), "1.00");
  EXPECT_EQ(FormatNumber(0.5), "0.500");
  EXPECT_EQ(FormatNumber(0.012345), "0.0123");
  EXPECT_EQ(FormatNumber(-0.00123456), "-0.00123");
  EXPECT_EQ(FormatNumber(1e-30), "0.000000000000");
}

}  // namespace
}  // namespace blktape
