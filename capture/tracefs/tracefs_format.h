#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace blktape {

// One "field:" line of a tracefs format text.
struct TracefsField {
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  bool is_signed = false;
};

// A parsed events/SYSTEM/NAME/format.
struct TracefsEventFormat {
  std::string name;
  uint32_t id = 0;
  struct Field {
    std::string name;
    TracefsField place;
  };
  std::vector<Field> fields;

  // Null if there is no such field.
  const TracefsField* Find(std::string_view field) const;
};

// kDataLoss if the text has no name, no ID or a malformed field.
Result<TracefsEventFormat> ParseTracefsEventFormat(std::string_view text);

// A parsed events/header_page: where a ring-buffer page stores its time, its length and its events.
struct TracefsPageLayout {
  TracefsField timestamp;
  TracefsField commit;
  TracefsField data;

  uint32_t page_bytes() const { return data.offset_bytes + data.size_bytes; }
};
Result<TracefsPageLayout> ParseTracefsHeaderPage(std::string_view text);

}  // namespace blktape
