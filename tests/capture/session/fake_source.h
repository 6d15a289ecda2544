#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capture/source/live_source.h"

namespace blktape {

// A live source that tells what a test gives it. `State` outlives it.
class FakeSource : public LiveSource {
 public:
  struct State {
    std::vector<Disk> disks;
    std::vector<IoRecord> to_tell;  // at the next Poll, or at Stop
    std::vector<uint32_t> own_pids;
    Status start;
    Status poll;
  };
  FakeSource(std::string name, State* state) : name_(std::move(name)), state_(state) {}

  std::string_view name() const override { return name_; }
  Status Start() override { return state_->start; }
  Result<bool> Poll(int /*timeout_ms*/, CaptureSink* sink) override {
    RETURN_IF_ERROR(state_->poll);
    Tell(sink);
    return true;
  }
  Status Stop(CaptureSink* sink) override {
    stopped_ = true;
    Tell(sink);
    return OkStatus();
  }
  std::vector<Disk> devices() const override { return state_->disks; }
  uint64_t buffer_bytes_per_cpu() const override { return 0; }
  Result<uint64_t> KernelLost() override { return uint64_t{0}; }
  Result<bool> Grow(uint64_t /*limit_bytes*/) override { return false; }
  void SetOwnPids(const std::vector<uint32_t>& pids) override { state_->own_pids = pids; }
  Status Add(const Disk& disk) override {
    EXPECT_FALSE(stopped_);
    state_->disks.push_back(disk);
    return OkStatus();
  }
  void Remove(const Disk& disk) override {
    EXPECT_FALSE(stopped_);
    std::erase_if(state_->disks, [&](const Disk& one) { return one.dev == disk.dev; });
  }

 private:
  void Tell(CaptureSink* sink) {
    for (const IoRecord& record : std::exchange(state_->to_tell, {})) {
      sink->OnFinished(0, record, {});
    }
  }

  std::string name_;
  State* state_;
  bool stopped_ = false;
};

}  // namespace blktape
