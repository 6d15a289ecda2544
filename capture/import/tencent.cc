#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// Timestamp,Offset,Size,IOType,VolumeID: README of SNIA IOTTA 27917 (Tencent CBS). Whole seconds of
// the epoch; offset and size in sectors of 512 bytes; 0 reads, 1 writes. That many I/Os share one
// second is how it was recorded: their times are kept as they are.
ImportFormat TencentFormat() {
  return MakeColumnFormat(
      {.name = "tencent",
       .title = "Tencent CBS CSV",
       .lacks = "fractions of a second, completions, processes, flags, discards and flushes",
       .columns = "issue:unix-s,lba,size:sectors,op:01,device; separator=comma; device=volume",
       .header_line = "Timestamp,Offset,Size,IOType,VolumeID",
       .header_may_lack = true,
       .fits = [](const std::vector<std::string_view>& fields) {
         const auto seconds = fields.empty() ? 0 : ParseUnsigned(fields[0]).value_or(0);
         return fields.size() == 5 && seconds > 1'000'000'000 && seconds < 5'000'000'000 &&
                ParseUnsigned(fields[1]) && ParseUnsigned(fields[2]) &&
                ParseUnsigned(fields[3]).value_or(9) <= 1 && ParseUnsigned(fields[4]);
       }});
}

}  // namespace blktape
