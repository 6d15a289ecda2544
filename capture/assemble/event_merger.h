#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "base/ring_queue.h"
#include "capture/source/block_event.h"
#include "format/trace.pb.h"

namespace blktape {

struct EventMergerOptions {
  // The maximum number of held events; beyond it the oldest leave before the watermark reaches
  // them.
  size_t held_events = 262'144;
  // A timestamp that jumps by more than this is a stray one if its successor jumps back.
  int64_t stray_ns = 10'000'000'000;
};

// Merges streams that are each in order into one order by time. At equal times a queue event goes
// before an issue and an issue before a completion, whatever their streams. Memory: held_events.
//
// Events out of order are counted, and delivered if that does no harm:
// - an event older than its predecessor in the stream is a CLOCK_STEP. If one of the two has a
//   single stray timestamp, that event is left out; else the event is sorted in by its time;
// - an event older than one that has already left is MERGE_WINDOW_EXCEEDED and leaves next, with
//   its own time.
class EventMerger {
 public:
  class Output {
   public:
    virtual ~Output() = default;
    virtual void OnOrderedEvent(const BlockEvent& event) = 0;
    virtual void OnMergeLoss(const proto::Loss& loss) = 0;
  };

  // `output` must outlive the merger.
  EventMerger(Output* output, const EventMergerOptions& options)
      : output_(output), options_(options) {}

  void Add(uint32_t stream, const BlockEvent& event);
  // Delivers all events older than `ns`.
  void Release(int64_t ns);
  // Delivers all held events.
  void Finish();

  size_t held() const { return held_; }

 private:
  struct Stream {
    RingQueue<BlockEvent> events;  // times never decrease
    std::optional<int64_t> last_ns;
    int64_t before_last_ns = 0;
    // An event far older than its predecessor. Its successor shows whether it is stray or the first
    // after a clock step.
    std::optional<BlockEvent> suspect;
    bool stepped_back = false;  // already counted; the stream is late until it catches up
  };
  struct Disordered {
    BlockEvent event;
    uint64_t number;  // keeps events with equal times in the order in which they came
    bool operator<(const Disordered& other) const;
  };
  struct Head {
    int64_t time_ns;
    int rank;
    size_t stream;
    bool operator>(const Head& other) const;
  };

  Stream* Find(uint32_t stream);
  // Handles an event older than its predecessor. False: the event must not be sorted in now.
  bool StepBack(Stream* stream, const BlockEvent& event);
  void Place(Stream* stream, const BlockEvent& event);
  // Delivers events older than `ns`, in order, until at most `keep` are held.
  void Deliver(std::optional<int64_t> ns, size_t keep);
  void Emit(const BlockEvent& event);
  void Report(proto::LossReason reason, int64_t from_ns, const BlockEvent& event,
              const char* detail);

  Output* output_;
  EventMergerOptions options_;
  std::unordered_map<uint32_t, size_t> index_;  // index into streams_, by stream number
  std::vector<Stream> streams_;
  uint32_t found_stream_ = 0;  // result of the last Find, once there is a stream
  size_t found_index_ = 0;
  std::priority_queue<Disordered> disordered_;
  uint64_t disordered_count_ = 0;
  std::vector<Head> heads_;  // scratch of Deliver
  size_t held_ = 0;
  std::optional<int64_t> delivered_ns_;  // time of the newest event that has left
};

}  // namespace blktape
