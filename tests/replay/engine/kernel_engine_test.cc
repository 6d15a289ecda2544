#include "replay/engine/kernel_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_options.h"
#include "replay/engine/request_progress.h"
#include "replay/target/target.h"

namespace blktape {
namespace {

using testing::ElementsAre;

class Disk : public Target {
 public:
  explicit Disk(bool is_block_device, const char* write_cache = "")
      : is_block_device_(is_block_device) {
    description_.set_write_cache(write_cache);
  }
  int fd() const override { return -1; }
  const std::string& path() const override { return text_; }
  uint64_t size_bytes() const override { return 1 << 20; }
  uint32_t logical_block_bytes() const override { return 512; }
  bool is_block_device() const override { return is_block_device_; }
  const std::string& identity() const override { return text_; }
  bool direct() const override { return true; }
  const TargetAbilities& abilities() const override { return abilities_; }
  const proto::Device& description() const override { return description_; }
  std::optional<uint64_t> StatSectors() const override { return std::nullopt; }
  const std::string& disk() const override { return text_; }

 private:
  const bool is_block_device_;
  const std::string text_;
  const TargetAbilities abilities_{};
  proto::Device description_;
};

// Keeps what is asked of the kernel, and when, and completes it at once.
class KeepingEngine : public KernelEngine {
 public:
  explicit KeepingEngine(const EngineOptions& options) : KernelEngine(options) {}

  std::string_view name() const override { return "keeping"; }
  std::string mode() const override { return ""; }

  struct Asked {
    std::string what;
    int64_t at_ns = 0;
  };
  const std::vector<Asked>& asked() const { return asked_; }
  bool full = false;  // the kernel: before it takes more, what is complete must be collected
  std::vector<std::string> whats() const {
    std::vector<std::string> all;
    for (const Asked& one : asked_) all.push_back(one.what);
    return all;
  }

 protected:
  void Issue(uint32_t slot, const EngineStep& step) override {
    Keep(step.op == Op::kFlush ? "flush" : "write");
    issued_.push_back({slot, step.bytes});
  }
  Status Push() override {
    EXPECT_FALSE(pushing_) << "what an engine keeps of a push would be of two";
    pushing_ = true;
    if (full) RETURN_IF_ERROR(Collect());
    pushing_ = false;
    if (issued_.size() > pushed_) Keep("push");
    pushed_ = issued_.size();
    return OkStatus();
  }
  Status Collect() override {
    StampNow();
    while (collected_ < pushed_) {
      const Issued issued = issued_[collected_++];
      Finish(issued.slot, static_cast<int64_t>(issued.bytes));
    }
    return OkStatus();
  }
  Status Wait(int64_t, bool) override { return OkStatus(); }
  Status IssueEmptyRead(uint32_t) override { return OkStatus(); }

 private:
  struct Issued {
    uint32_t slot;
    uint64_t bytes;
  };
  void Keep(std::string what) { asked_.push_back({std::move(what), Clock::Monotonic()->NowNs()}); }

  std::vector<Asked> asked_;
  std::vector<Issued> issued_;
  size_t pushed_ = 0;
  size_t collected_ = 0;
  bool pushing_ = false;
};

class KernelEnginesOrderTest : public testing::Test {
 protected:
  // A flush, and a write together with it.
  KeepingEngine& Submit(bool in_place, const Target& target) {
    EngineOptions options;
    options.targets = {&target};
    options.flushes_keep_their_place = in_place;
    engine_.emplace(options);
    const std::array<EngineRequest, 2> requests = {
        EngineRequest{.tag = 0, .op = Op::kFlush},
        EngineRequest{.tag = 1, .op = Op::kWrite, .bytes = 512, .buffer = buffer_.data()}};
    const Result<size_t> submitted = engine_->Submit(requests);
    EXPECT_TRUE(submitted.ok() && *submitted == 2);
    std::array<EngineCompletion, 2> done;
    for (size_t reaped = 0; reaped < 2;) {
      const Result<size_t> count = engine_->Reap(done, INT64_MAX);
      if (!count.ok()) break;
      for (const EngineCompletion& one : std::span(done).first(*count)) {
        held_back_ns_[one.tag] = one.held_back_ns;
      }
      reaped += *count;
    }
    return *engine_;
  }

  const Disk disk_{true};
  const Disk file_{false};
  std::optional<KeepingEngine> engine_;
  std::array<int64_t, 2> held_back_ns_{};  // the flush, the write
  alignas(512) std::array<std::byte, 512> buffer_{};
};

TEST_F(KernelEnginesOrderTest, AFlushGetsToTheDriveBeforeWhatIsSubmittedAfterIt) {
  const auto& asked = Submit(true, disk_).asked();
  ASSERT_THAT(engine_->whats(), ElementsAre("flush", "push", "write", "push"));
  EXPECT_GE(asked[2].at_ns - asked[1].at_ns, kFlushTakesNs);
  EXPECT_EQ(held_back_ns_[0], 0);
  EXPECT_GT(held_back_ns_[1], 0);
  EXPECT_LE(held_back_ns_[1], asked[2].at_ns - asked[1].at_ns);
}

TEST_F(KernelEnginesOrderTest, WithoutTimesToKeepBothGoAtOnce) {
  EXPECT_THAT(Submit(false, disk_).whats(), ElementsAre("flush", "write", "push"));
}

TEST_F(KernelEnginesOrderTest, AFileIsFlushedByItsFileSystemAsItWere) {
  EXPECT_THAT(Submit(true, file_).whats(), ElementsAre("flush", "write", "push"));
}

TEST_F(KernelEnginesOrderTest, NothingWaitsForAFlushThatTheKernelDoesNotSend) {
  const Disk disk(true, "write through");
  EXPECT_THAT(Submit(true, disk).whats(), ElementsAre("flush", "write", "push"));
}

TEST_F(KernelEnginesOrderTest, AFlushThatIsIssuedWithinAPushIsOfThatPush) {
  EngineOptions options;
  const Disk second(true);
  options.targets = {&disk_, &second};
  options.flushes_keep_their_place = true;
  KeepingEngine engine(options);
  const auto submit = [&](EngineRequest request) {
    const Result<size_t> submitted = engine.Submit({&request, 1});
    EXPECT_TRUE(submitted.ok() && *submitted == 1);
  };
  submit({.tag = 0,
          .op = Op::kWrite,
          .flags = kFlagPreflush | kFlagFua,
          .bytes = 512,
          .buffer = buffer_.data()});
  submit({.tag = 1, .op = Op::kFlush});  // not before that write
  EXPECT_THAT(engine.whats(), ElementsAre("flush", "push"));
  engine.full = true;
  submit({.tag = 2, .target = 1, .op = Op::kFlush});
  EXPECT_THAT(engine.whats(), ElementsAre("flush", "push", "flush", "write", "flush", "push"));
}

}  // namespace
}  // namespace blktape
