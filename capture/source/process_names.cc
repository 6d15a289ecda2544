#include "capture/source/process_names.h"

#include <utility>

namespace blktape {

void ProcessNames::Learn(uint32_t pid, const ProcessComm& comm) {
  if (young_.size() >= kept_ && young_.count(pid) == 0) {
    old_ = std::exchange(young_, {});
  }
  young_[pid] = comm;
}

ProcessComm ProcessNames::Find(uint32_t pid) {
  const auto young = young_.find(pid);
  if (young != young_.end()) return young->second;
  const auto old = old_.find(pid);
  if (old == old_.end()) return {};
  const ProcessComm comm = old->second;
  Learn(pid, comm);
  return comm;
}

}  // namespace blktape
