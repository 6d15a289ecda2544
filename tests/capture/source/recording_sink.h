#pragma once

#include <utility>
#include <vector>

#include "capture/source/capture_source.h"

namespace blktape {

// Keeps all a source or decoder delivers.
class RecordingSink : public CaptureSink {
 public:
  struct Delivered {
    uint32_t stream;
    BlockEvent event;
  };

  void OnEvent(uint32_t stream, const BlockEvent& event) override {
    events.push_back({stream, event});
  }
  void OnWatermark(int64_t ns) override { watermarks.push_back(ns); }
  void OnFinished(uint32_t /*stream*/, const IoRecord& record,
                  const ProcessComm& /*comm*/) override {
    finished.push_back(record);
  }
  void OnQueuedSizes(Op /*op*/, uint64_t /*bytes*/, uint64_t count) override { queued += count; }
  void OnFlaggedWrites(uint64_t count) override { flagged += count; }
  void OnProcessName(uint32_t pid, int64_t /*since_ns*/, const ProcessComm& comm) override {
    names.emplace_back(pid, comm);
  }
  void OnAnchor(const proto::ClockAnchor& anchor) override { anchors.push_back(anchor); }
  void OnLoss(const proto::Loss& loss) override { losses.push_back(loss); }

  std::vector<Delivered> events;
  std::vector<int64_t> watermarks;
  std::vector<IoRecord> finished;
  uint64_t queued = 0;
  uint64_t flagged = 0;
  std::vector<std::pair<uint32_t, ProcessComm>> names;
  std::vector<proto::ClockAnchor> anchors;
  std::vector<proto::Loss> losses;
};

}  // namespace blktape
