#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

namespace {

bool Fits(const std::vector<std::string_view>& fields) {
  return fields.size() == 5 && ParseDecimal(fields[0], 9) && ParseUnsigned(fields[1]) &&
         ParseUnsigned(fields[2]) && ParseUnsigned(fields[3]) &&
         ParseUnsigned(fields[4]).value_or(9) <= 1;
}

}  // namespace

// "time device block sectors flags", blank separated, of DiskSim 4's manual ("ASCII" traces): ms
// with a fraction; 512-byte sectors; 1 reads, 0 writes.
ImportFormat DiskSimFormat() {
  return MakeColumnFormat(
      {.name = "disksim",
       .title = "DiskSim ASCII trace",
       .lacks = "completions, processes, flags, discards and flushes, the wall clock",
       .columns = "issue:ms,device,lba,size:sectors,op:10; separator=blank; device=disk",
       .header_line = "",
       .fits = [](const std::vector<std::string_view>& fields) {
         return Fits(fields) && fields[0].find('.') != std::string_view::npos;
       }});
}

// The same columns with times in whole ns: MQSim (Time_Unit NANOSECOND) and SSDSim.
ImportFormat MqsimFormat() {
  return MakeColumnFormat(
      {.name = "mqsim",
       .title = "MQSim or SSDSim ASCII trace (ns)",
       .lacks = "completions, processes, flags, discards and flushes, the wall clock",
       .columns = "issue:ns,device,lba,size:sectors,op:10; separator=blank; device=disk",
       .header_line = "",
       .fits = [](const std::vector<std::string_view>& fields) {
         return Fits(fields) && ParseUnsigned(fields[0]).has_value();
       }});
}

}  // namespace blktape
