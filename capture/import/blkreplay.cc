#include <string_view>
#include <vector>

#include "capture/import/columns.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"

namespace blktape {

// A licence and other text, then a line "start ; sector; length ; op ; ...", then
// " secs.ns ; sector ; sectors ; R|W|RA ; replay delay ; replay duration". Text may also stand
// between the rows, where two files were joined.
ImportFormat BlkreplayFormat() {
  return MakeColumnFormat(
      {.name = "blkreplay",
       .title = "blkreplay .load",
       .lacks = "completions, processes, discards and flushes, the wall clock",
       .columns = "issue:s,lba,size:sectors,op; separator=semicolon; text=between",
       .header_line = "",
       .fits = [](const std::vector<std::string_view>& fields) {
         return fields.size() >= 6 && ParseDecimal(fields[0], 9) && ParseUnsigned(fields[1]) &&
                ParseUnsigned(fields[2]) && ParseOp(fields[3]) && ParseDecimal(fields[4], 9);
       }});
}

}  // namespace blktape
