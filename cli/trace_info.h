#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/loss_text.h"
#include "format/io_record.h"
#include "format/trace_reader.h"

namespace blktape {

// What a trace is, from reading all of it.
struct TraceInfo {
  std::string name;
  std::optional<uint64_t> file_bytes;  // absent: a pipe
  bool being_written = false;          // a recorder is at work on it now
  proto::Header header;
  std::optional<proto::Summary> summary;  // absent: not finished, or its end is damaged
  LossLog losses;
  uint64_t lost_events = 0;
  bool damaged = false;  // somewhere in the file, at the cost of no event

  uint64_t records = 0;
  uint64_t records_by_op[kOpCount] = {};
  uint64_t bytes_by_op[kOpCount] = {};
  std::optional<int64_t> first_ns;  // earliest and latest arrival
  std::optional<int64_t> last_ns;
  std::vector<proto::Mark> marks;  // the first thousand
  std::optional<proto::ClockAnchor> last_anchor;

  // Finished, with nothing missing that a recorder or this reader knows of, and every byte in
  // place.
  bool whole() const { return summary.has_value() && lost_events == 0 && !damaged; }
  std::optional<int64_t> duration_ns() const;
  // Of the first and the last moment, Unix epoch, by the clock anchors.
  std::optional<int64_t> begin_wall_ns() const;
  std::optional<int64_t> end_wall_ns() const;
};

// Reads the trace at `path` ("-": standard input) to its end; every checksum is verified.
Result<std::unique_ptr<TraceInfo>> ReadTraceInfo(const std::string& path);

}  // namespace blktape
