#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capture/import/row_importer.h"

namespace blktape {

// A format of rows or events, for one file at a time.
struct ImportFormat {
  std::string name;     // of --format and of Header.source: "fio-iolog"
  std::string title;    // what a person calls it, in one line
  std::string lacks;    // what it does not tell, in one line: "completions, processes"
  bool binary = false;  // places are byte offsets, not lines
  // Whether `head`, the first 64 KiB of a file (all of a shorter one, with a line end), is of this
  // format. Strict: what two formats take for their own is refused as ambiguous.
  std::function<bool(std::string_view head)> looks_like;
  std::function<std::unique_ptr<RowImporter>()> make;
};

// All of them, in the order of the help. A further format is one more line in import_formats.cc.
const std::vector<ImportFormat>& ImportFormats();

// Each is defined in a file of its own.
ImportFormat FioIologFormat();
ImportFormat BlkparseFormat();
ImportFormat EventTextFormat();
ImportFormat BiosnoopFormat();
ImportFormat MsrFormat();
ImportFormat SpcFormat();
ImportFormat XperfFormat();
ImportFormat WpaFormat();
ImportFormat OctfFormat();
ImportFormat BlkreplayFormat();
ImportFormat VscsiFormat();
ImportFormat FiuFormat();
ImportFormat SystorFormat();
ImportFormat AlibabaFormat();
ImportFormat TencentFormat();
ImportFormat K5cloudFormat();
ImportFormat MqsimFormat();
ImportFormat DiskSimFormat();
ImportFormat Nexus5Format();
ImportFormat Pixel6aFormat();
ImportFormat BlktapeCsvFormat();
ImportFormat JsonLinesFormat();

}  // namespace blktape
