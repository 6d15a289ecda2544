#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace blktape {

// A page of figures: one shell, one chart component and one style for every report of blktape that
// is looked at. A report builds a Page out of what analysis found; PageHtml makes one file of it
// that needs no network, PageCsv the same tables for programs. Nothing is computed here but how a
// value is written. All text may be anybody's: it is data in the page, never markup.

// What a number is, hence how it is written. In the page's data and in CSV it stays the plain
// number.
enum class Unit {
  kText,
  kCount,           // 1,234,567
  kBytes,           // 4 KiB
  kDurationNs,      // 56.1 us
  kTimeNs,          // since the beginning of the trace; as time of day where Page.clock is known
  kShare,           // 0 to 1, written as 65.2 %
  kPerSecond,       // 1,234 /s
  kBytesPerSecond,  // 12.5 MiB/s
  kNumber,          // 2.37
  kCelsius,         // 41.5 °C
  kOneIn,           // of so many one is beyond: 1,000 is written p99.9
};

// monostate: not known, an empty cell and a gap in a line.
using Cell = std::variant<std::monostate, int64_t, uint64_t, double, std::string>;

struct Column {
  std::string key;    // in CSV and JSON: lower case, unit last ("d2c_p99_ns")
  std::string label;  // for people
  Unit unit = Unit::kText;
  std::vector<Cell> cells;
};

// Columns of equal length. `id` names the CSV file and must be unique in the page.
struct DataTable {
  std::string id;
  std::string caption;
  std::vector<Column> columns;
  size_t most_shown = 0;  // the page shows so many rows and says how many more there are; 0: all
  size_t rows() const { return columns.empty() ? 0 : columns.front().cells.size(); }
};

// How a table is drawn. Columns are named by their keys.
struct Chart {
  enum class Kind {
    kBars,   // one group of bars for each row, named by column `x`
    kLines,  // lines, areas or points over the numbers in `x`
    kMap,    // a rectangle for each row: [x, x + x_step) by [y, y_to), darker for a larger `value`
  };
  enum class Style { kLine, kDashed, kDotted, kArea, kStep, kPoints, kDashDot };
  struct Axis {
    std::string label;
    Unit unit = Unit::kCount;
    bool log = false;
    bool close = false;  // from the least to the largest value, not from 0 or by powers of ten
  };
  struct Series {
    std::string column;
    Style style = Style::kLine;
    int colour = 0;  // of the palette's kColours, then these again: 0 reads, 1 writes
    size_t panel = 0;
    // Both or none: columns with the ends of the interval that is drawn over the bar or point.
    std::string low = {}, high = {};
    // Lines: only rows [first_row, end_row) of the table; 0: all.
    size_t first_row = 0, end_row = 0;
    std::string label = {};  // instead of the column's
    int symbol = -1;         // from 0: a symbol at each point
    bool step = false;       // a value holds until the next, also of a dashed line
  };
  struct Mark {  // a moment, or a stretch of `x`; of bars a value
    double from = 0;
    double to = 0;
    std::string what;
  };

  Kind kind = Kind::kBars;
  std::string x;
  Axis x_axis = {};
  std::vector<Axis> panels =
      {};  // value axes, one above the other over one `x`; bars and maps have one
  std::vector<Series> series = {};
  bool stacked = false;               // bars
  bool horizontal = false;            // bars
  bool colour_by_row = false;         // bars of one series: each row has a colour of the palette
  std::vector<int> row_colours = {};  // likewise, these
  std::string valid = {};             // bars: of this column rows that say "no" look invalid
  bool values = false;                // horizontal bars: each says its value
  std::string note = {};              // and what this column has for it
  bool zoom = false;                  // lines and maps: a slider under the chart, and the keyboard
  std::vector<Mark> marks = {};       // lines, horizontal bars
  double x_end = 0;  // lines: where the last step ends; 0: it is as long as the first
  // Maps only; panels[0] is the axis of y.
  std::string y = {}, y_to = {}, value = {};
  double x_step = 0;
  size_t rows = 0;   // bars: only the first so many rows; 0: all
  int height = 260;  // of one panel, CSS pixels
};

inline constexpr int kColours = 6;

// How the subject of this number (a drive) looks in every chart of a page: alike by colour only
// after kColours, altogether only after 24.
Chart::Series SeriesOf(size_t subject, std::string column);

struct Figure {
  std::string id;  // unique in the page
  std::string title;
  std::string subtitle;  // what exactly is drawn, with units and bounds
  std::string alt;       // what one sees, in a sentence with figures
  std::string table;     // DataTable.id
  Chart chart;
  bool wide = false;  // the whole width; else two stand side by side where there is room
};

// A table that is not drawn. Those of figures are shown with them.
struct TableView {
  std::string table;  // DataTable.id
};

// Conditions and validity: a row a check, a column a subject (a trace, a drive).
struct Checklist {
  enum class State { kNone, kGood, kBad };
  struct Mark {
    State state = State::kNone;
    std::string text;
  };
  struct Row {
    std::string check;
    std::vector<Mark> marks;  // as many as there are subjects
  };
  std::string caption;
  std::vector<std::string> subjects;
  std::vector<Row> rows;
};

struct Paragraph {
  std::string text;
};

struct Section {
  std::string id;
  std::string heading;
  std::vector<std::variant<Figure, TableView, Checklist, Paragraph>> parts;
};

// A sentence to quote. Words of a trace or a disk are `foreign`: kept apart from the text around
// them whatever their direction of writing.
struct Sentence {
  struct Words {
    std::string text;
    bool strong = false;
    bool foreign = false;
  };
  std::vector<Words> words;
  bool bad = false;  // what makes the rest doubtful
};

struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Sentence> verdict = {};
  std::vector<DataTable> tables = {};
  std::vector<Section> sections = {};
  std::string footer = {};
  // Local time of day, in ns since the Unix epoch moved by the offset from UTC, at x = 0 of
  // kTimeNs. Absent (0): times are durations.
  int64_t clock_ns = 0;
};

// One self-contained HTML file: no request to anywhere, its tables readable without scripts.
std::string PageHtml(const Page& page);

// A file name ("timeline.csv") and its content for each table: RFC 4180, keys as the first line,
// numbers as they are, empty where not known.
std::vector<std::pair<std::string, std::string>> PageCsv(const Page& page);

// "1,234.5 /s" and the like: how the page writes a cell.
std::string CellText(const Cell& cell, Unit unit);

}  // namespace blktape
