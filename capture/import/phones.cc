#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// Eight blank separated columns: README of the Nexus 5 smartphone traces (SDSU, BIOtracer). Start
// and size in sectors, size in bytes, flags (bit 0: writes), then when the request was made, taken
// by the driver, sent to the hardware, and finished, in seconds of the epoch.
ImportFormat Nexus5Format() {
  return MakeColumnFormat(
      {.name = "nexus5",
       .title = "Nexus 5 BIOtracer text",
       .lacks = "processes, flags, discards and flushes",
       .columns =
           "lba,-,size,op:bit0,queue:unix-s,-,issue:unix-s,complete:unix-s; separator=blank; "
           "device=mmcblk0",
       .header_line = "",
       .fits = [](const std::vector<std::string_view>& fields) {
         if (fields.size() != 8) return false;
         const auto sectors = ParseUnsigned(fields[1]);
         const auto bytes = ParseUnsigned(fields[2]);
         if (!ParseUnsigned(fields[0]) || !sectors || !bytes || *sectors * 512 != *bytes)
           return false;
         for (size_t i = 4; i < 8; ++i) {
           if (!ParseDecimal(fields[i], 9)) return false;
         }
         return ParseUnsigned(fields[3]).has_value();
       }});
}

// proces,device,rw_flag,sector,size,timestamp (so spelled) under a header line: README of the Pixel
// 6a traces (Technion). Sectors of 512 bytes; seconds, of the machine's start whatever the README
// says.
ImportFormat Pixel6aFormat() {
  return MakeColumnFormat(
      {.name = "pixel6a",
       .title = "Pixel 6a CSV",
       .lacks = "completions, flags, discards and flushes, the wall clock",
       .columns = "process,device,op,lba,size:sectors,issue:s; separator=comma; "
                  "device=dev",
       .header_line = "proces,device,rw_flag,sector,size,timestamp",
       .fits = [](const std::vector<std::string_view>& fields) { return fields.size() == 6; }});
}

}  // namespace blktape
