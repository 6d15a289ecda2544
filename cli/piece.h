#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capture/session/record_filter.h"
#include "cli/command.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_reader.h"

namespace blktape {

// What a user types to name a part of a trace; the same for every verb.
struct PieceFlags {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  std::vector<std::string> devices;
  std::vector<std::string> processes;
  std::vector<std::string> ops;
  std::vector<std::string> ranges;
  std::string sizes;

  // Adds --from, --to, --device, --process, --op, --lba and --size; must outlive `flags`.
  void Declare(Flags* flags);
};

// A part of a trace. Reading it is thread-safe.
class Piece {
 public:
  // kInvalidArgument where a word makes no sense, or the piece ends before it begins.
  static Result<Piece> Of(const PieceFlags& typed, const Flags& flags);

  // Of the trace's devices those to keep. Call once, before Keeps. kInvalidArgument if it has none
  // of a name.
  Status ChooseDevices(const proto::Header& header);
  bool KeepsDevice(uint32_t device) const { return devices_[device]; }
  // By device, operation, address and size alone.
  bool Keeps(const IoRecord& record) const {
    return KeepsDevice(record.device) && filter_.Keeps(record) && record.bytes >= least_bytes_ &&
           record.bytes <= most_bytes_;
  }
  // `name` is "" for an I/O of which nobody knows.
  bool KeepsProcess(std::string_view name) const;
  // Whether frames with such contents may hold a record that it keeps, by all but time: for
  // TraceReader::SkipFramesUnless. Null: of all frames. Call after ChooseDevices.
  std::function<bool(const proto::FrameContents&)> FramesToRead(const TraceReader& reader) const;

  // Counted from the first arrival; absent: no bound.
  const std::optional<int64_t>& from_ns() const { return from_ns_; }
  const std::optional<int64_t>& to_ns() const { return to_ns_; }
  const std::vector<std::string>& processes() const { return processes_; }
  // Whether anything but time chooses.
  bool has_filters() const { return !filters_.empty(); }
  // For Header.filters: "op=write", "device=sda", without and with "from 1h".
  const std::vector<std::string>& filters() const { return filters_; }
  std::vector<std::string> Words() const;

 private:
  std::optional<int64_t> from_ns_, to_ns_;
  std::vector<std::string> device_names_, processes_;
  std::vector<bool> devices_;
  RecordFilter filter_;
  uint64_t least_bytes_ = 0;
  uint64_t most_bytes_ = UINT64_MAX;
  std::vector<std::string> filters_;
};

}  // namespace blktape
