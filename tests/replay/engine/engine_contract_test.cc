#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "host/block_stat.h"
#include "replay/engine/engine_factory.h"
#include "replay/target/target.h"
#include "tests/replay/target/test_devices.h"
#include "tests/support/loop_device.h"
#include "tests/support/requires.h"

namespace blktape {
namespace {

using testing::HasSubstr;

constexpr uint64_t kTargetBytes = 64ull << 20;
constexpr uint32_t kDepth = 16;
constexpr int64_t kForEverNs = INT64_MAX;
constexpr uint64_t kBlockBytes = 4096;

struct Param {
  const char* engine;
  const char* target;  // "none", "disk file", "memory file", "loop"
  bool submission_thread = false;
};

std::string NameOf(const testing::TestParamInfo<Param>& info) {
  std::string name = std::string(info.param.engine) + " " + info.param.target +
                     (info.param.submission_thread ? " sqpoll" : "");
  std::string camel;
  bool upper = true;
  for (const char c : name) {
    if (c == ' ' || c == '_') {
      upper = true;
    } else {
      camel += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = false;
    }
  }
  return camel;
}

// The block layer counts a request after it has told of its end, so that what was read before may
// be counted yet. Two readings a tenth of a second apart are alike where nothing is.
std::optional<BlockStat> StatAtRest(const std::string& sysfs) {
  std::optional<BlockStat> last = ReadBlockStat(sysfs);
  while (last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::optional<BlockStat> now = ReadBlockStat(sysfs);
    if (now && now->reads == last->reads) break;
    last = now;
  }
  return last;
}

// The engine contract of replay/engine/engine.h, held by every engine on every kind of target.
class EngineContractTest : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam().target;
    if (kind != "none") OpenTarget(kind);
    if (IsSkipped() || HasFatalFailure()) return;
    arena_.resize((kDepth + 1) * kSlotBytes + kBlockBytes);
    const auto address = reinterpret_cast<uintptr_t>(arena_.data());
    arena_begin_ = arena_.data() + (kBlockBytes - address % kBlockBytes) % kBlockBytes;
    EngineOptions options;
    options.depth = kDepth;
    options.submission_thread = GetParam().submission_thread;
    options.arena = {arena_begin_, kDepth * kSlotBytes};
    if (target_ != nullptr) options.targets = {target_.get()};
    auto engine = OpenEngine(GetParam().engine, options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }

  void OpenTarget(const std::string& kind) {
    folder_ = std::make_unique<ScratchFolder>(/*on_disk=*/kind == "disk file");
    const std::string file = folder_->path() + "/target";
    MakeSparseFile(file, kTargetBytes);
    std::string path = file;
    if (kind == "loop") {
      auto loop = LoopDevice::Over(file);
      BLKTAPE_REQUIRE(loop.ok(), "loop devices");
      loop_ = *std::move(loop);
      path = loop_->path();
    }
    auto target = Target::Open(path, {.overwrite = true});
    ASSERT_TRUE(target.ok()) << target.status().message();
    target_ = *std::move(target);
  }

  // Buffer `index`; the one after the last lies outside of the arena.
  std::byte* Buffer(uint32_t index) { return arena_begin_ + index * kSlotBytes; }

  EngineRequest Request(uint64_t tag, Op op, uint64_t offset_bytes, uint64_t bytes,
                        uint32_t flags = 0) {
    return {.tag = tag,
            .op = op,
            .flags = flags,
            .offset_bytes = offset_bytes,
            .bytes = bytes,
            .buffer = Buffer(tag % kDepth)};
  }
  size_t Submit(const std::vector<EngineRequest>& requests) {
    const auto count = engine_->Submit(requests);
    EXPECT_TRUE(count.ok()) << count.status().message();
    return count.ok() ? *count : 0;
  }
  // Waits for `count` completions and returns them by tag.
  std::map<uint64_t, EngineCompletion> Reap(size_t count) {
    std::map<uint64_t, EngineCompletion> all;
    std::array<EngineCompletion, 5> some;
    while (all.size() < count) {
      const auto got = engine_->Reap(some, kForEverNs);
      EXPECT_TRUE(got.ok()) << got.status().message();
      if (!got.ok()) break;
      for (size_t i = 0; i < *got; ++i) {
        EXPECT_TRUE(all.emplace(some[i].tag, some[i]).second) << "tag " << some[i].tag << " twice";
      }
    }
    return all;
  }
  // Does one thing from beginning to end.
  EngineCompletion Do(const EngineRequest& request) {
    EXPECT_EQ(Submit({request}), 1u);
    const auto all = Reap(1);
    EXPECT_TRUE(all.contains(request.tag));
    return all.begin()->second;
  }
  bool AllZero(const std::byte* data, size_t bytes) {
    return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{0}; });
  }

  static constexpr uint64_t kSlotBytes = 1 << 20;
  std::unique_ptr<ScratchFolder> folder_;
  std::unique_ptr<LoopDevice> loop_;
  std::unique_ptr<Target> target_;
  std::vector<std::byte> arena_;
  std::byte* arena_begin_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

// What only engines that move data can show.
class KernelEngineTest : public EngineContractTest {};

TEST_P(EngineContractTest, EveryRequestCompletesExactlyOnce) {
  std::mt19937_64 random(1);
  std::map<uint64_t, uint64_t> in_flight;  // tag to bytes
  uint64_t next = 0;
  size_t completed = 0;
  std::array<EngineCompletion, 7> some;
  std::vector<uint64_t> buffers;  // free ones, as the low digits of tags
  for (uint64_t i = 0; i < kDepth; ++i) buffers.push_back(i);
  while (completed < 2000) {
    std::vector<EngineRequest> batch;
    const size_t wanted = random() % 9;
    while (batch.size() < wanted && !buffers.empty() && next < 2000) {
      const uint64_t tag = next++ * kDepth + buffers.back();
      buffers.pop_back();
      const Op op = random() % 3 == 0 ? Op::kWrite : Op::kRead;
      const uint64_t bytes = kBlockBytes * (1 + random() % 16);
      const uint64_t offset = kBlockBytes * (random() % (kTargetBytes / kBlockBytes - 16));
      batch.push_back(Request(tag, op, offset, bytes));
      in_flight[tag] = bytes;
    }
    ASSERT_EQ(Submit(batch), batch.size());
    const auto got =
        engine_->Reap(some, random() % 2 == 0 ? 0 : kForEverNs / 2 * !in_flight.empty());
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < *got; ++i) {
      const auto found = in_flight.find(some[i].tag);
      ASSERT_NE(found, in_flight.end()) << "an unknown or repeated tag";
      EXPECT_EQ(some[i].error, 0u);
      EXPECT_EQ(some[i].bytes_done, found->second);
      buffers.push_back(some[i].tag % kDepth);
      in_flight.erase(found);
      ++completed;
    }
    ASSERT_EQ(engine_->in_flight(), in_flight.size());
  }
}

TEST_P(EngineContractTest, NoMoreThanTheDepthIsTaken) {
  std::vector<EngineRequest> requests;
  for (uint64_t tag = 0; tag < kDepth + 5; ++tag) {
    requests.push_back(Request(tag, Op::kRead, tag * kBlockBytes, kBlockBytes));
  }
  EXPECT_EQ(engine_->depth(), kDepth);
  EXPECT_EQ(Submit(requests), kDepth);
  EXPECT_EQ(engine_->in_flight(), kDepth);
  EXPECT_EQ(Submit({requests.back()}), 0u);
  EXPECT_EQ(Reap(kDepth).size(), kDepth);
  EXPECT_EQ(engine_->in_flight(), 0u);
  EXPECT_EQ(Submit({requests.back()}), 1u);
  EXPECT_EQ(Reap(1).size(), 1u);
}

TEST_P(EngineContractTest, ADeadlineInThePastIsAnAnswerAtOnce) {
  std::array<EngineCompletion, 4> some;
  const auto nothing = engine_->Reap(some, 0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(*nothing, 0u);
}

TEST_P(EngineContractTest, WithNothingInFlightTheWaitEndsAtTheDeadline) {
  std::array<EngineCompletion, 4> some;
  const int64_t deadline_ns = Clock::Monotonic()->NowNs() + 2'000'000;
  const auto nothing = engine_->Reap(some, deadline_ns);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(*nothing, 0u);
  EXPECT_GE(Clock::Monotonic()->NowNs(), deadline_ns);
}

TEST_P(EngineContractTest, CompletionsWaitUntilThereIsRoomForThem) {
  std::vector<EngineRequest> requests;
  for (uint64_t tag = 0; tag < kDepth; ++tag) {
    requests.push_back(Request(tag, Op::kRead, tag * kBlockBytes, kBlockBytes));
  }
  for (int round = 0; round < 40; ++round) {
    ASSERT_EQ(Submit(requests), kDepth);
    for (uint32_t left = kDepth; left > 0; --left) {
      EngineCompletion one;
      ASSERT_EQ(*engine_->Reap({&one, 1}, kForEverNs), 1u);
      ASSERT_EQ(engine_->in_flight(), left - 1);
    }
  }
}

TEST_P(EngineContractTest, FlushAndFlaggedWritesComplete) {
  EXPECT_EQ(Do(Request(1, Op::kFlush, 0, 0)).error, 0u);
  for (const uint32_t flags : {kFlagFua, kFlagPreflush, kFlagFua | kFlagPreflush, kFlagSync}) {
    const EngineCompletion write = Do(Request(2, Op::kWrite, 8192, 4096, flags));
    EXPECT_EQ(write.error, 0u) << flags;
    EXPECT_EQ(write.bytes_done, 4096u) << flags;
  }
  EXPECT_EQ(Do(Request(3, Op::kFlush, 0, 0)).bytes_done, 0u);
}

TEST_P(EngineContractTest, ARehearsalIsNoRequest) {
  const std::string sysfs = "/sys/class/block/" + (loop_ ? loop_->path().substr(5) : "none");
  std::array<EngineCompletion, 4> some;
  const auto rehearse = [&] {
    for (int i = 0; i < 100; ++i) {
      const Status rehearsed = engine_->Rehearse();
      ASSERT_TRUE(rehearsed.ok()) << rehearsed.message();
      ASSERT_EQ(engine_->in_flight(), 0u);
    }
    const auto nothing = engine_->Reap(some, 0);
    ASSERT_TRUE(nothing.ok()) << nothing.status().message();
    EXPECT_EQ(*nothing, 0u);
  };
  const std::optional<BlockStat> before = StatAtRest(sysfs);
  rehearse();
  EXPECT_EQ(Do(Request(7, Op::kRead, 4096, 8192)).bytes_done, 8192u);
  rehearse();
  ASSERT_EQ(before.has_value(), loop_ != nullptr);
  if (!before) return;
  const int64_t deadline_ns = Clock::Monotonic()->NowNs() + 10'000'000'000;
  std::optional<BlockStat> after;
  do {
    after = StatAtRest(sysfs);
    ASSERT_TRUE(after.has_value());
  } while (after->reads == before->reads && Clock::Monotonic()->NowNs() < deadline_ns);
  EXPECT_EQ(after->reads - before->reads, 1u);
  EXPECT_EQ(after->sectors() - before->sectors(), 16u);
}

TEST_P(EngineContractTest, CompletionsAreStampedBetweenSubmissionAndReaping) {
  const int64_t before_ns = Clock::Monotonic()->NowNs();
  const EngineCompletion read = Do(Request(1, Op::kRead, 0, 4096));
  EXPECT_GE(read.complete_ns, before_ns);
  EXPECT_LE(read.complete_ns, Clock::Monotonic()->NowNs());
}

TEST_P(EngineContractTest, ClosingWithRequestsInFlightIsHarmless) {
  std::vector<EngineRequest> requests;
  for (uint64_t tag = 0; tag < kDepth; ++tag) {
    requests.push_back(Request(tag, Op::kRead, tag * kSlotBytes, kSlotBytes));
  }
  requests[3] = Request(3, Op::kDiscard, 0, kBlockBytes);
  EXPECT_EQ(Submit(requests), kDepth);
  engine_.reset();
}

TEST_P(KernelEngineTest, WhatIsWrittenIsRead) {
  std::mt19937_64 random(7);
  for (uint32_t slot = 0; slot < 8; ++slot) {
    auto* words = reinterpret_cast<uint64_t*>(Buffer(slot));
    for (uint64_t i = 0; i < kSlotBytes / 8; ++i) words[i] = random();
    const uint32_t flags = slot % 2 == 0 ? 0 : kFlagFua;
    ASSERT_EQ(Do(Request(slot, Op::kWrite, slot * kSlotBytes, kSlotBytes, flags)).bytes_done,
              kSlotBytes);
  }
  for (uint32_t slot = 0; slot < 8; ++slot) {
    EngineRequest read = Request(slot, Op::kRead, slot * kSlotBytes, kSlotBytes);
    read.buffer = Buffer(8 + slot);
    ASSERT_EQ(Do(read).bytes_done, kSlotBytes);
    EXPECT_EQ(std::memcmp(Buffer(slot), Buffer(8 + slot), kSlotBytes), 0);
  }
}

TEST_P(KernelEngineTest, ABufferOutsideOfTheArenaWorksToo) {
  std::memset(Buffer(0), 0x5a, kBlockBytes);
  ASSERT_EQ(Do(Request(0, Op::kWrite, 0, kBlockBytes)).error, 0u);
  EngineRequest read = Request(1, Op::kRead, 0, kBlockBytes);
  read.buffer = Buffer(kDepth);
  ASSERT_EQ(Do(read).bytes_done, kBlockBytes);
  EXPECT_EQ(std::memcmp(Buffer(0), Buffer(kDepth), kBlockBytes), 0);
}

TEST_P(KernelEngineTest, AReadOverTheEndIsShort) {
  const EngineCompletion read =
      Do(Request(1, Op::kRead, kTargetBytes - kBlockBytes, 4 * kBlockBytes));
  EXPECT_EQ(read.error, 0u);
  EXPECT_EQ(read.bytes_done, kBlockBytes);
}

TEST_P(KernelEngineTest, AnErrorIsTheRequestsAlone) {
  std::vector<EngineRequest> requests;
  for (uint64_t tag = 0; tag < 8; ++tag) {
    requests.push_back(Request(tag, Op::kRead, tag * kBlockBytes, kBlockBytes));
  }
  requests[2].op = Op::kZoneAppend;
  requests[3].offset_bytes = ~0ull << 12;  // beyond what any offset may be
  requests[5].op = Op::kSecureErase;
  ASSERT_EQ(Submit(requests), 8u);
  const auto all = Reap(8);
  for (const auto& [tag, completion] : all) {
    const bool wrong = tag == 2 || tag == 3 || tag == 5;
    EXPECT_EQ(completion.error != 0, wrong)
        << "tag " << tag << ": " << strerror(static_cast<int>(completion.error));
  }
}

TEST_P(KernelEngineTest, AMisalignedRequestIsRefusedByADirectTarget) {
  // Written first: a hole of a file is read without asking the disk.
  ASSERT_EQ(Do(Request(1, Op::kWrite, 0, kBlockBytes)).error, 0u);
  const uint32_t expected = target_->direct() ? EINVAL : 0;
  EXPECT_EQ(Do(Request(1, Op::kRead, 100, 512)).error, expected);
  EXPECT_EQ(Do(Request(1, Op::kRead, 512, 512)).error, 0u);
}

TEST_P(KernelEngineTest, DiscardedBlocksOfThisTargetReadAsZeroes) {
  std::memset(Buffer(0), 0x77, kSlotBytes);
  ASSERT_EQ(Do(Request(0, Op::kWrite, 0, kSlotBytes)).error, 0u);
  const EngineCompletion discard = Do(Request(1, Op::kDiscard, 4 * kBlockBytes, 8 * kBlockBytes));
  EXPECT_EQ(discard.error, 0u) << strerror(static_cast<int>(discard.error));
  EXPECT_EQ(discard.bytes_done, 8 * kBlockBytes);
  ASSERT_EQ(Do(Request(2, Op::kRead, 0, kSlotBytes)).error, 0u);
  EXPECT_TRUE(AllZero(Buffer(2) + 4 * kBlockBytes, 8 * kBlockBytes));
  EXPECT_EQ(std::memcmp(Buffer(2), Buffer(0), 4 * kBlockBytes), 0);
  EXPECT_EQ(std::memcmp(Buffer(2) + 12 * kBlockBytes, Buffer(0), kBlockBytes), 0);
}

TEST_P(KernelEngineTest, AsManyDiscardsAsTheDepthAreOutAtOnceAmongWritesAndAllArrive) {
  std::memset(Buffer(0), 0x77, kDepth * kSlotBytes);
  for (uint64_t block = 0; block < 2 * kDepth; ++block) {
    ASSERT_EQ(Do(Request(0, Op::kWrite, block * kBlockBytes, kBlockBytes)).error, 0u);
  }
  for (int round = 0; round < 20; ++round) {
    std::vector<EngineRequest> requests;
    for (uint64_t tag = 0; tag < kDepth; ++tag) {
      requests.push_back(Request(tag, tag % 4 == 0 ? Op::kWrite : Op::kDiscard,
                                 2 * tag * kBlockBytes, kBlockBytes));
    }
    ASSERT_EQ(Submit(requests), kDepth);
    for (const auto& [tag, completion] : Reap(kDepth)) {
      EXPECT_EQ(completion.error, 0u) << "tag " << tag;
    }
  }
  for (uint64_t block = 0; block < 2 * kDepth; ++block) {
    ASSERT_EQ(Do(Request(0, Op::kRead, block * kBlockBytes, kBlockBytes)).error, 0u);
    const bool discarded = block % 2 == 0 && block % 8 != 0;
    EXPECT_EQ(AllZero(Buffer(0), kBlockBytes), discarded) << "block " << block;
  }
}

TEST_P(KernelEngineTest, WrittenZeroesReadAsZeroes) {
  std::memset(Buffer(0), 0x77, kSlotBytes);
  ASSERT_EQ(Do(Request(0, Op::kWrite, 0, kSlotBytes)).error, 0u);
  const EngineCompletion zeroes = Do(Request(1, Op::kWriteZeroes, kBlockBytes, kBlockBytes));
  if (!target_->abilities().write_zeroes) {
    EXPECT_EQ(zeroes.error, static_cast<uint32_t>(EOPNOTSUPP)) << "tmpfs cannot";
    return;
  }
  EXPECT_EQ(zeroes.error, 0u) << strerror(static_cast<int>(zeroes.error));
  ASSERT_EQ(Do(Request(2, Op::kRead, 0, 3 * kBlockBytes)).error, 0u);
  EXPECT_TRUE(AllZero(Buffer(2) + kBlockBytes, kBlockBytes));
  EXPECT_EQ(std::memcmp(Buffer(2) + 2 * kBlockBytes, Buffer(0), kBlockBytes), 0);
}

TEST_P(KernelEngineTest, WaitingWakesForWorkOfThePoolToo) {
  // Secure erase goes to the pool in every engine; here it is refused, and that must arrive.
  for (int round = 0; round < 50; ++round) {
    std::vector<EngineRequest> requests;
    for (uint64_t tag = 0; tag < kDepth; ++tag) {
      requests.push_back(Request(tag, tag % 3 == 0 ? Op::kRead : Op::kSecureErase,
                                 tag * kBlockBytes, kBlockBytes));
    }
    ASSERT_EQ(Submit(requests), kDepth);
    ASSERT_EQ(Reap(kDepth).size(), kDepth);
  }
}

std::set<std::string> Threads() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(entry.path().filename());
  }
  return ids;
}

// It polls there in real time, and they would wait until it sleeps.
TEST_P(KernelEngineTest, NothingThatWorksForAPinnedThreadRunsOnItsCpu) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  BLKTAPE_REQUIRE(CPU_COUNT(&mine) > 1, "a second CPU");
  int pinned = 0;
  while (!CPU_ISSET(pinned, &mine)) ++pinned;
  std::thread issuing([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(pinned, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::set<std::string> before = Threads();
    EXPECT_EQ(Do(Request(1, Op::kFlush, 0, 0)).error, 0);
    int workers = 0;
    for (const std::string& id : Threads()) {
      if (before.contains(id)) continue;
      ++workers;
      cpu_set_t cpus;
      ASSERT_EQ(sched_getaffinity(std::stoi(id), sizeof cpus, &cpus), 0);
      EXPECT_FALSE(CPU_ISSET(pinned, &cpus));
      EXPECT_EQ(CPU_COUNT(&cpus), CPU_COUNT(&mine) - 1);
    }
    EXPECT_GE(workers, 1);
  });
  issuing.join();
}

TEST_P(EngineContractTest, ItSaysHowRequestsTravel) {
  EXPECT_EQ(engine_->name(), GetParam().engine);
  EXPECT_FALSE(engine_->mode().empty());
  RecordProperty("mode", engine_->mode());
  if (GetParam().engine == std::string("io_uring")) {
    EXPECT_THAT(engine_->mode(), HasSubstr("registered files, registered buffers"));
    const EngineCompletion read = Do(Request(1, Op::kRead, 0, kBlockBytes));
    const bool punts = engine_->mode().find("punted to kernel workers") != std::string::npos;
    EXPECT_EQ(read.punted, punts);
  }
}

const auto kKernelEngines = testing::Values(
    Param{"io_uring", "disk file"}, Param{"io_uring", "memory file"}, Param{"io_uring", "loop"},
    Param{"io_uring", "loop", true}, Param{"libaio", "disk file"}, Param{"libaio", "memory file"},
    Param{"libaio", "loop"});
INSTANTIATE_TEST_SUITE_P(Kernel, EngineContractTest, kKernelEngines, NameOf);
INSTANTIATE_TEST_SUITE_P(Kernel, KernelEngineTest, kKernelEngines, NameOf);
INSTANTIATE_TEST_SUITE_P(Pure, EngineContractTest,
                         testing::Values(Param{"null", "none"}, Param{"simulated", "none"}),
                         NameOf);

TEST(EngineFactoryTest, AnUnknownNameIsRefusedWithThoseThatExist) {
  const auto engine = OpenEngine("posixaio", {});
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(engine.status().message(), HasSubstr("io_uring, libaio, simulated or null"));
}

TEST(EngineFactoryTest, ADepthOfNothingIsRefused) {
  EngineOptions options;
  options.depth = 0;
  EXPECT_EQ(OpenEngine("null", options).status().code(), StatusCode::kInvalidArgument);
}

TEST(IoUringEngineTest, PollingIsRefusedWhereTheDriverHasNoPollQueues) {
  const ScratchFolder folder;
  MakeSparseFile(folder.path() + "/target", kTargetBytes);
  const auto loop = LoopDevice::Over(folder.path() + "/target");
  BLKTAPE_REQUIRE(loop.ok(), "loop devices");
  const auto target = Target::Open((*loop)->path(), {.overwrite = true});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EngineOptions options;
  options.targets = {target->get()};
  options.polled_completion = true;
  const auto engine = OpenEngine("io_uring", options);
  ASSERT_FALSE(engine.ok()) << (*engine)->mode();
  EXPECT_EQ(engine.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(engine.status().message(), HasSubstr((*loop)->path() + ": polled completion: "));
  EXPECT_THAT(engine.status().message(), HasSubstr("poll_queues"));
}

}  // namespace
}  // namespace blktape
