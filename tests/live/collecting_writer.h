#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/trace.pb.h"
#include "format/trace_writer.h"

namespace blktape {

// Keeps what a capture pipeline writes, for tests to look at.
class CollectingWriter : public TraceWriter {
 public:
  uint32_t ProcessId(std::string_view name) override {
    for (size_t i = 0; i < processes.size(); ++i) {
      if (processes[i] == name) return static_cast<uint32_t>(i);
    }
    processes.emplace_back(name);
    return static_cast<uint32_t>(processes.size() - 1);
  }
  Status Write(const IoRecord& record) override {
    ios.push_back(record);
    return OkStatus();
  }
  Status WriteLoss(const proto::Loss& loss) override {
    losses.push_back(loss);
    tally.Add(loss);
    return OkStatus();
  }
  Status WriteAnchor(const proto::ClockAnchor& anchor) override {
    anchors.push_back(anchor);
    return OkStatus();
  }
  Status WriteMark(const proto::Mark& mark) override {
    marks.push_back(mark);
    return OkStatus();
  }
  void CountQueued(Op op, uint64_t bytes, uint64_t count) override { queued[{op, bytes}] += count; }
  void CountFlaggedWrites(uint64_t count) override { flagged_writes += count; }
  Status FlushFrame(bool /*sync*/) override { return OkStatus(); }
  Status Finish(const proto::Summary& /*extra*/) override { return OkStatus(); }
  const LossTally& loss_tally() const override { return tally; }
  uint64_t records() const override { return ios.size(); }
  bool in_order() const override { return true; }
  uint64_t bytes_written() const override { return 0; }

  // Those queued by `pid`.
  std::vector<IoRecord> Of(uint32_t pid) const {
    std::vector<IoRecord> mine;
    for (const IoRecord& io : ios) {
      if (io.pid == pid) mine.push_back(io);
    }
    return mine;
  }
  uint64_t LossCount(proto::LossReason reason) const {
    uint64_t total = 0;
    for (const proto::Loss& loss : losses) {
      if (loss.reason() == reason) total += loss.count();
    }
    return total;
  }

  std::vector<std::string> processes;
  std::vector<IoRecord> ios;
  std::vector<proto::Loss> losses;
  LossTally tally;
  std::vector<proto::ClockAnchor> anchors;
  std::vector<proto::Mark> marks;
  std::map<std::pair<Op, uint64_t>, uint64_t> queued;
  uint64_t flagged_writes = 0;
};

}  // namespace blktape
