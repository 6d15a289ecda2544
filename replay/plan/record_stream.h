#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// What a plan is made of: records in order of arrival, from a trace or from a generator. Not
// thread-safe.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  // Fills `record` and `ordinal` (its index in the source, from 0) and returns true; false at the
  // end.
  virtual Result<bool> Next(IoRecord* record, uint64_t* ordinal) = 0;
  // The name of a process id met so far; empty if unknown.
  virtual std::string_view ProcessName(uint32_t /*id*/) const { return {}; }
  // Devices that IoRecord.device may name.
  virtual const proto::Header& header() const = 0;
  // How many records Next() will deliver and what time they span at most, where that is known.
  virtual std::optional<uint64_t> records() const { return std::nullopt; }
  virtual std::optional<int64_t> span_ns() const { return std::nullopt; }
  // How many bytes those records read and write at most, likewise.
  virtual std::optional<uint64_t> data_bytes() const { return std::nullopt; }
  // How many bytes its reads and writes have on the average, where that is known.
  virtual std::optional<uint64_t> mean_data_bytes() const { return std::nullopt; }
  // Events the source is known to lack, stored losses and damage alike, as far as met: all of them
  // once Next() returned false.
  virtual uint64_t lost_events() const { return 0; }
};

// Calls `take(record, ordinal)` for each record left in `stream`. kCancelled when `stop` becomes
// true.
template <typename Take>
Status ForEachRecord(RecordStream* stream, const std::atomic<bool>& stop, Take&& take) {
  IoRecord record;
  uint64_t ordinal = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, stream->Next(&record, &ordinal));
    if (!more) return OkStatus();
    if (stop.load(std::memory_order_relaxed)) return Status(StatusCode::kCancelled, "stopped");
    take(record, ordinal);
  }
}

}  // namespace blktape
