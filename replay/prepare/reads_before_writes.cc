#include "replay/prepare/reads_before_writes.h"

namespace blktape {

void ReadsBeforeWrites::Add(Op op, uint64_t offset_bytes, uint64_t bytes) {
  if (bytes == 0 || op == Op::kFlush) return;
  constexpr uint64_t kBlock = BlockSet::kBlockBytes;
  const uint64_t end_bytes = offset_bytes + bytes;
  if (op != Op::kRead) {
    const uint64_t first_whole = (offset_bytes + kBlock - 1) / kBlock;
    const uint64_t end_whole = end_bytes / kBlock;
    if (first_whole < end_whole) settled_.Insert(first_whole, end_whole);
    return;
  }
  const uint64_t end = (end_bytes + kBlock - 1) / kBlock;
  for (uint64_t block = offset_bytes / kBlock; block < end; ++block) {
    if (settled_.Contains(block)) continue;
    needed_.Insert(block, block + 1);
    settled_.Insert(block, block + 1);
  }
}

}  // namespace blktape
