// Records as columns are the records, and tell the observer the same.
#include "format/record_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/task_pool.h"
#include "format/io_record.h"
#include "format/trace_reader.h"
#include "tests/format/trace_testing.h"
#include "tests/support/random_cases.h"

namespace blktape {
namespace {

struct Read {
  std::string failure;
  std::vector<IoRecord> records;
  std::vector<std::string> losses;
  uint64_t lost_events = 0;
  bool operator==(const Read&) const = default;
};

std::vector<std::string> Texts(const std::vector<proto::Loss>& losses) {
  std::vector<std::string> texts;
  for (const proto::Loss& loss : losses) texts.push_back(loss.DebugString());
  return texts;
}

Read AsRows(const std::string& trace) {
  const ReadBack read = ReadAll(trace);
  return {read.status.message(), read.records, Texts(read.losses), read.lost_events};
}

Read AsColumns(const std::string& trace, TaskPool* pool) {
  Observed observed;
  const auto reader = TraceReader::FromSource(std::make_unique<MemorySource>(trace), &observed);
  if (!reader.ok()) return {reader.status().message(), {}, Texts(observed.losses), 0};
  (*reader)->DecodeAhead(pool);
  Read read;
  while (true) {
    const auto columns = (*reader)->NextColumns(RecordColumns::kAllFields);
    if (!columns.ok()) read.failure = columns.status().message();
    if (!columns.ok() || *columns == nullptr) break;
    for (size_t i = 0; i < (*columns)->count; ++i) read.records.push_back((*columns)->Record(i));
  }
  read.losses = Texts(observed.losses);
  read.lost_events = (*reader)->lost_events();
  return read;
}

class RecordColumnsTest : public testing::Test {
 protected:
  void ExpectSame(const std::string& trace) {
    const Read rows = AsRows(trace);
    ASSERT_EQ(AsColumns(trace, nullptr), rows);
    ASSERT_EQ(AsColumns(trace, &alone_), rows);
    ASSERT_EQ(AsColumns(trace, &pool_), rows);
  }

  std::vector<IoRecord> AnyRecords(int count) {
    std::vector<IoRecord> records;
    for (int i = 0; i < count; ++i) records.push_back(AnyRecord(&random_, 20));
    return records;
  }

  std::mt19937_64 random_{1};
  TaskPool alone_{0};
  TaskPool pool_{3};
};

TEST_F(RecordColumnsTest, AreTheRecords) {
  for (const uint32_t frame : {1u, 7u, 16u, 511u, 512u, 513u, 3'000u}) {
    ExpectSame(TraceOf(AnyRecords(3'000), frame, /*devices=*/20));
  }
  ExpectSame(TraceOf(DesktopRecords(/*seed=*/2, 20'000), 4'096));
  ExpectSame(TraceOf({}, 10));
}

TEST_F(RecordColumnsTest, OfDamagedTracesToo) {
  const std::string whole = TraceOf(AnyRecords(600), 20, /*devices=*/20);
  for (int round = 0; round < RandomCases(300); ++round) {
    std::string trace = whole;
    for (int i = round % 3; i >= 0; --i) {
      char& byte = trace[random_() % trace.size()];
      byte = static_cast<char>(byte ^ 1 << random_() % 8);
    }
    if (round % 7 == 0) trace.resize(random_() % trace.size());
    if (round % 11 == 0) trace.insert(random_() % trace.size(), whole.substr(0, 3'000));
    ExpectSame(trace);
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST_F(RecordColumnsTest, OfAPipe) {
  const std::string trace = TraceOf(AnyRecords(500), 100, /*devices=*/20);
  const auto reader = TraceReader::FromSource(std::make_unique<DripSource>(trace, 100));
  ASSERT_TRUE(reader.ok());
  (*reader)->DecodeAhead(&pool_);
  size_t records = 0;
  while (true) {
    const auto columns = (*reader)->NextColumns(0);
    ASSERT_TRUE(columns.ok());
    if (*columns == nullptr) break;
    records += (*columns)->count;
  }
  EXPECT_EQ(records, 500);
}

TEST_F(RecordColumnsTest, KeepAndAppend) {
  RecordColumns columns;
  const std::vector<IoRecord> records = AnyRecords(200);
  for (const IoRecord& io : records) columns.Append(io);
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < 200; i += 1 + i % 3) rows.push_back(i);
  columns.Keep(rows);
  ASSERT_EQ(columns.count, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(columns.Record(i), records[rows[i]]);
  columns.Append(records[3]);
  EXPECT_EQ(columns.Record(rows.size()), records[3]);
}

}  // namespace
}  // namespace blktape
