#pragma once

#include <cstdint>

#include "format/io_record.h"
#include "replay/prepare/block_set.h"

namespace blktape {

// Collects the blocks that a plan reads before it wrote (or discarded) them: what a fresh drive has
// to hold so that no read is answered from nothing. A block written only in part counts as not
// written.
class ReadsBeforeWrites {
 public:
  void Add(Op op, uint64_t offset_bytes, uint64_t bytes);
  const BlockSet& blocks() const { return needed_; }

 private:
  BlockSet settled_;  // written, discarded, or already needed
  BlockSet needed_;
};

}  // namespace blktape
