#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capture/source/block_event.h"
#include "capture/source/capture_source.h"
#include "capture/tracefs/tracefs_format.h"

namespace blktape {

// The offsets of the fields that we read from one block_* event, as reported by the kernel that
// wrote the page.
struct FtraceEventLayout {
  BlockAction action = BlockAction::kQueue;
  TracefsField pid;  // common_pid
  TracefsField dev;
  TracefsField sector;
  TracefsField rwbs;
  std::optional<TracefsField> nr_sector;  // block_split has none
  std::optional<TracefsField> bytes;      // block_rq_issue and others; exact also for passthrough
  std::optional<TracefsField> error;
  std::optional<TracefsField> comm;
  std::optional<TracefsField> new_sector;  // block_split
  std::optional<TracefsField> old_dev;     // block_bio_remap, block_rq_remap
  std::optional<TracefsField> old_sector;
  uint32_t min_bytes = 0;  // a shorter event lacks some field
};

// The layouts of the events that a recording enables, and of their pages. Immutable once built;
// shared by all decoders of a recording.
class FtraceFormats {
 public:
  // `header_page` is the text of events/header_page.
  static Result<FtraceFormats> Create(std::string_view header_page);

  // `format` is the text of events/block/NAME/format. kUnimplemented for an event that this decoder
  // does not know, kDataLoss if the text lacks required fields.
  Status AddEvent(std::string_view format);

  const TracefsPageLayout& page() const { return page_; }
  // `format` is the text of events/ftrace/print/format, the event of writes to trace_marker. The
  // text written becomes the process name of the thread that wrote it.
  Status AddMarker(std::string_view format);

  // Null for an event id that was not added.
  const FtraceEventLayout* Find(uint32_t id) const;
  struct Marker {
    uint32_t id = 0;
    TracefsField pid;
    uint32_t text_offset = 0;
  };
  const std::optional<Marker>& marker() const { return marker_; }

 private:
  TracefsPageLayout page_;
  std::optional<Marker> marker_;
  // Sorted by id; at most a dozen.
  std::vector<std::pair<uint32_t, FtraceEventLayout>> events_;
};

// The names of the events that a recording enables: "block_bio_queue", "block_rq_issue", ... Events
// that a kernel lacks may be left out, except block_rq_issue and block_rq_complete.
std::span<const std::string_view> FtraceBlockEvents();

// Decodes the ring-buffer pages of one CPU, as read from per_cpu/cpuN/trace_pipe_raw, in the order
// read. Pure: bytes in, events out. The pages must have this machine's byte order. Memory:
// constant.
class FtracePageDecoder {
 public:
  // `formats` must outlive the decoder. Events are delivered with stream number `cpu`.
  FtracePageDecoder(const FtraceFormats* formats, uint32_t cpu) : formats_(formats), cpu_(cpu) {}

  // Decodes one page, complete or cut after its used part. Events that the kernel lost before this
  // page become a RING_OVERRUN (with the count, if the kernel stored it), invalid bytes become a
  // DAMAGED_INPUT, and events with an unknown id become an UNDECODABLE_EVENT.
  void DecodePage(std::span<const std::byte> page, CaptureSink* sink);

  // The time of the newest event so far; absent before the first.
  std::optional<int64_t> last_ns() const { return last_ns_; }
  uint64_t events() const { return events_; }
  // The sum of the counts of all RING_OVERRUN losses reported.
  uint64_t lost() const { return lost_; }

 private:
  bool DecodeEvent(std::span<const std::byte> payload, int64_t time_ns, CaptureSink* sink);
  void ReportMissed(std::span<const std::byte> page, uint64_t commit, int64_t page_ns,
                    CaptureSink* sink);
  void ReportDamage(const char* what, CaptureSink* sink) const;

  const FtraceFormats* formats_;
  uint32_t cpu_;
  std::optional<int64_t> last_ns_;
  uint64_t events_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace blktape
