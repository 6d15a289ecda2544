#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"

namespace blktape {

// How the columns of a table are to be read. Most formats of rows are one of these, and --columns
// is one that a person writes.
struct ColumnLayout {
  enum class Kind : uint8_t {
    kIgnore,
    kQueue,     // when it reached the block layer
    kIssue,     // when it went to the drive
    kComplete,  // when it was done
    kLatency,   // complete - issue (of a row with a queue time alone: complete - queue)
    kOp,
    kOffset,
    kSize,
    kDevice,  // several are joined by "_"
    kMajor,
    kMinor,
    kProcess,
    kPid,
    kCpu,
    kError,
  };
  struct Column {
    Kind kind = Kind::kIgnore;
    int decimals = 0;         // of times: 9 for seconds, 0 for ns
    uint64_t factor = 1;      // times, after scaling: ns each; offset and size: bytes each
    int64_t epoch_ticks = 0;  // subtracted first: 1601 to 1970 in ticks
    bool wall_clock = false;
    // Of op: a word, 0 = read 1 = write, 1 = read 0 = write, or bit 0 set = write.
    enum class Ops : uint8_t { kWord, kOneWrites, kOneReads, kBitWrites } ops = Ops::kWord;
  };

  std::vector<Column> columns;
  char separator = 0;  // 0: the one that the first lines show
  char decimal = '.';
  uint64_t skip_lines = 0;
  // Lines of which the first column is no number are text between rows, and not counted.
  bool text_between = false;
  std::string device = "disk";  // the only one, or what stands before a name that is a number
};

// "time:us,op,offset,size" and the like; the help of `import` explains the words. Fails with
// kInvalidArgument, naming the word that is wrong.
Result<ColumnLayout> ParseColumns(std::string_view text);

// The words of --columns, for its help.
extern const char* const kColumnsHelp;

std::unique_ptr<RowImporter> MakeColumnImporter(const ColumnLayout& layout);

// A format that is a layout. `fits` is asked of the fields of each whole line of the head, after
// `header` lines; the format is recognised if it holds for all of them and there is one. Absent
// `header_line`: there is none; else the first line must equal it, or begin with it.
struct ColumnFormat {
  std::string name;
  std::string title;
  std::string lacks;
  std::string columns;  // as ParseColumns takes it
  std::string header_line;
  bool header_may_lack = false;
  std::function<bool(const std::vector<std::string_view>& fields)> fits;
};
ImportFormat MakeColumnFormat(const ColumnFormat& format);

}  // namespace blktape
