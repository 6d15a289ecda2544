#include "capture/import/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/io_record.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;

TEST(FieldsTest, DecimalsAreExactToTheLastDigit) {
  EXPECT_EQ(ParseDecimal("0.000000001", 9), 1);
  EXPECT_EQ(ParseDecimal("1398396748.123456789", 9), 1'398'396'748'123'456'789);
  EXPECT_EQ(ParseDecimal("12", 9), 12'000'000'000);
  EXPECT_EQ(ParseDecimal(" .5 ", 3), 500);
  EXPECT_EQ(ParseDecimal("7.", 3), 7000);
  EXPECT_EQ(ParseDecimal("-1.5", 3), -1500);
  EXPECT_EQ(ParseDecimal("1,079943800", 9, ','), 1'079'943'800);
}

TEST(FieldsTest, FurtherDigitsRoundHalfUp) {
  EXPECT_EQ(ParseDecimal("48750.608267999996", 9), 48'750'608'268'000);
  EXPECT_EQ(ParseDecimal("0.4999", 3), 500);
  EXPECT_EQ(ParseDecimal("0.4994999", 3), 499);
  EXPECT_EQ(ParseDecimal("1.5", 0), 2);
}

TEST(FieldsTest, ExponentsAreUnderstood) {
  EXPECT_EQ(ParseDecimal("1.5e3", 0), 1500);
  EXPECT_EQ(ParseDecimal("2e-6", 9), 2000);
}

TEST(FieldsTest, WhatIsNoNumberOrDoesNotFitIsAbsent) {
  for (const std::string_view text : {"", " ", ".", "-", "1.2.3", "12a", "0x10", "1e400", "--1e300",
                                      "nan", "9223372037", "1 2"}) {
    EXPECT_EQ(ParseDecimal(text, 9), std::nullopt) << text;
  }
  EXPECT_EQ(ParseDecimal("9223372036854775807", 0), INT64_MAX);
  EXPECT_EQ(ParseDecimal("9223372036854775808", 0), std::nullopt);
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseUnsigned("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseUnsigned("-1"), std::nullopt);
  EXPECT_EQ(ParseHex("0xFFFFFFFFFFFFFFFF"), UINT64_MAX);
  EXPECT_EQ(ParseHex("1ff"), 511u);
  EXPECT_EQ(ParseHex("0x"), std::nullopt);
}

TEST(FieldsTest, FieldsAreSplitAsTheirSeparatorHasIt) {
  std::vector<std::string_view> fields;
  SplitFields("a,b,,d", ',', &fields);
  EXPECT_THAT(fields, ElementsAre("a", "b", "", "d"));
  SplitFields("a,", ',', &fields);
  EXPECT_THAT(fields, ElementsAre("a", ""));
  SplitFields("  a \t b  ", ' ', &fields);
  EXPECT_THAT(fields, ElementsAre("a", "b"));
  SplitFields("\"16,384\",x", ',', &fields);
  EXPECT_THAT(fields, ElementsAre("16,384", "x"));
  SplitFields("\"a \"\"b\"\"\",x", ',', &fields);
  EXPECT_THAT(fields, ElementsAre("a \"\"b\"\"", "x"));
  SplitFields("\"open", ',', &fields);
  EXPECT_THAT(fields, ElementsAre("open"));
}

TEST(FieldsTest, OperationsGoByManyNames) {
  EXPECT_EQ(ParseOp("Read")->op, Op::kRead);
  EXPECT_EQ(ParseOp(" W ")->op, Op::kWrite);
  EXPECT_EQ(ParseOp("TRIM")->op, Op::kDiscard);
  EXPECT_EQ(ParseOp("datasync")->op, Op::kFlush);
  EXPECT_EQ(ParseOp("zone_append")->op, Op::kZoneAppend);
  EXPECT_EQ(ParseOp("RA")->flags, kFlagReadahead);
  EXPECT_EQ(ParseOp("WFS")->flags, kFlagFua | kFlagSync);
  EXPECT_FALSE(ParseOp("X").has_value());
  EXPECT_FALSE(ParseOp("").has_value());
}

TEST(FieldsTest, AnAddressInsideASectorIsRoundedDownAndSaysSo) {
  IoRecord io;
  EXPECT_TRUE(SetAddress(1024, &io));
  EXPECT_EQ(io.lba, Lba(2));
  EXPECT_FALSE(SetAddress(1535, &io));
  EXPECT_EQ(io.lba, Lba(2));
}

}  // namespace
}  // namespace blktape
