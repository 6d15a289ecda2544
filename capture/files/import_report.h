#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blktape {

// What became of the rows of an import.
struct ImportReport {
  // One reason, how many rows, and where the first of them are: "line 17", "offset 4096", with the
  // file's name where there are several files.
  struct Entry {
    std::string what;
    uint64_t count = 0;
    std::vector<std::string> places;
  };

  uint64_t rows = 0;    // rows or events that were taken
  uint64_t sorted = 0;  // rows that came later than one that arrived after them
  std::vector<Entry> dropped;
  std::vector<Entry> repaired;
};

// One more of `what` at `place`; the first three places are kept.
void Count(std::vector<ImportReport::Entry>* entries, std::string what, std::string place);

// "a size that is no number (line 3, line 7, line 9, ...)".
std::string EntryText(const ImportReport::Entry& entry);

}  // namespace blktape
