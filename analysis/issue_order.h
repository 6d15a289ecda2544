#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "analysis/depth_meter.h"
#include "analysis/interval_union.h"
#include "analysis/profile.h"
#include "analysis/profile_batch.h"
#include "analysis/reorder_run.h"

namespace blktape {

// The figures of a profile that depend on the order in which I/Os were issued: what is sequential,
// busy time, idle gaps, depth. One thread at a time.
class IssueOrder {
 public:
  // What a batch tells of what left in order of issue meanwhile: with `addresses` those of data
  // requests, with `all` every I/O and the busy times that ended.
  IssueOrder(bool addresses, bool all) : list_addresses_(addresses), list_all_(all) {}
  void Add(ProfileBatch* batch);
  // All that is left, as if a batch without records came: before MoveInto.
  void End(ProfileBatch* last);
  // Call once, last; profile->observed_ns is known.
  void MoveInto(Profile* profile);

 private:
  struct Place {  // where the data request before ended
    uint64_t end_bytes = 0;
    bool known = false;
  };
  struct Device {
    Place any, read, write;
  };

  void AddLeft(std::span<const ProfiledIo> left, ProfileBatch* batch);
  void AddAddresses(std::span<const ProfiledIo> left);
  void AddBusy(std::span<const ProfiledIo> left, ProfileBatch* batch);

  const bool list_addresses_;
  const bool list_all_;
  int64_t watermark_ns_ = std::numeric_limits<int64_t>::min();
  // As the first record tells. A result is in the order of its plan; in a closed loop I/Os are
  // issued in another one, so none leaves before there are too many.
  std::optional<bool> result_;
  ReorderRun<ProfiledIo> in_order_;
  DepthMeter depth_;
  UnionMeasure data_busy_;
  IntervalUnion all_busy_;
  uint32_t last_device_ = 0;  // of the data request before, if there is one
  std::vector<Device> devices_;
  uint64_t sequential_any_ = 0;
  uint64_t sequential_device_ = 0;
  uint64_t sequential_direction_ = 0;
  uint64_t sequential_reads_ = 0;
  decltype(Profile::idle) idle_{};
};

}  // namespace blktape
