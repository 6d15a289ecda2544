#include "analysis/measured_reference.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

TEST(MeasuredReferenceTest, WhatIsNoReportIsRefused) {
  const char* const no_cycles =
      R"({"trace_hash": "ab", "trace": "x", "score_version": 2, "valid": true,
          "targets": [], "cycles": 0, "segments": [], "waits_ns": []})";
  const char* const too_many =
      R"({"trace_hash": "ab", "trace": "x", "score_version": 2, "valid": true, "rule": "r",
          "targets": [], "cycles": 1000000000000000000, "segments": [{"cycles": []}]})";
  for (const char* text :
       {"", "[]", "{}", "{\"trace_hash\": 7}", "not json", no_cycles, too_many}) {
    const auto reference = ParseReference(text, "ab");
    ASSERT_FALSE(reference.ok()) << text;
    EXPECT_EQ(reference.status().code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace blktape
