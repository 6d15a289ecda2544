#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// ASU,LBA,Size,Opcode,Timestamp[,...]: "SPC Trace File Format Specification" 1.0.1. LBA in blocks
// of 512 bytes as in the UMass repository's files, size in bytes, time in seconds. Optional fields
// may follow, and differ from line to line.
ImportFormat SpcFormat() {
  return MakeColumnFormat(
      {.name = "spc",
       .title = "SPC trace (UMass Financial, WebSearch)",
       .lacks = "completions, processes, flags, discards and flushes, the wall clock",
       .columns = "device,lba,size,op,issue:s; separator=comma; device=asu",
       .header_line = "",
       .fits = [](const std::vector<std::string_view>& fields) {
         return fields.size() >= 5 && ParseUnsigned(fields[0]) && ParseUnsigned(fields[1]) &&
                ParseUnsigned(fields[2]) &&
                (Lower(Trim(fields[3])) == "r" || Lower(Trim(fields[3])) == "w") &&
                ParseDecimal(fields[4], 9) && ParseUnsigned(fields[4]).value_or(0) < 1'000'000'000;
       }});
}

}  // namespace blktape
