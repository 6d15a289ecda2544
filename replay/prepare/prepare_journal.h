#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// What of a preparation is done, kept in a small file so that it can go on after a stop or a crash.
// Not thread-safe.
struct PrepareJournal {
  std::string target;  // what it belongs to: path, serial, size, state, span, trace, settings
  std::string phase;
  uint64_t done_bytes = 0;  // of that phase
  std::vector<double> rounds_iops = {};

  bool operator==(const PrepareJournal&) const = default;
};

// kNotFound: there is none. kDataLoss: the file is no journal.
Result<PrepareJournal> LoadPrepareJournal(const std::string& path);
// Replaces the file at once: after a crash it holds the old or the new content.
Status SavePrepareJournal(const std::string& path, const PrepareJournal& journal);

}  // namespace blktape
