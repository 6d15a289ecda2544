#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"

namespace blktape {

// What the verbs that measure do with their results: they are kept in the store (docs/results.md).

struct KeepFlags {
  std::string db;
  bool no_db = false;
  bool traces = false;  // also the result traces
};

// --db and --no-db; of verbs with result traces also --keep-traces.
void DeclareKeepFlags(Flags* flags, KeepFlags* options, bool has_traces);
// Before anything is measured: kInvalidArgument where flags contradict one another; a store that
// was named must be one.
Status CheckKeepFlags(const KeepFlags& options);

struct ResultToKeep {
  std::string name;  // another one where it is taken: name-2, ...
  std::string json;
  // Folders whose result traces belong to it; each with the prefix that their names get.
  struct Traces {
    std::string folder, prefix;
  };
  std::vector<Traces> traces = {};
};

// Puts them into the store and says where on stderr. What is there byte by byte stays. Where the
// default store cannot be used this warns, as the result is elsewhere too; with --db it fails.
Status KeepResults(const KeepFlags& options, const std::vector<ResultToKeep>& results);

}  // namespace blktape
