#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analysis/profile.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_reader.h"

namespace blktape {

// A profile made the plain way: one record after the other, each figure as its definition reads.
// What ProfileBuilder does with columns and on several threads has to yield the same. Use as that
// one.
class PlainProfile : public TraceObserver {
 public:
  explicit PlainProfile(const ProfileOptions& options = {});
  ~PlainProfile() override;

  void Expect(const proto::Summary& summary);
  void Add(const IoRecord& record);
  void OnLoss(const proto::Loss& loss) override;
  void OnMark(const proto::Mark& mark) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override;
  Profile Finish(const proto::Header& header, const std::optional<proto::Summary>& summary,
                 const std::function<std::string(uint32_t)>& process_name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace blktape
