#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capture/source/capture_source.h"

namespace blktape {

// Stores what a source delivers, to forward it later. For small amounts. One thread.
class SinkBuffer : public CaptureSink {
 public:
  void OnEvent(uint32_t stream, const BlockEvent& event) override {
    Keep([=](CaptureSink* sink) { sink->OnEvent(stream, event); });
  }
  void OnWatermark(int64_t ns) override {
    Keep([=](CaptureSink* sink) { sink->OnWatermark(ns); });
  }
  void OnFinished(uint32_t stream, const IoRecord& record, const ProcessComm& comm) override {
    Keep([=](CaptureSink* sink) { sink->OnFinished(stream, record, comm); });
  }
  void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) override {
    Keep([=](CaptureSink* sink) { sink->OnQueuedSizes(op, bytes, count); });
  }
  void OnFlaggedWrites(uint64_t count) override {
    Keep([=](CaptureSink* sink) { sink->OnFlaggedWrites(count); });
  }
  void OnProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) override {
    Keep([=](CaptureSink* sink) { sink->OnProcessName(pid, since_ns, comm); });
  }
  void OnAnchor(const proto::ClockAnchor& anchor) override {
    Keep([=](CaptureSink* sink) { sink->OnAnchor(anchor); });
  }
  void OnLoss(const proto::Loss& loss) override {
    Keep([=](CaptureSink* sink) { sink->OnLoss(loss); });
  }

  // Forwards everything in the order in which it came.
  void Replay(CaptureSink* sink) const {
    for (const auto& one : kept_) one(sink);
  }

 private:
  void Keep(std::function<void(CaptureSink*)> call) { kept_.push_back(std::move(call)); }

  std::vector<std::function<void(CaptureSink*)>> kept_;
};

}  // namespace blktape
