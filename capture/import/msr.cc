#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime: README of the distribution (SNIA
// IOTTA 388). Timestamp and ResponseTime in ticks of 100 ns, the former since 1601; bytes. The
// distribution has no header line, copies of it do.
ImportFormat MsrFormat() {
  return MakeColumnFormat(
      {.name = "msr",
       .title = "MSR Cambridge CSV",
       .lacks = "processes, flags, discards and flushes",
       .columns = "issue:filetime,device,device,op,offset,size,latency:100ns; separator=comma",
       .header_line = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
       .header_may_lack = true,
       .fits = [](const std::vector<std::string_view>& fields) {
         return fields.size() == 7 &&
                ParseUnsigned(fields[0]).value_or(0) > 100'000'000'000'000'000 &&
                ParseUnsigned(fields[2]) &&
                (Lower(fields[3]) == "read" || Lower(fields[3]) == "write") &&
                ParseUnsigned(fields[4]) && ParseUnsigned(fields[5]) && ParseUnsigned(fields[6]);
       }});
}

}  // namespace blktape
