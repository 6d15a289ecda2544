#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// ID,Timestamp,Type,Offset,Length: README of SNIA IOTTA 26930 (Fujitsu K5). Seconds since the first
// I/O of all logs, with a fraction; bytes.
ImportFormat K5cloudFormat() {
  return MakeColumnFormat(
      {.name = "k5cloud",
       .title = "Fujitsu K5 cloud CSV",
       .lacks = "completions, processes, flags, discards and flushes, the wall clock",
       .columns = "device,issue:s,op,offset,size; separator=comma; device=volume",
       .header_line = "ID,Timestamp,Type,Offset,Length",
       .header_may_lack = true,
       .fits = [](const std::vector<std::string_view>& fields) {
         return fields.size() == 5 && ParseUnsigned(fields[0]) && ParseDecimal(fields[1], 9) &&
                (fields[2] == "R" || fields[2] == "W") && ParseUnsigned(fields[3]) &&
                ParseUnsigned(fields[4]);
       }});
}

}  // namespace blktape
