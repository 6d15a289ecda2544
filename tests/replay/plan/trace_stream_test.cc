#include "replay/plan/trace_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/plan/fake_records.h"
#include "tests/replay/plan/temp_trace.h"

namespace blktape {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// (ordinal, arrival) of everything a stream delivers.
std::vector<std::pair<uint64_t, int64_t>> All(TraceStream* stream) {
  std::vector<std::pair<uint64_t, int64_t>> all;
  IoRecord io;
  uint64_t ordinal = 0;
  while (*stream->Next(&io, &ordinal)) all.emplace_back(ordinal, *io.arrival_ns());
  return all;
}

std::vector<std::pair<uint64_t, int64_t>> AllOf(const std::string& path,
                                                const TraceStreamOptions& options) {
  auto stream = TraceStream::Open(path, options);
  EXPECT_TRUE(stream.ok()) << stream.status().message();
  return All(stream->get());
}

TEST(TraceStreamTest, DeliversEveryRecordWithItsIndex) {
  const std::string path = TempTrace("all.tape", {Read(10, 20), Read(15, 30), Read(40, 45)});
  auto stream = TraceStream::Open(path, {});
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->records(), 3u);
  EXPECT_EQ((*stream)->span_ns(), 30);
  EXPECT_EQ((*stream)->data_bytes(), 3u * 4096);
  EXPECT_THAT(All(stream->get()), ElementsAre(Pair(0, 10), Pair(1, 15), Pair(2, 40)));
}

TEST(TraceStreamTest, FromAndToAreCountedFromTheTracesFirstArrival) {
  const std::string path =
      TempTrace("piece.tape", {Read(100, 101), Read(110, 111), Read(120, 121), Read(130, 131)});
  EXPECT_THAT(AllOf(path, {.from_ns = 10, .to_ns = 30}), ElementsAre(Pair(1, 110), Pair(2, 120)));
}

TEST(TraceStreamTest, APieceFarInsideKeepsItsIndices) {
  std::vector<IoRecord> records;
  for (int i = 0; i < 1'000; ++i) records.push_back(Read(1'000 + i * 10, {}));
  const std::string path = TempTrace("far.tape", records, 1, /*records_per_frame=*/64);
  EXPECT_THAT(AllOf(path, {.from_ns = 7'770, .to_ns = 7'790}),
              ElementsAre(Pair(777, 8'770), Pair(778, 8'780)));
}

TEST(TraceStreamTest, APieceHoldsWhatStandsOutOfOrder) {
  // Two records a frame. 150 stands behind 260, and 330 before 240.
  const std::string path = TempTrace(
      "late.tape",
      {Read(100, {}), Read(120, {}), Read(200, {}), Read(260, {}), Read(150, {}), Read(330, {}),
       Read(240, {}), Read(400, {}), Read(410, {}), Read(500, {}), Read(510, {})},
      1, /*records_per_frame=*/2);
  EXPECT_THAT(AllOf(path, {.to_ns = 150}),
              ElementsAre(Pair(0, 100), Pair(1, 120), Pair(2, 200), Pair(4, 150), Pair(6, 240)));
  EXPECT_THAT(AllOf(path, {.from_ns = 60, .to_ns = 101}), ElementsAre(Pair(2, 200)));
  EXPECT_THAT(AllOf(path, {.from_ns = 160, .to_ns = 240}), ElementsAre(Pair(3, 260), Pair(5, 330)));
  EXPECT_THAT(AllOf(path, {.from_ns = 310}),
              ElementsAre(Pair(8, 410), Pair(9, 500), Pair(10, 510)));
}

TEST(TraceStreamTest, NoPassReadsFurtherThanALateRecordCanStand) {
  const std::string path = FreshPath("stops.tape");
  proto::Header header;
  header.add_devices()->set_name("sda");
  const auto writer = TraceWriter::Create(path, header);
  ASSERT_TRUE(writer.ok());
  // 110 stands 10 behind its place: behind 130 nothing below 120 can follow.
  for (const int64_t at_ns : {100, 120, 110, 130}) {
    ASSERT_TRUE((*writer)->Write(Read(at_ns, {})).ok());
  }
  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_count(5);
  ASSERT_TRUE((*writer)->WriteLoss(loss).ok());
  ASSERT_TRUE((*writer)->Write(Read(125, {})).ok());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  const auto stream = TraceStream::Open(path, {.to_ns = 20, .loops = 2});
  ASSERT_TRUE(stream.ok());
  EXPECT_THAT(All(stream->get()),
              ElementsAre(Pair(0, 100), Pair(2, 110), Pair(0, 110), Pair(2, 120)));
  EXPECT_EQ((*stream)->lost_events(), 0u);
}

TEST(TraceStreamTest, ARecordWithoutATimeIsOfThePieceOfTheOneBeforeIt) {
  IoRecord untimed;
  untimed.op = Op::kFlush;
  const std::string path =
      TempTrace("untimed.tape", {untimed, Read(100, {}), untimed, Read(120, {}), untimed});
  const auto ordinals = [&path](const TraceStreamOptions& options) {
    auto stream = TraceStream::Open(path, options);
    std::vector<uint64_t> all;
    IoRecord io;
    uint64_t ordinal = 0;
    while (*(*stream)->Next(&io, &ordinal)) all.push_back(ordinal);
    return all;
  };
  EXPECT_THAT(ordinals({}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ordinals({.to_ns = 20}), ElementsAre(0, 1, 2));
  EXPECT_THAT(ordinals({.from_ns = 20}), ElementsAre(3, 4));
}

TEST(TraceStreamTest, EachPassBeginsWhereTheOneBeforeEnded) {
  const std::string path = TempTrace("loop.tape", {Read(100, 170), Read(120, 130)});
  // The piece lasts from 100 to the last completion at 170.
  EXPECT_THAT(AllOf(path, {.loops = 3}), ElementsAre(Pair(0, 100), Pair(1, 120), Pair(0, 170),
                                                     Pair(1, 190), Pair(0, 240), Pair(1, 260)));
}

TEST(TraceStreamTest, WhatWasLostInOnePassIsNotForgottenInTheNext) {
  const std::string path = FreshPath("lossy.tape");
  proto::Header header;
  header.add_devices()->set_name("sda");
  const auto writer = TraceWriter::Create(path, header);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Write(Read(10, 20)).ok());
  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_count(5);
  ASSERT_TRUE((*writer)->WriteLoss(loss).ok());
  ASSERT_TRUE((*writer)->Finish({}).ok());
  const auto stream = TraceStream::Open(path, {.loops = 2});
  ASSERT_TRUE(stream.ok());
  IoRecord io;
  uint64_t ordinal = 0;
  ASSERT_TRUE(*(*stream)->Next(&io, &ordinal));
  EXPECT_EQ((*stream)->lost_events(), 0u);
  ASSERT_TRUE(*(*stream)->Next(&io, &ordinal));
  EXPECT_EQ((*stream)->lost_events(), 5u);
}

TEST(TraceStreamTest, AnEmptyPieceEndsEvenWhenRepeatedForEver) {
  const std::string path = TempTrace("empty.tape", {Read(100, 170), Read(1'100, 1'170)});
  EXPECT_TRUE(AllOf(path, {.from_ns = 500, .to_ns = 600, .loops = 0}).empty());
}

TEST(TraceStreamTest, APieceBeyondTheEndIsRefusedWithTheTracesLength) {
  const std::string path = TempTrace("short.tape", {Read(100, 170), Read(1'100, 1'170)});
  EXPECT_THAT(AllOf(path, {.from_ns = 1'000}), ElementsAre(Pair(1, 1'100)));
  const auto stream = TraceStream::Open(path, {.from_ns = 1'001});
  EXPECT_EQ(stream.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(stream.status().message(), HasSubstr("1000 ns"));
}

TEST(TraceStreamTest, OfATraceThatNobodyFinishedTheEndIsMetBeforeThePieceIsRefused) {
  const std::string path = FreshPath("unfinished.tape") + ".partial";
  proto::Header header;
  header.add_devices()->set_name("sda");
  const auto writer = TraceWriter::Create(FreshPath("unfinished.tape"), header);
  ASSERT_TRUE(writer.ok());
  for (const int64_t at_ns : {100, 1'100}) ASSERT_TRUE((*writer)->Write(Read(at_ns, {})).ok());
  ASSERT_TRUE((*writer)->FlushFrame(/*sync=*/false).ok());
  EXPECT_THAT(AllOf(path, {.from_ns = 1'000}), ElementsAre(Pair(1, 1'100)));
  const auto stream = TraceStream::Open(path, {.from_ns = 1'001});
  ASSERT_TRUE(stream.ok());
  IoRecord io;
  uint64_t ordinal = 0;
  EXPECT_EQ((*stream)->Next(&io, &ordinal).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace blktape
