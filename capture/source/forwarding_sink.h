#pragma once

#include "capture/source/capture_source.h"

namespace blktape {

// Forwards every call to the next sink. A class between a decoder and a session derives from it and
// overrides the calls that it changes. One thread.
class ForwardingSink : public CaptureSink {
 public:
  // `next` must outlive this sink.
  explicit ForwardingSink(CaptureSink* next) : next_(next) {}

  void OnEvent(uint32_t stream, const BlockEvent& event) override { next_->OnEvent(stream, event); }
  void OnWatermark(int64_t ns) override { next_->OnWatermark(ns); }
  void OnFinished(uint32_t stream, const IoRecord& record, const ProcessComm& comm) override {
    next_->OnFinished(stream, record, comm);
  }
  void OnQueuedSizes(Op op, uint64_t bytes, uint64_t count) override {
    next_->OnQueuedSizes(op, bytes, count);
  }
  void OnFlaggedWrites(uint64_t count) override { next_->OnFlaggedWrites(count); }
  void OnProcessName(uint32_t pid, int64_t since_ns, const ProcessComm& comm) override {
    next_->OnProcessName(pid, since_ns, comm);
  }
  void OnAnchor(const proto::ClockAnchor& anchor) override { next_->OnAnchor(anchor); }
  void OnLoss(const proto::Loss& loss) override { next_->OnLoss(loss); }

 protected:
  CaptureSink& next() { return *next_; }

 private:
  CaptureSink* next_;
};

}  // namespace blktape
