#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// Which I/Os a recording keeps. Empty: all.
class RecordFilter {
 public:
  // "read", "write", "discard", ... one or several by commas.
  Status AddOps(std::string_view names);
  // "0-2047": first and last sector (512 bytes); "4096-": to the end. An I/O is kept if any sector
  // of it lies in any range.
  Status AddRange(std::string_view range);

  bool Keeps(const IoRecord& record) const;
  // Whether it may keep a record of frames with such contents.
  bool MayKeep(const proto::FrameContents& contents) const;
  bool empty() const { return ops_.empty() && ranges_.empty(); }
  // For Header.filters: "op=read,write", "lba=0-2047".
  std::vector<std::string> Words() const;

 private:
  struct Range {
    Lba first;
    Lba last;
    std::string text;
  };
  std::vector<Op> ops_;
  std::vector<Range> ranges_;
};

}  // namespace blktape
