// What looking for frames behind damage may cost.
#include "format/frame_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "format/frame_writer.h"
#include "tests/format/trace_testing.h"

namespace blktape {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kMiB = 1u << 20;

std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// RFC 8878: block header, 3 bytes; type 0 raw, 1 one byte repeated.
std::string Block(uint64_t type, uint64_t size, bool last) {
  return Little(size << 3 | type << 1 | (last ? 1 : 0), 3);
}

// A frame header with a checksum flag and a content size of 4 bytes.
std::string FrameHead(uint64_t content_bytes) {
  return Little(kZstdMagic, 4) + Little(0xA4, 1) + Little(content_bytes, 4);
}

// `places` that begin a frame of 32 MiB each, in one piece of some 50 KiB: each has a raw block up
// to the end that all share, of repeated bytes, whose checksum is wrong.
std::string FakeFrames(uint64_t places) {
  const uint64_t place_bytes = FrameHead(0).size() + 3;
  std::string bytes;
  for (uint64_t i = 0; i < places; ++i) {
    bytes += FrameHead(32 * kMiB) + Block(0, (places - 1 - i) * place_bytes, false);
  }
  for (uint64_t left = 32 * kMiB - places * place_bytes; left > 0;) {
    const uint64_t size = std::min<uint64_t>(left, 128 << 10);
    left -= size;
    bytes += Block(1, size, false) + "r";
  }
  return bytes + Block(0, 0, true) + "sum!";
}

std::string GoodFrame(const std::string& content) {
  MemorySink sink;
  FrameWriter frames(&sink, 1);
  EXPECT_TRUE(frames.Write(content).ok());
  return sink.bytes();
}

struct Found {
  std::vector<std::string> contents;
  uint64_t damaged_bytes = 0;
  uint64_t search_bytes = 0;
};

Found FramesIn(const std::string& bytes) {
  Found found;
  MemorySource source(bytes);
  FrameReader reader(&source);
  while (true) {
    const Result<FrameReader::Event> event = reader.Next();
    EXPECT_TRUE(event.ok());
    if (!event.ok() || event->kind == FrameReader::Kind::kEnd) break;
    if (event->kind == FrameReader::Kind::kFrame) found.contents.emplace_back(reader.content());
    if (event->kind == FrameReader::Kind::kDamage) {
      found.damaged_bytes += event->to_bytes - event->from_bytes;
    }
  }
  found.search_bytes = reader.search_bytes();
  return found;
}

TEST(FrameReaderTest, TryingPlacesThatLookLikeFramesIsBoundedByTheBytesOfTheFile) {
  const std::string bytes = "damage" + FakeFrames(4096);
  const Found found = FramesIn(bytes);
  EXPECT_EQ(found.damaged_bytes, bytes.size());
  // Each of the 4,096 would have cost 32 MiB: 128 GiB in all.
  EXPECT_LE(found.search_bytes,
            FrameReader::kFreeSearchBytes + FrameReader::kSearchBytesPerByte * bytes.size());
}

TEST(FrameReaderTest, ASearchThatHasUsedUpItsTriesGoesOnWithTheBytesThatFollow) {
  // After so many bytes without any such place another 32 MiB may be tried.
  const std::string quiet(2 * 32 * kMiB / FrameReader::kSearchBytesPerByte, 'q');
  const std::string large(31 * kMiB, 'f');
  const std::string bytes = "damage" + FakeFrames(4096) + quiet + GoodFrame(large);
  EXPECT_THAT(FramesIn(bytes).contents, ElementsAre(large));
}

TEST(FrameReaderTest, FramesBetweenDamageCostTheSearchNothing) {
  constexpr size_t kFrames = 1'200;
  const std::string content(kMiB / 4, 'z');
  const std::string damage_and_frame = "damage" + GoodFrame(content);
  std::string bytes;
  for (size_t i = 0; i < kFrames; ++i) bytes += damage_and_frame;
  // More than may be tried.
  ASSERT_GT(kFrames * content.size(),
            FrameReader::kFreeSearchBytes + FrameReader::kSearchBytesPerByte * bytes.size());
  const Found found = FramesIn(bytes);
  ASSERT_EQ(found.contents.size(), kFrames);
  EXPECT_THAT(found.contents, Each(content));
  EXPECT_EQ(found.search_bytes, 0);
}

TEST(FrameReaderTest, AFrameWhoseBlocksExceedItsContentIsDamageAtOnce) {
  // Raw blocks of 128 KiB in a frame of 1,000 bytes: the reader gives up at the first.
  FrameWalk walk;
  const std::string bytes = FrameHead(1000) + Block(0, 128 << 10, false);
  EXPECT_EQ(walk.Advance(std::as_bytes(std::span(bytes))), FrameWalk::State::kInvalid);
  FrameWalk repeated;
  const std::string run = FrameHead(1000) + Block(1, 1001, false) + "r";
  EXPECT_EQ(repeated.Advance(std::as_bytes(std::span(run))), FrameWalk::State::kInvalid);
  FrameWalk fits;
  const std::string good = FrameHead(1000) + Block(1, 1000, true) + "rsum!";
  EXPECT_EQ(fits.Advance(std::as_bytes(std::span(good))), FrameWalk::State::kComplete);
  EXPECT_EQ(fits.frame_bytes(), good.size());
}

}  // namespace
}  // namespace blktape
