#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/run_costs.h"
#include "analysis/score.h"
#include "analysis/segments.h"
#include "base/status.h"
#include "bench/piece.h"
#include "replay/plan/kept_blocks.h"
#include "replay/plan/record_stream.h"

namespace blktape {

// Between two windows that are replayed one after the other.
inline constexpr int64_t kWindowGapNs = 100 * kNanosPerMilli;
inline constexpr uint64_t kForegroundPerWindow = 100;  // about

// A piece of a trace cut finely, for a sample to be drawn from: `fine` has a segment for each
// window and `segment_of` says which segment of the score holds it.
struct WindowCut {
  Segmentation fine;
  std::vector<size_t> segment_of;
};

// Cuts each segment into windows of as equal a number of foreground I/Os as can be.
Result<WindowCut> CutWindows(const TracePiece& piece, const Segmentation& segmentation,
                             const std::atomic<bool>& stop);

// Records [first, end) are replayed: windows that follow each other, and the lead-in before them,
// which counts nowhere.
struct WindowBlock {
  uint64_t first_ordinal = 0;
  uint64_t end_ordinal = 0;
};

struct Sample {
  SampleDesign design;
  std::vector<size_t> windows;      // that were drawn, ascending, by index
  std::vector<WindowBlock> blocks;  // with lead-ins; ascending, none touches the next
  int64_t expected_ns = 0;          // how long a cycle takes on the drive that was measured
  uint64_t foreground = 0;          // I/Os that count
};

// What both runs of a cycle cost a drive, window by window.
struct WindowRuns {
  RunCosts waited;
  RunCosts max;
};

// Draws windows whose cycle takes about `budget_ns` on the first of `drives`. The windows of each
// segment are sorted by the largest share of the segment's wait or work that they have on any of
// the drives, and cut into strata of equal sums of these shares, as many as the budget allows; of
// each two are drawn. `seed` alone decides the draw. Absent: all windows fit, so that no sample is
// needed. kInvalidArgument: the budget is too small, the message names the least.
Result<std::optional<Sample>> DrawSample(const WindowCut& cut, std::span<const WindowRuns> drives,
                                         int64_t budget_ns, uint64_t seed);

// What discards among the records of `blocks` leave out where these are replayed again and again:
// two passes. Null: there is no discard. kCancelled when `stop` becomes true.
Result<std::shared_ptr<const KeptBlocks>> FindKeptBlocks(const TracePiece& piece,
                                                         const std::vector<WindowBlock>& blocks,
                                                         const std::atomic<bool>& stop);

// The records of the blocks, each block moved so that it begins kWindowGapNs after all before it
// had arrived and completed. Of `device` alone, where there is one.
Result<std::unique_ptr<RecordStream>> OpenSample(const TracePiece& piece,
                                                 const std::vector<WindowBlock>& blocks);

// What such a replay is cut into: the windows, and the counts of all it replays.
Result<Segmentation> CutSample(const TracePiece& piece, const WindowCut& cut, const Sample& sample,
                               const std::atomic<bool>& stop);

}  // namespace blktape
