#pragma once

#include "capture/source/capture_source.h"

namespace blktape {

// Ignores all it is told; whoever listens to a part of it derives from it.
class IgnoringSink : public CaptureSink {
 public:
  void OnEvent(uint32_t /*stream*/, const BlockEvent& /*event*/) override {}
  void OnWatermark(int64_t /*ns*/) override {}
  void OnFinished(uint32_t /*stream*/, const IoRecord& /*record*/,
                  const ProcessComm& /*comm*/) override {}
  void OnQueuedSizes(Op /*op*/, uint64_t /*bytes*/, uint64_t /*count*/) override {}
  void OnFlaggedWrites(uint64_t /*count*/) override {}
  void OnProcessName(uint32_t /*pid*/, int64_t /*since_ns*/, const ProcessComm& /*comm*/) override {
  }
  void OnAnchor(const proto::ClockAnchor& /*anchor*/) override {}
  void OnLoss(const proto::Loss& /*loss*/) override {}
};

}  // namespace blktape
