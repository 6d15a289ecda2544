#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// device_id,opcode,offset,length,timestamp: README of alibaba/block-traces (2020). Bytes;
// microseconds of the epoch, when the server received it.
ImportFormat AlibabaFormat() {
  return MakeColumnFormat(
      {.name = "alibaba",
       .title = "Alibaba block traces (2020) CSV",
       .lacks = "completions, processes, flags, discards and flushes",
       .columns = "device,op,offset,size,issue:unix-us; separator=comma; device=volume",
       .header_line = "device_id,opcode,offset,length,timestamp",
       .header_may_lack = true,
       .fits = [](const std::vector<std::string_view>& fields) {
         return fields.size() == 5 && ParseUnsigned(fields[0]) &&
                (fields[1] == "R" || fields[1] == "W") && ParseUnsigned(fields[2]) &&
                ParseUnsigned(fields[3]) &&
                ParseUnsigned(fields[4]).value_or(0) > 100'000'000'000'000;
       }});
}

}  // namespace blktape
