#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// The set of processes in proto::FrameContents: may have more than were added, never fewer.
class ProcessBits {
 public:
  static constexpr uint32_t kBits = 512;

  void Add(uint32_t process) { words_[process % kBits / 64] |= uint64_t{1} << process % 64; }
  void Unite(const ProcessBits& other);
  // As FrameContents.processes.
  std::string Bytes() const;
  // Whether the sets may share a process.
  bool Meets(std::string_view bytes) const;

 private:
  std::array<uint64_t, kBits / 64> words_{};
};

// Collects what proto::FrameContents says of some frames.
class FrameContents {
 public:
  void Add(const IoRecord& record);
  // Messages of these kinds.
  void AddQueuedSizes() { queued_sizes_ = true; }
  void AddAnchor() { anchors_ = true; }
  // Anything that no reader may miss.
  void AddOther() { others_ = true; }

  // Also those of `other`.
  void Unite(const FrameContents& other);
  void Store(proto::FrameContents* contents) const;

 private:
  static constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

  ProcessBits processes_;
  uint32_t ops_ = 0;
  uint32_t ops_without_address_ = 0;
  uint64_t devices_ = 0;
  uint64_t begin_lba_ = kMax;
  uint64_t end_lba_ = 0;
  uint64_t least_bytes_ = kMax;
  uint64_t most_bytes_ = 0;
  bool without_process_ = false;
  bool queued_sizes_ = false;
  bool anchors_ = false;
  bool others_ = false;
};

// Records where each frame of a trace begins and what it holds, in bounded memory: when there are
// too many entries, every second one is united with the one before it, and from then on only every
// second frame gets an entry.
class FrameIndexBuilder {
 public:
  static constexpr size_t kMaxEntries = 4'096;

  // Call for each frame in the order written. A frame without records that have a time gets no
  // entry; the one before it covers what it holds.
  void Add(uint64_t offset_bytes, std::optional<int64_t> first_ns, uint64_t first_record,
           const FrameContents& contents);
  void Store(proto::Summary* summary) const;

 private:
  struct Entry {
    uint64_t offset_bytes;
    int64_t first_ns;
    uint64_t first_record;
    FrameContents contents;
  };
  std::vector<Entry> entries_;
  uint64_t stride_ = 1;
  uint64_t seen_ = 0;
};

// The entry to start reading at so that no record with an arrival of `arrival_ns` or later is
// missed, even if records are out of order. Null if there is no index, or if the summary does not
// say how far records are out of order.
const proto::FrameIndex* FindFrame(const proto::Summary& summary, int64_t arrival_ns);

// Which frames a reader passes over.
struct FrameChoice {
  // Whether frames with such contents may hold anything that is wanted.
  std::function<bool(const proto::FrameContents&)> wanted;
  // Frames that may hold a record with an arrival of this or later are not skipped.
  int64_t before_ns = std::numeric_limits<int64_t>::max();
};

// A run of frames that holds nothing wanted.
struct FrameSkip {
  uint64_t from_bytes = 0;  // in the file
  uint64_t to_bytes = 0;
  uint64_t to_record = 0;  // the number of the first record behind it
};

// The frames to skip from `offset_bytes` on; none where no entry begins there or the first of them
// is wanted. `summary_bytes` is where the summary's frame lies. Never a frame of which the summary
// does not tell, or that holds what no reader may miss.
std::optional<FrameSkip> FindSkip(const proto::Summary& summary, uint64_t summary_bytes,
                                  const FrameChoice& choice, uint64_t offset_bytes);

}  // namespace blktape
