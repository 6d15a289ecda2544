#pragma once

#include <cstdint>
#include <optional>

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

}  // namespace blktape
