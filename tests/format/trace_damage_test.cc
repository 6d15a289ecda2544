// What a reader makes of a trace that is not what its writer wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::SizeIs;

// 30 records in frames of ten, a loss and names of processes among them.
class DamagedTraceTest : public testing::Test {
 protected:
  DamagedTraceTest() {
    MemorySink sink;
    TraceWriterOptions options;
    options.records_per_frame = 10;
    auto writer = TraceWriter::ToSink(&sink, TestHeader(), options);
    EXPECT_TRUE(writer.ok());
    for (int i = 0; i < 30; ++i) {
      IoRecord io = Write4k(1000 * (i + 1), 8 * static_cast<uint64_t>(i));
      io.process = (*writer)->ProcessId("program" + std::to_string(i / 4));
      if (i == 15) {
        proto::Loss loss;
        loss.set_reason(proto::RING_OVERRUN);
        loss.set_count(7);
        EXPECT_TRUE((*writer)->WriteLoss(loss).ok());
      }
      records_.push_back(io);
      frame_ends_.push_back((*writer)->bytes_written());
      EXPECT_TRUE((*writer)->Write(io).ok());
    }
    body_bytes_ = (*writer)->bytes_written();
    EXPECT_TRUE((*writer)->Finish({}).ok());
    trace_ = sink.bytes();
    frame_begins_ = {frame_ends_[0], frame_ends_[10], frame_ends_[20], body_bytes_};
  }

  // Records of `back` are records written, in order, each at most once.
  void ExpectSubsequence(const ReadBack& back) {
    auto expected = records_.begin();
    for (const IoRecord& io : back.records) {
      expected = std::find(expected, records_.end(), io);
      ASSERT_NE(expected, records_.end()) << "a record that was never written";
      ++expected;
    }
  }

  static uint64_t RecordsLost(const ReadBack& back) {
    uint64_t lost = 0;
    for (const proto::Loss& loss : back.losses) {
      if (loss.reason() == proto::DAMAGED_INPUT || loss.reason() == proto::TRUNCATED_INPUT) {
        lost += loss.count();
      }
    }
    return lost;
  }

  // What was written and not read is missing: all of it is reported, by count where that is known.
  void ExpectLossReported(const ReadBack& back) {
    const bool unknowable = std::any_of(back.losses.begin(), back.losses.end(),
                                        [](const proto::Loss& loss) { return !loss.has_count(); });
    if (!unknowable) {
      EXPECT_EQ(RecordsLost(back), records_.size() - back.records.size());
    }
    // The seven of the ring are never forgotten where the summary could be read.
    if (back.summary) {
      EXPECT_GE(back.lost_events, 7 + records_.size() - back.records.size());
    } else {
      EXPECT_GT(back.lost_events, 0);
    }
  }

  std::string trace_;
  std::vector<IoRecord> records_;
  std::vector<uint64_t> frame_ends_;
  std::vector<uint64_t> frame_begins_;  // of the frames after the header's; the last: the summary's
  uint64_t body_bytes_ = 0;
};

TEST_F(DamagedTraceTest, AWholeTraceIsReadWhole) {
  const ReadBack back = ReadAll(trace_);
  ASSERT_TRUE(back.status.ok()) << back.status.message();
  EXPECT_EQ(back.records, records_);
  ASSERT_THAT(back.losses, SizeIs(1));
  EXPECT_EQ(back.losses[0].reason(), proto::RING_OVERRUN);
  EXPECT_EQ(back.lost_events, 7);
  EXPECT_TRUE(back.summary_before);
}

TEST_F(DamagedTraceTest, AnyFlippedBitIsHarmlessOrReported) {
  const ReadBack whole = ReadAll(trace_);
  for (size_t at = 0; at < trace_.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE("byte " + std::to_string(at) + " bit " + std::to_string(bit));
      std::string damaged = trace_;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const ReadBack back = ReadAll(damaged);
      if (!back.status.ok()) {
        // Only without its header is there nothing to say of the rest.
        EXPECT_LT(at, frame_begins_[0]);
        EXPECT_EQ(back.status.code(), StatusCode::kDataLoss);
        EXPECT_EQ(back.records.size(), 0);
        continue;
      }
      ExpectSubsequence(back);
      if (back.records.size() == records_.size() && back.losses.size() == whole.losses.size()) {
        // Bits that decoders ignore (RFC 8878, "Unused_bit"; a larger window): nothing was lost.
        EXPECT_EQ(back.records, records_);
        ASSERT_TRUE(back.summary.has_value());
        EXPECT_EQ(back.summary->SerializeAsString(), whole.summary->SerializeAsString());
        continue;
      }
      EXPECT_GT(back.losses.size(), 0);
      ExpectLossReported(back);
    }
  }
}

TEST_F(DamagedTraceTest, AFlippedByteInAFrameCostsThatFrameAndIsCountedExactly) {
  int harmless = 0;
  for (size_t at = frame_begins_[1]; at < frame_begins_[2]; ++at) {
    SCOPED_TRACE("byte " + std::to_string(at - frame_begins_[1]) + " of the frame");
    std::string damaged = trace_;
    damaged[at] = static_cast<char>(~damaged[at]);
    const ReadBack back = ReadAll(damaged);
    ASSERT_TRUE(back.status.ok());
    // A few bits of a zstd frame mean nothing (window size, reserved bits) or the same ("repeat the
    // table before" where that was the predefined one): the content is what was written.
    if (back.records == records_) {
      ++harmless;
      continue;
    }
    ASSERT_EQ(back.records.size(), 20);
    ASSERT_GE(back.losses.size(), 1);
    EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
    EXPECT_EQ(back.losses[0].count(), 10);
    EXPECT_EQ(back.losses[0].from_bytes(), frame_begins_[1]);
    EXPECT_EQ(back.losses[0].to_bytes(), frame_begins_[2]);
    EXPECT_EQ(back.losses[0].from_ns(), 10'000);  // the last record before
    // The ring overrun that lay in it is known from the summary.
    EXPECT_EQ(back.lost_events, 17);
  }
  EXPECT_LE(harmless, 8);
}

TEST_F(DamagedTraceTest, ACutAnywhereIsReported) {
  for (size_t size = 0; size < trace_.size(); ++size) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    const ReadBack back = ReadAll(trace_.substr(0, size));
    if (size < frame_begins_[0]) {
      EXPECT_EQ(back.status.code(), StatusCode::kDataLoss);
      continue;
    }
    ASSERT_TRUE(back.status.ok());
    ExpectSubsequence(back);
    // Every frame that is whole is read.
    size_t whole_frames = 0;
    while (whole_frames < 3 && size >= frame_begins_[whole_frames + 1]) ++whole_frames;
    EXPECT_EQ(back.records.size(), 10 * whole_frames);
    EXPECT_FALSE(back.summary_before);
    ASSERT_GE(back.losses.size(), 1);
    EXPECT_EQ(back.losses.back().reason(), proto::TRUNCATED_INPUT);
    EXPECT_EQ(back.losses.back().to_bytes(), size);
    // Behind the summary only the seek table can be missing: no record is.
    EXPECT_EQ(back.losses.back().has_count(), back.summary.has_value());
  }
}

TEST_F(DamagedTraceTest, AMissingFrameIsCountedThoughNoByteIsDamaged) {
  const std::string without = trace_.substr(0, frame_begins_[1]) + trace_.substr(frame_begins_[2]);
  const ReadBack back = ReadAll(without);
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records.size(), 20);
  ASSERT_GE(back.losses.size(), 1);
  EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
  EXPECT_EQ(back.losses[0].count(), 10);
  EXPECT_EQ(back.losses[0].from_bytes(), frame_begins_[1]);
}

TEST_F(DamagedTraceTest, ARepeatedFrameIsReadOnce) {
  const std::string twice = trace_.substr(0, frame_begins_[2]) + trace_.substr(frame_begins_[1]);
  const ReadBack back = ReadAll(twice);
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records, records_);
  ASSERT_GE(back.losses.size(), 2);  // the ring's, and this
  EXPECT_EQ(back.losses[1].reason(), proto::DAMAGED_INPUT);
  EXPECT_EQ(back.losses[1].count(), 0);
}

TEST_F(DamagedTraceTest, SwappedFramesNeverYieldRecordsOutOfOrder) {
  const std::string swapped = trace_.substr(0, frame_begins_[0]) +
                              trace_.substr(frame_begins_[1], frame_begins_[2] - frame_begins_[1]) +
                              trace_.substr(frame_begins_[0], frame_begins_[1] - frame_begins_[0]) +
                              trace_.substr(frame_begins_[2]);
  const ReadBack back = ReadAll(swapped);
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records.size(), 20);
  ExpectSubsequence(back);
  EXPECT_EQ(RecordsLost(back), 10);
}

TEST_F(DamagedTraceTest, JunkBetweenFramesIsPassedOverAndReported) {
  // Junk that looks like a frame at first, and like a seek table.
  const std::string junk("\x28\xB5\x2F\xFD\x04\x00 junk \x5E\x2A\x4D\x18\x05\x00\x00\x00?", 20);
  std::string with = trace_;
  with.insert(frame_begins_[1], junk);
  const ReadBack back = ReadAll(with);
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records, records_);
  ASSERT_GE(back.losses.size(), 1);
  EXPECT_EQ(back.losses[0].reason(), proto::DAMAGED_INPUT);
  EXPECT_EQ(back.losses[0].count(), 0);
  EXPECT_EQ(back.losses[0].from_bytes(), frame_begins_[1]);
  EXPECT_EQ(back.losses[0].to_bytes(), frame_begins_[1] + junk.size());
}

TEST_F(DamagedTraceTest, AnotherTraceBehindTheEndIsNotReadAsMoreOfThisOne) {
  const ReadBack back = ReadAll(trace_ + trace_);
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records, records_);
  EXPECT_EQ(back.losses.back().reason(), proto::DAMAGED_INPUT);
  EXPECT_EQ(back.losses.back().from_bytes(), trace_.size());
}

TEST_F(DamagedTraceTest, ATailOfZeroesAfterAPowerLossIsReported) {
  const ReadBack back = ReadAll(trace_.substr(0, frame_begins_[2]) + std::string(4096, '\0'));
  ASSERT_TRUE(back.status.ok());
  EXPECT_EQ(back.records.size(), 20);
  ASSERT_GE(back.losses.size(), 2);
  EXPECT_EQ(back.losses.back().from_bytes(), frame_begins_[2]);
  EXPECT_EQ(back.losses.back().to_bytes(), frame_begins_[2] + 4096);
  EXPECT_FALSE(back.losses.back().has_count());
}

TEST_F(DamagedTraceTest, DamageIsToldAlikeThroughAPipe) {
  for (size_t at = frame_begins_[0]; at < trace_.size(); at += 3) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string damaged = trace_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const ReadBack seekable = ReadAll(damaged);
    const ReadBack piped = ReadAll(std::make_unique<DripSource>(damaged, 7));
    EXPECT_EQ(piped.records, seekable.records);
    ASSERT_EQ(piped.losses.size(), seekable.losses.size());
    for (size_t i = 0; i < piped.losses.size(); ++i) {
      EXPECT_EQ(piped.losses[i].SerializeAsString(), seekable.losses[i].SerializeAsString());
    }
  }
}

TEST_F(DamagedTraceTest, WhatIsNoTraceIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("queue_ns,issue_ns\n1,2\n"), std::string(100'000, '\0')}) {
    EXPECT_EQ(ReadAll(text).status.code(), StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace blktape
