#include "capture/import/row_importer.h"

#include <algorithm>

namespace blktape {

void LineImporter::One(std::string_view line, RowSink* sink) {
  if (in_long_line_) {
    in_long_line_ = false;
    return;
  }
  ++number_;
  sink->At(number_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  Line(line, sink);
  number_ += static_cast<uint64_t>(std::ranges::count(line, '\n'));
}

size_t LineImporter::Decode(std::string_view bytes, bool at_end, RowSink* sink) {
  size_t done = 0;
  while (true) {
    const size_t end = LineEnd(bytes, done, at_end);
    if (end == std::string_view::npos) break;
    One(bytes.substr(done, end - done), sink);
    done = end + 1;
  }
  if (at_end) {
    if (done < bytes.size()) One(bytes.substr(done), sink);
    End(sink);
    return bytes.size();
  }
  if (bytes.size() - done >= kLongestRow) {
    if (!in_long_line_) {
      ++number_;
      sink->At(number_);
      sink->Dropped("a line of more than 1 MiB");
      in_long_line_ = true;
    }
    return bytes.size();
  }
  return done;
}

}  // namespace blktape
