#include "capture/bpf/bpf_source.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/units.h"
#include "capture/source/block_event.h"
#include "capture/source/capture_source.h"
#include "capture/source/live_source.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "tests/support/loop_device.h"
#include "tests/support/requires.h"

// clang-format off: it needs the types of <linux/types.h>.
#include <linux/types.h>
#include "capture/bpf/block_abi.h"
// clang-format on

namespace blktape {
namespace {

constexpr uint64_t kDeviceBytes = 64u << 20;

Disk DiskOf(uint32_t dev) {
  Disk device;
  device.dev = dev;
  return device;
}

class Harvest : public CaptureSink {
 public:
  void OnEvent(uint32_t, const BlockEvent&) override { FAIL() << "bpf delivers finished requests"; }
  void OnWatermark(int64_t ns) override { watermark_ns = ns; }
  void OnFinished(uint32_t, const IoRecord& record, const ProcessComm& comm) override {
    // Nothing that completed before a watermark may come after it.
    EXPECT_GE(record.complete_ns.value_or(watermark_ns), watermark_ns);
    records.push_back(record);
    names.emplace_back(comm.data());
  }
  void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) override {
    queued[{op, bytes}] += count;
  }
  void OnFlaggedWrites(uint64_t count) override { flagged_writes += count; }
  void OnProcessName(uint32_t, int64_t, const ProcessComm&) override {}
  void OnAnchor(const proto::ClockAnchor&) override {}
  void OnLoss(const proto::Loss& loss) override { losses[loss.reason()] += loss.count(); }

  // CPUs are drained one after the other, so that order across them is by the stamps alone.
  std::vector<IoRecord> ByIssue() const {
    std::vector<IoRecord> ordered = records;
    std::sort(ordered.begin(), ordered.end(),
              [](const IoRecord& a, const IoRecord& b) { return *a.issue_ns < *b.issue_ns; });
    return ordered;
  }

  std::vector<IoRecord> records;
  std::vector<std::string> names;
  std::map<std::pair<Op, uint64_t>, uint64_t> queued;
  uint64_t flagged_writes = 0;
  std::map<proto::LossReason, uint64_t> losses;
  int64_t watermark_ns = 0;
};

class BpfSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BLKTAPE_REQUIRE_ROOT();
    BLKTAPE_REQUIRE(access("/sys/kernel/btf/vmlinux", R_OK) == 0, "a kernel with BTF");
    auto loop = LoopDevice::Make(::testing::TempDir(), kDeviceBytes);
    ASSERT_TRUE(loop.ok()) << loop.status().message();
    loop_ = std::move(*loop);
    ASSERT_EQ(posix_memalign(reinterpret_cast<void**>(&buffer_), 4096, 1 << 20), 0);
    std::fill_n(buffer_, 1 << 20, 'x');
    fd_.reset(open(loop_->path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    ASSERT_TRUE(static_cast<bool>(fd_));
  }
  void TearDown() override { std::free(buffer_); }

  bool StartSource(const BpfSourceOptions& options = {}) {
    source_ = MakeBpfSource({DiskOf(loop_->dev())}, options);
    const Status status = source_->Start();
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok();
  }
  void StopSource() {
    ASSERT_TRUE(source_->Poll(0, &harvest_).ok());
    ASSERT_TRUE(source_->Stop(&harvest_).ok());
  }

  // Writes the I/O last seen into every slot, as issued and not completed; returns how many there
  // are.
  static uint64_t RefillSlots() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::stoi(entry.path().filename().string());
      bpf_map_info info{};
      __u32 size = sizeof info;
      if (bpf_obj_get_info_by_fd(fd, &info, &size) != 0) continue;
      if (std::string_view(info.name) != "slots") continue;
      blktape_slot last{};
      for (__u32 i = 0; i < info.max_entries && last.issue_ns == 0; ++i) {
        EXPECT_EQ(bpf_map_lookup_elem(fd, &i, &last), 0);
      }
      last.rq = 1;
      for (__u32 i = 0; i < info.max_entries; ++i) {
        EXPECT_EQ(bpf_map_update_elem(fd, &i, &last, BPF_ANY), 0);
      }
      return info.max_entries;
    }
    return 0;
  }

  std::unique_ptr<LoopDevice> loop_;
  UniqueFd fd_;
  char* buffer_ = nullptr;
  std::unique_ptr<LiveSource> source_;
  Harvest harvest_;
};

TEST_F(BpfSourceTest, TwentyThreeWritesAndSeventeenReadsAreFortyRecords) {
  ASSERT_TRUE(StartSource());
  std::vector<std::pair<Op, uint64_t>> expected;  // op, offset in bytes
  for (uint64_t i = 0; i < 23; ++i) {
    const uint64_t offset = (i * 7919 % 4096) * 4096;
    ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, static_cast<off_t>(offset)), 4096);
    expected.emplace_back(Op::kWrite, offset);
  }
  for (uint64_t i = 0; i < 17; ++i) {
    const uint64_t offset = (i * 104729 % 1024) * 16384;
    ASSERT_EQ(pread(fd_.get(), buffer_, 16384, static_cast<off_t>(offset)), 16384);
    expected.emplace_back(Op::kRead, offset);
  }
  StopSource();
  const std::vector<IoRecord> mine = harvest_.ByIssue();
  ASSERT_EQ(mine.size(), 40u);
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].op, expected[i].first) << i;
    EXPECT_EQ(mine[i].lba, Lba(expected[i].second / 512)) << i;
    EXPECT_EQ(mine[i].bytes, mine[i].op == Op::kWrite ? 4096u : 16384u) << i;
    EXPECT_EQ(mine[i].device, loop_->dev());
    EXPECT_EQ(mine[i].pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(mine[i].error, 0u);
    ASSERT_TRUE(mine[i].queue_ns && mine[i].issue_ns && mine[i].complete_ns);
    EXPECT_LE(*mine[i].queue_ns, *mine[i].issue_ns);
    EXPECT_LE(*mine[i].issue_ns, *mine[i].complete_ns);
  }
  EXPECT_EQ((harvest_.queued[{Op::kWrite, 4096}]), 23u);
  EXPECT_EQ((harvest_.queued[{Op::kRead, 16384}]), 17u);
  EXPECT_THAT(harvest_.losses, ::testing::IsEmpty());
}

TEST_F(BpfSourceTest, RecordsBearTheNameOfTheirProcess) {
  ASSERT_TRUE(StartSource());
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, 0), 4096);
  StopSource();
  ASSERT_EQ(harvest_.records.size(), 1u);
  std::string own = ReadFile("/proc/self/comm").value();
  own.pop_back();  // newline
  EXPECT_EQ(harvest_.names[0], own);
}

// A thread that waits for a pipe is woken by who writes there, which has read before; or by one
// that was woken by that one and has not.
TEST_F(BpfSourceTest, AThreadsIoTellsWhoWokeIt) {
  ASSERT_TRUE(StartSource());
  std::array<std::array<int, 2>, 2> pipes;
  for (auto& one : pipes) ASSERT_EQ(pipe2(one.data(), O_CLOEXEC), 0);
  const auto read_at = [this](char* to, off_t at) {
    EXPECT_EQ(pread(fd_.get(), to, 4096, at), 4096);
  };
  char byte = 0;
  std::thread between([&] {
    EXPECT_EQ(::read(pipes[0][0], &byte, 1), 1);
    EXPECT_EQ(::write(pipes[1][1], &byte, 1), 1);
  });
  uint32_t woken = 0;
  std::thread last([&] {
    char answer = 0;
    woken = static_cast<uint32_t>(gettid());
    read_at(buffer_ + 4096, 0);
    EXPECT_EQ(::read(pipes[1][0], &answer, 1), 1);
    read_at(buffer_ + 4096, 8192);
    timespec nap{.tv_sec = 0, .tv_nsec = 20'000'000};
    nanosleep(&nap, nullptr);  // woken by a clock
    read_at(buffer_ + 4096, 12'288);
  });
  timespec nap{.tv_sec = 0, .tv_nsec = 100'000'000};
  nanosleep(&nap, nullptr);  // until both wait
  read_at(buffer_, 4096);
  EXPECT_EQ(::write(pipes[0][1], &byte, 1), 1);
  between.join();
  last.join();
  for (auto& one : pipes) {
    for (const int fd : one) close(fd);
  }
  StopSource();
  const std::vector<IoRecord> mine = harvest_.ByIssue();
  ASSERT_EQ(mine.size(), 4u);
  EXPECT_EQ(mine[2].pid, woken);
  EXPECT_EQ(mine[2].waker, static_cast<uint32_t>(gettid()));
  ASSERT_TRUE(mine[2].since_wake_ns);
  // Between its waker's read and its own.
  EXPECT_GE(*mine[2].queue_ns - static_cast<int64_t>(*mine[2].since_wake_ns), *mine[1].complete_ns);
  EXPECT_EQ(mine[3].pid, woken);
  EXPECT_EQ(mine[3].waker, std::nullopt);
}

// Of two threads that need a page at the same time one reads it, and the other is woken when that
// is complete.
TEST_F(BpfSourceTest, AThreadThatWaitsForAPageIsWokenByItsReader) {
  constexpr off_t kPages = 800;
  constexpr off_t kApart = 64 << 10;
  const UniqueFd cached(open(loop_->path().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(static_cast<bool>(cached));
  ASSERT_EQ(posix_fadvise(cached.get(), 0, 0, POSIX_FADV_RANDOM), 0);
  ASSERT_TRUE(StartSource());
  std::barrier together(2);
  std::array<uint32_t, 2> threads{};
  const auto reads = [&](size_t which) {
    threads[which] = static_cast<uint32_t>(gettid());
    char* const to = buffer_ + which * 8192;
    for (off_t page = 0; page < kPages; ++page) {
      together.arrive_and_wait();
      EXPECT_EQ(pread(cached.get(), to, 1, page * kApart), 1);
      // Of its own, and of another size.
      EXPECT_EQ(pread(fd_.get(), to, 8192, page * kApart + (kApart >> 1)), 8192);
    }
  };
  std::thread other([&] { reads(1); });
  reads(0);
  other.join();
  StopSource();
  std::map<uint64_t, IoRecord> pages;
  for (const IoRecord& io : harvest_.records) {
    if (io.bytes == 4096) pages[io.lba->sectors * 512 / kApart] = io;
  }
  int woken = 0;
  for (const IoRecord& io : harvest_.records) {
    if (io.bytes != 8192 || !io.waker) continue;
    EXPECT_EQ(*io.waker, threads[0] == *io.pid ? threads[1] : threads[0]);
    const IoRecord& page = pages[io.lba->sectors * 512 / kApart];
    const int64_t woken_ns = *io.queue_ns - static_cast<int64_t>(*io.since_wake_ns);
    // Else the other one woke it at the barrier.
    if (*io.pid != page.pid && woken_ns >= page.complete_ns) ++woken;
  }
  EXPECT_GT(woken, 0) << harvest_.records.size() << " I/Os";
}

TEST_F(BpfSourceTest, AnFsyncIsOneFlushThatWasAsked) {
  ASSERT_TRUE(StartSource());
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, 0), 4096);
  ASSERT_EQ(fdatasync(fd_.get()), 0);
  StopSource();
  std::vector<IoRecord> flushes;
  for (const IoRecord& record : harvest_.records) {
    if (record.op == Op::kFlush) flushes.push_back(record);
  }
  ASSERT_EQ(flushes.size(), 1u);
  EXPECT_EQ(flushes[0].flags & kFlagDerived, 0u);
  EXPECT_EQ(flushes[0].lba, std::nullopt);
  EXPECT_EQ(flushes[0].bytes, 0u);
  EXPECT_EQ(flushes[0].pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ((harvest_.queued[{Op::kFlush, 0}]), 1u);
  EXPECT_THAT(harvest_.losses, ::testing::IsEmpty());
}

// A direct write with O_DSYNC to a block device carries FUA and is followed by an fsync
// (block/fops.c: dio_bio_write_op and generic_write_sync). A loop device has a volatile cache and
// no FUA, so that the block layer makes write, flush of the first.
TEST_F(BpfSourceTest, AFlaggedWriteKeepsItsFlagAndItsFlushIsDerived) {
  ASSERT_TRUE(StartSource());
  UniqueFd sync(open(loop_->path().c_str(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC));
  ASSERT_EQ(pwrite(sync.get(), buffer_, 8192, 65536), 8192);
  StopSource();
  const std::vector<IoRecord> by_issue = harvest_.ByIssue();
  ASSERT_EQ(by_issue.size(), 3u);
  EXPECT_EQ(by_issue[0].op, Op::kWrite);
  EXPECT_EQ(by_issue[0].lba, Lba(128));
  EXPECT_EQ(by_issue[0].bytes, 8192u);
  EXPECT_NE(by_issue[0].flags & kFlagSync, 0u);
  EXPECT_NE(by_issue[0].flags & kFlagFua, 0u);
  EXPECT_EQ(by_issue[1].op, Op::kFlush);
  EXPECT_NE(by_issue[1].flags & kFlagDerived, 0u);
  EXPECT_EQ(by_issue[2].op, Op::kFlush);
  EXPECT_EQ(by_issue[2].flags & kFlagDerived, 0u);
  EXPECT_EQ(harvest_.flagged_writes, 1u);
  EXPECT_EQ((harvest_.queued[{Op::kFlush, 0}]), 1u);
  EXPECT_THAT(harvest_.losses, ::testing::IsEmpty());
}

TEST_F(BpfSourceTest, ADiscardIsSeenWithItsLength) {
  ASSERT_TRUE(StartSource());
  ASSERT_EQ(fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, 4 << 20), 0);
  StopSource();
  ASSERT_FALSE(harvest_.records.empty());
  uint64_t bytes = 0;
  for (const IoRecord& record : harvest_.records) {
    EXPECT_TRUE(record.op == Op::kDiscard || record.op == Op::kWriteZeroes) << OpName(record.op);
    bytes += record.bytes;
  }
  EXPECT_EQ(bytes, 4u << 20);
  EXPECT_EQ(harvest_.ByIssue()[0].lba, Lba(2048));
}

TEST_F(BpfSourceTest, WhatTheRecorderItselfQueuesIsNotCountedAsQueued) {
  ASSERT_TRUE(StartSource());
  UniqueFd sync(open(loop_->path().c_str(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC));
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 8192, 0), 8192);
  source_->MarkThread();
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 16'384, 0), 16'384);
  source_->SetOwnPids({1, static_cast<uint32_t>(gettid())});
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, 0), 4096);
  ASSERT_EQ(fdatasync(fd_.get()), 0);
  ASSERT_EQ(pwrite(sync.get(), buffer_, 4096, 0), 4096);
  source_->SetOwnPids({});
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 12'288, 0), 12'288);
  StopSource();
  const std::map<std::pair<Op, uint64_t>, uint64_t> others = {{{Op::kWrite, 8192}, 1},
                                                              {{Op::kWrite, 12'288}, 1}};
  EXPECT_EQ(harvest_.queued, others);
  EXPECT_EQ(harvest_.flagged_writes, 0u);
  // They are records all the same, which the session leaves out and counts.
  EXPECT_EQ(std::count_if(harvest_.records.begin(), harvest_.records.end(),
                          [](const IoRecord& record) { return record.op == Op::kWrite; }),
            5);
}

TEST_F(BpfSourceTest, WhatFindsNoRoomIsCounted) {
  ASSERT_TRUE(StartSource({.ring_bytes_per_cpu = 4096, .process_names = false}));
  constexpr uint64_t kWrites = 2000;
  for (uint64_t i = 0; i < kWrites; ++i) {
    ASSERT_EQ(pwrite(fd_.get(), buffer_, 512, static_cast<off_t>(i * 512)), 512);
  }
  StopSource();
  EXPECT_GT(harvest_.losses[proto::RING_OVERRUN], 0u);
  const uint64_t whole =
      std::count_if(harvest_.records.begin(), harvest_.records.end(),
                    [](const IoRecord& record) { return record.complete_ns.has_value(); });
  EXPECT_EQ(whole + harvest_.losses[proto::RING_OVERRUN] + harvest_.losses[proto::TAG_REUSED] +
                harvest_.losses[proto::IN_FLIGHT_AT_END],
            kWrites);
}

TEST_F(BpfSourceTest, AnIoWhoseCompletionWasNotSeenIsDeliveredWithoutItAndCounted) {
  ASSERT_TRUE(StartSource());
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, 800 * 512), 4096);
  // As if every tag had carried this write, and no program run at its completion.
  const uint64_t slots = RefillSlots();
  ASSERT_GT(slots, 0u);
  ASSERT_EQ(pwrite(fd_.get(), buffer_, 8192, 0), 8192);
  StopSource();
  EXPECT_EQ(harvest_.losses[proto::TAG_REUSED], 1u);
  EXPECT_EQ(harvest_.losses[proto::IN_FLIGHT_AT_END], slots - 1);
  uint64_t open = 0;
  for (const IoRecord& record : harvest_.records) {
    if (record.complete_ns) continue;
    ++open;
    EXPECT_EQ(record.lba, Lba(800));
    EXPECT_EQ(record.bytes, 4096u);
    EXPECT_TRUE(record.issue_ns.has_value());
    EXPECT_EQ(record.error, std::nullopt);
  }
  EXPECT_EQ(open, slots);
  EXPECT_EQ(harvest_.records.size(), slots + 2);
}

// For as long as it lives; the next user of a loop device's number would get its queue with it.
class AttributeScope {
 public:
  AttributeScope(std::string path, std::string_view text)
      : path_(std::move(path)), before_(ReadAttribute(path_)) {
    EXPECT_TRUE(before_.ok() && WriteAttribute(path_, text).ok()) << path_;
  }
  ~AttributeScope() {
    if (before_.ok()) {
      EXPECT_TRUE(WriteAttribute(path_, *before_).ok()) << path_;
    }
  }
  AttributeScope(const AttributeScope&) = delete;
  AttributeScope& operator=(const AttributeScope&) = delete;

 private:
  const std::string path_;
  const Result<std::string> before_;
};

// Two rings that have been left to fill for a quarter of a second: what came last to the one is not
// delivered before what came first to the other.
TEST_F(BpfSourceTest, ABacklogIsDeliveredInSlicesOfTime) {
  BLKTAPE_REQUIRE(sysconf(_SC_NPROCESSORS_ONLN) >= 2, "two CPUs");
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  // 2: a request completes on the very CPU that it came from.
  const AttributeScope affinity("/sys/block/" + loop_->name() + "/queue/rq_affinity", "2");
  ASSERT_TRUE(StartSource());
  for (int i = 0; i < 26; ++i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(i % 2, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, i * 4096), 4096);
    usleep(10'000);
  }
  sched_setaffinity(0, sizeof before, &before);
  StopSource();
  ASSERT_EQ(harvest_.records.size(), 26u);
  int64_t newest_ns = 0;
  int completed = 0;
  for (const IoRecord& record : harvest_.records) {
    // Some kernels keep BPF out of a task now and then; its completion is missing and counted.
    if (!record.complete_ns) continue;
    ++completed;
    EXPECT_GT(*record.complete_ns, newest_ns - 50 * kNanosPerMilli);
    newest_ns = std::max(newest_ns, *record.complete_ns);
  }
  EXPECT_GE(completed, 20);
}

TEST_F(BpfSourceTest, RingsGrowUpToTheirBoundWhileItRecords) {
  ASSERT_TRUE(StartSource({.ring_bytes_per_cpu = 1 << 16}));
  const uint64_t cpus = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
  for (int i = 0; i < 10; ++i) ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, i * 4096), 4096);
  // A ring of 128 KiB and what is left of the old one, for each CPU.
  EXPECT_TRUE(*source_->Grow((4 << 16) * cpus));
  EXPECT_EQ(source_->buffer_bytes_per_cpu(), 2u << 16);
  EXPECT_FALSE(*source_->Grow((4 << 16) * cpus));
  for (int i = 10; i < 30; ++i) ASSERT_EQ(pwrite(fd_.get(), buffer_, 4096, i * 4096), 4096);
  StopSource();
  const std::vector<IoRecord> mine = harvest_.ByIssue();
  ASSERT_EQ(mine.size(), 30u);
  for (uint64_t i = 0; i < 30; ++i) EXPECT_EQ(mine[i].lba, Lba(i * 8));
  EXPECT_THAT(harvest_.losses, ::testing::IsEmpty());
}

TEST_F(BpfSourceTest, OtherDisksAreNotSeen) {
  auto other = LoopDevice::Make(::testing::TempDir(), kDeviceBytes);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(StartSource());
  UniqueFd fd(open((*other)->path().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  ASSERT_EQ(pwrite(fd.get(), buffer_, 4096, 0), 4096);
  StopSource();
  EXPECT_THAT(harvest_.records, ::testing::IsEmpty());
}

TEST(BpfSourceRightsTest, WithoutRightsItSaysWhatToDo) {
  BLKTAPE_REQUIRE_ROOT();
  BLKTAPE_REQUIRE(access("/sys/kernel/btf/vmlinux", R_OK) == 0, "a kernel with BTF");
  EXPECT_EXIT(
      {
        if (setuid(65534) != 0) std::exit(9);
        const Status status = MakeBpfSource({DiskOf(7u << 20)})->Start();
        const bool said = status.code() == StatusCode::kPermissionDenied &&
                          status.message().find("try:") != std::string::npos;
        std::fprintf(stderr, "%s\n", status.message().c_str());
        std::exit(said ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace blktape
