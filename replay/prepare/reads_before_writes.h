#pragma once

#include <cstdint>

#include "format/io_record.h"
#include "replay/prepare/block_set.h"

namespace blktape {

// Collects the blocks that a plan reads before it writes or discards them. A fresh drive must hold
// data in these blocks, so that the replay never reads unwritten ones. A block that is written only
// in part counts as not written.
class ReadsBeforeWrites {
 public:
  void Add(Op op, uint64_t offset_bytes, uint64_t bytes);
  const BlockSet& blocks() const { return needed_; }

 private:
  BlockSet settled_;  // written, discarded, or already needed
  BlockSet needed_;
};

}  // namespace blktape
