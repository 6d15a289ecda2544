#include "format/process_dictionary.h"

#include "base/utf8.h"

namespace blktape {

uint32_t ProcessDictionary::IdOf(std::string_view name) {
  const std::string clean = ToUtf8(name.substr(0, kMaxNameBytes));
  const auto known = ids_.find(clean);
  if (known != ids_.end()) return known->second;
  if (names_.size() == kMaxNames) return kMaxNames - 1;
  const auto id = static_cast<uint32_t>(names_.size());
  names_.push_back(id == kMaxNames - 1 ? "(other)" : clean);
  ids_.emplace(names_.back(), id);
  return id;
}

}  // namespace blktape
