#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// Timestamp,Response,IOType,LUN,Offset,Size under a header line: README of SNIA IOTTA 4928 (Fujitsu
// VDI, SYSTOR '17). Times in seconds, of the epoch and of issue; bytes. A row without an IOType had
// no response in the capture: what it did is not known.
ImportFormat SystorFormat() {
  return MakeColumnFormat(
      {.name = "systor17",
       .title = "SYSTOR '17 (Fujitsu VDI) CSV",
       .lacks = "processes, flags, discards and flushes",
       .columns = "issue:unix-s,latency:s,op,device,offset,size; "
                  "separator=comma; device=lun",
       .header_line = "Timestamp,Response,IOType,LUN,Offset,Size",
       .fits = [](const std::vector<std::string_view>& fields) { return fields.size() == 6; }});
}

}  // namespace blktape
