#include "capture/files/import_report.h"

#include <utility>

namespace blktape {

void Count(std::vector<ImportReport::Entry>* entries, std::string what, std::string place) {
  constexpr size_t kPlaces = 3;
  for (ImportReport::Entry& entry : *entries) {
    if (entry.what != what) continue;
    ++entry.count;
    if (entry.places.size() < kPlaces) entry.places.push_back(std::move(place));
    return;
  }
  entries->push_back({std::move(what), 1, {std::move(place)}});
}

std::string EntryText(const ImportReport::Entry& entry) {
  std::string text = entry.what + " (";
  for (size_t i = 0; i < entry.places.size(); ++i) text += (i > 0 ? ", " : "") + entry.places[i];
  return text + (entry.count > entry.places.size() ? ", ...)" : ")");
}

}  // namespace blktape
