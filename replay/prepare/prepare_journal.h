#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace blktape {

// The progress of a preparation, kept in a small file so that it can be resumed after a stop or a
// crash. Not thread-safe.
struct PrepareJournal {
  std::string target;  // identifies the preparation: path, serial, size, state, span, trace,
                       // settings
  std::string phase;
  uint64_t done_bytes = 0;  // in that phase
  std::vector<double> rounds_iops = {};

  bool operator==(const PrepareJournal&) const = default;
};

// kNotFound: there is no file. kDataLoss: the file is not a journal.
Result<PrepareJournal> LoadPrepareJournal(const std::string& path);
// Replaces the file atomically: after a crash it has the old content or the new one.
Status SavePrepareJournal(const std::string& path, const PrepareJournal& journal);

}  // namespace blktape
