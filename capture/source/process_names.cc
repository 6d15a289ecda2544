#include "capture/source/process_names.h"

#include <utility>

namespace blktape {

ProcessNames::Names* ProcessNames::NamesOf(uint32_t pid) {
  const auto young = young_.find(pid);
  if (young != young_.end()) return &young->second;
  Names names;
  if (const auto old = old_.find(pid); old != old_.end()) names = std::move(old->second);
  if (young_.size() >= kept_) old_ = std::exchange(young_, {});
  return &young_.emplace(pid, std::move(names)).first->second;
}

void ProcessNames::Learn(uint32_t pid, int64_t since_ns, const ProcessComm& comm) {
  Names* names = NamesOf(pid);
  // Told again, because another process had taken its place among the known ones.
  if (!names->empty() && names->back().comm == comm) return;
  if (names->size() >= kPerProcess) names->erase(names->begin());
  names->push_back({.since_ns = since_ns, .comm = comm});
}

ProcessComm ProcessNames::Find(uint32_t pid, int64_t at_ns) {
  // Once per I/O: of those seen lately one look is enough.
  const auto young = young_.find(pid);
  if (young == young_.end() && old_.count(pid) == 0) return {};
  const Names& names = young != young_.end() ? young->second : *NamesOf(pid);
  auto name = names.end() - 1;
  while (name != names.begin() && name->since_ns > at_ns) --name;
  return name->comm;
}

}  // namespace blktape
