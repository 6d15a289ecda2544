#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// Where each frame of a trace begins, in bounded memory: when there are too many, every second
// entry goes, and from then on only every second frame is noted.
class FrameIndexBuilder {
 public:
  static constexpr size_t kMaxEntries = 8'192;

  // Frames in the order they are written; one without records that have a time is not noted.
  void Add(uint64_t offset_bytes, std::optional<int64_t> first_ns, uint64_t first_record);
  void Store(proto::Summary* summary) const;

 private:
  struct Entry {
    uint64_t offset_bytes;
    int64_t first_ns;
    uint64_t first_record;
  };
  std::vector<Entry> entries_;
  uint64_t stride_ = 1;
  uint64_t seen_ = 0;
};

// The entry to begin at so that no record with an arrival of `arrival_ns` or later is missed,
// though records may stand out of order. Null if there is no index, or nothing tells how far they
// do.
const proto::FrameIndex* FindFrame(const proto::Summary& summary, int64_t arrival_ns);

}  // namespace blktape
