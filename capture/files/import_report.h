#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blktape {

// How the rows of an import were handled.
struct ImportReport {
  // One reason, the number of rows, and the places of the first ones: "line 17", "offset 4096",
  // with the file's name if there are several files.
  struct Entry {
    std::string what;
    uint64_t count = 0;
    std::vector<std::string> places;
  };

  uint64_t rows = 0;    // rows or events that were imported
  uint64_t sorted = 0;  // rows that came after a row with a later arrival
  std::vector<Entry> dropped;
  std::vector<Entry> repaired;
};

// Counts one more `what` at `place`; the first three places are kept.
void Count(std::vector<ImportReport::Entry>* entries, std::string what, std::string place);

// "a size that is no number (line 3, line 7, line 9, ...)".
std::string EntryText(const ImportReport::Entry& entry);

}  // namespace blktape
