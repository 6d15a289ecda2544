#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// "time pid process lba size W|R major minor [MD5 ...]", blank separated: README of SNIA IOTTA 391
// (FIU SRCMap and I/O deduplication). Time in ns of a clock of arbitrary origin; 512-byte sectors.
ImportFormat FiuFormat() {
  return MakeColumnFormat(
      {.name = "fiu",
       .title = "FIU (SRCMap, I/O deduplication) text",
       .lacks = "completions, flags, discards and flushes, the wall clock",
       .columns = "issue:ns,pid,process,lba,size:sectors,op,major,minor; separator=blank",
       .header_line = "",
       .fits = [](const std::vector<std::string_view>& fields) {
         return fields.size() >= 8 && ParseUnsigned(fields[0]) && ParseUnsigned(fields[1]) &&
                ParseUnsigned(fields[3]) && ParseUnsigned(fields[4]) &&
                (fields[5] == "W" || fields[5] == "R") && ParseUnsigned(fields[6]) &&
                ParseUnsigned(fields[7]);
       }});
}

}  // namespace blktape
