#include "cli/kept_results.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/clock.h"
#include "bench/results_store.h"
#include "cli/print.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNames = 10'000;

Result<ResultsStore::Added> AddByFreeName(ResultsStore* store, const ResultToKeep& result) {
  const std::string name = ResultNameOf(result.name);
  for (int number = 1;; ++number) {
    const std::string tried = number == 1 ? name : name + "-" + std::to_string(number);
    ASSIGN_OR_RETURN(NewResult made, MakeResult(tried, result.json));
    Result<std::vector<ResultsStore::Added>> added = store->Add({std::move(made)}, WallNowNs());
    if (added.ok()) return added->front();
    if (added.status().code() != StatusCode::kAlreadyExists || number == kMostNames) {
      return added.status();
    }
  }
}

// A second name of the file where that is possible, else a copy.
Status KeepTraces(const ResultToKeep& result, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), folder);
  fs::permissions(folder, fs::perms::owner_all, error);
  for (const ResultToKeep::Traces& traces : result.traces) {
    for (const auto& entry : fs::directory_iterator(traces.folder, error)) {
      if (entry.path().extension() != ".tape") continue;
      const fs::path kept = fs::path(folder) / (traces.prefix + entry.path().filename().string());
      fs::create_hard_link(entry.path(), kept, error);
      if (error && error != std::errc::file_exists) {
        error.clear();
        fs::copy_file(entry.path(), kept, error);
      }
      if (error && error != std::errc::file_exists)
        return ErrnoStatus(error.value(), kept.string());
      error.clear();
    }
    if (error) return ErrnoStatus(error.value(), traces.folder);
  }
  return OkStatus();
}

Status Keep(const KeepFlags& options, const std::vector<ResultToKeep>& results) {
  std::string path = options.db;
  if (path.empty()) {
    ASSIGN_OR_RETURN(path, DefaultResultsPath());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ResultsStore> store, ResultsStore::OpenOrCreate(path));
  for (const ResultToKeep& result : results) {
    ASSIGN_OR_RETURN(const ResultsStore::Added added, AddByFreeName(store.get(), result));
    const std::string id = std::to_string(added.row.id);
    if (options.traces) RETURN_IF_ERROR(KeepTraces(result, store->TracesFolder(added.row.id)));
    Print(stderr, (added.was_there ? "kept before as result " : "kept as result ") + id + ", " +
                      added.row.name + ", in " + path + "\n");
  }
  return OkStatus();
}

}  // namespace

void DeclareKeepFlags(Flags* flags, KeepFlags* options, bool has_traces) {
  flags->Text("--db", &options->db,
              "Keep the result in this file (default ~/.local/share/blktape/results.db, or below "
              "XDG_DATA_HOME; `blktape results` shows it)",
              "FILE");
  flags->Switch("--no-db", &options->no_db, "Do not keep the result there");
  if (has_traces) {
    flags->Switch("--keep-traces", &options->traces, "Keep the result traces there, too");
  }
}

Status CheckKeepFlags(const KeepFlags& options) {
  if (options.no_db && (!options.db.empty() || options.traces)) {
    return Status(StatusCode::kInvalidArgument, "--no-db goes with neither --db nor --keep-traces");
  }
  if (options.db.empty()) return OkStatus();
  return ResultsStore::OpenOrCreate(options.db).status();
}

Status KeepResults(const KeepFlags& options, const std::vector<ResultToKeep>& results) {
  if (options.no_db || results.empty()) return OkStatus();
  Status kept = Keep(options, results);
  if (kept.ok() || !options.db.empty() || options.traces) return kept;
  Print(stderr, "warning: the result is not kept for `blktape results`: " + kept.message() + "\n");
  return OkStatus();
}

}  // namespace blktape
