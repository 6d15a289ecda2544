#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "capture/source/block_event.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// Receives what an importer finds in one file, in file order. One thread.
class RowSink {
 public:
  virtual ~RowSink() = default;

  // Where the importer stands: the line, counted from 1, or the byte offset of a binary format.
  // What follows is said of this place.
  virtual void At(uint64_t place) = 0;

  // The number of the device of this name, for IoRecord.device. The same name has the same number
  // in all files that are read together.
  virtual uint32_t Device(std::string_view name) = 0;
  // What the input tells of it; good until the next call of Device().
  virtual proto::Device* Describe(uint32_t device) = 0;

  // One I/O. `record.process` and `ordinal` are absent; `process` is the name, empty where unknown.
  // Rows may come out of order, within a bound.
  virtual void Row(const IoRecord& record, std::string_view process) = 0;
  // Of an I/O of which begin and end are told apart: the record without its completion, and an id
  // that its End names, maybe in another file of the same recording. An id may be used again.
  virtual void Begin(uint64_t id, const IoRecord& record, std::string_view process) = 0;
  virtual void End(uint64_t id, int64_t complete_ns, uint32_t error) = 0;
  // One event of an input that tells the steps of an I/O apart. They are paired as a recording's.
  // An importer delivers rows or events, never both.
  virtual void Event(const BlockEvent& event) = 0;
  // The two clocks at one moment.
  virtual void Anchor(const proto::ClockAnchor& anchor) = 0;
  // Events that the input itself says are missing.
  virtual void Lost(proto::LossReason reason, uint64_t count, const char* detail) = 0;

  // The row at this place says nothing that can be kept, and why: "no size". Counted by reason.
  virtual void Dropped(const char* reason) = 0;
  // The row was changed to be kept, and how: "address rounded down to a sector".
  virtual void Repaired(const char* what) = 0;
};

// Makes I/Os of the bytes of one file. Not thread-safe. Memory does not grow with the file, but
// for what the importer's own comment names.
class RowImporter {
 public:
  virtual ~RowImporter() = default;

  // Decodes from `bytes`, which begin where the call before stopped, and returns how many it has
  // done with. `at_end`: no more follow; then it is done with all. If it takes none although not at
  // the end it is called again with more, up to kLongestRow bytes.
  virtual size_t Decode(std::string_view bytes, bool at_end, RowSink* sink) = 0;

  // Asked at the end: why what was read is no input of this format after all. Ok: it is.
  virtual Status Verdict() const { return OkStatus(); }
};

// A line or binary row longer than this is dropped.
inline constexpr size_t kLongestRow = size_t{1} << 20;

// An importer of text, a line at a time.
class LineImporter : public RowImporter {
 public:
  size_t Decode(std::string_view bytes, bool at_end, RowSink* sink) final;

 protected:
  // A line without its end ("\n" or "\r\n"), and without the byte order mark of the first. Called
  // for empty lines too.
  virtual void Line(std::string_view line, RowSink* sink) = 0;
  // Where the line that begins at `begin` ends: the place of its "\n"; npos if it is not in
  // `bytes`. For formats whose rows may hold line ends.
  virtual size_t LineEnd(std::string_view bytes, size_t begin, bool /*at_end*/) const {
    return bytes.find('\n', begin);
  }
  // After the last line.
  virtual void End(RowSink* /*sink*/) {}
  uint64_t line_number() const { return number_; }

 private:
  void One(std::string_view line, RowSink* sink);

  uint64_t number_ = 0;
  bool in_long_line_ = false;  // the rest of a line that was dropped
};

}  // namespace blktape
