#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "format/trace_piece.h"
#include "format/trace_reader.h"
#include "replay/plan/record_stream.h"

namespace blktape {

struct TraceStreamOptions {
  // Only what arrived in [from, to) after the trace's first arrival.
  std::optional<int64_t> from_ns = {};
  std::optional<int64_t> to_ns = {};
  // The piece is delivered so many times; each pass begins where the one before ended (its last
  // arrival or completion), so times never go back. 0: for ever.
  uint64_t loops = 1;
};

// The records of a trace file. Holds one frame of it.
class TraceStream : public RecordStream {
 public:
  // kInvalidArgument: a pipe, or "-"; or the piece begins beyond the end of the trace, which Next()
  // says of a trace without a summary.
  static Result<std::unique_ptr<TraceStream>> Open(const std::string& path,
                                                   const TraceStreamOptions& options);

  Result<bool> Next(IoRecord* record, uint64_t* ordinal) override;
  std::string_view ProcessName(uint32_t id) const override { return reader_->ProcessName(id); }
  const proto::Header& header() const override { return reader_->header(); }
  std::optional<uint64_t> records() const override;
  std::optional<int64_t> span_ns() const override;
  std::optional<uint64_t> data_bytes() const override;
  std::optional<uint64_t> mean_data_bytes() const override;

  const std::optional<proto::Summary>& summary() const { return reader_->summary(); }
  // Whether this is the whole trace, once: then the summary's totals are this stream's.
  bool whole() const { return !options_.from_ns && !options_.to_ns && options_.loops == 1; }
  // Of the pass that met the most of them: the last one may have stopped before the damage.
  uint64_t lost_events() const override { return std::max(lost_before_, reader_->lost_events()); }

 private:
  TraceStream(std::string path, const TraceStreamOptions& options)
      : path_(std::move(path)), options_(options) {}
  Status Rewind();
  Status CheckBegin() const;
  bool Inside(int64_t at_ns) const;
  bool EndsAt(int64_t at_ns) const;
  Result<bool> NextOfPass(IoRecord* record, uint64_t* ordinal);

  const std::string path_;
  const TraceStreamOptions options_;
  std::unique_ptr<TraceReader> reader_;
  uint64_t next_ordinal_ = 0;
  bool inside_ = true;         // the last record of a time was of the piece
  uint64_t last_ordinal_ = 0;  // of what was delivered
  // Behind it nothing of the piece follows, as the first pass has found.
  std::optional<uint64_t> piece_end_;
  uint64_t passes_done_ = 0;
  uint64_t lost_before_ = 0;  // in an earlier pass
  uint64_t delivered_in_pass_ = 0;
  ArrivalSpan met_;                        // of every record read
  std::optional<int64_t> trace_first_ns_;  // of the whole trace
  std::optional<int64_t> first_ns_;        // of the piece
  int64_t last_ns_ = 0;                    // the piece's last arrival or completion
  int64_t shift_ns_ = 0;                   // of this pass
};

}  // namespace blktape
