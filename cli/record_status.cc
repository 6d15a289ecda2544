#include "cli/record_status.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "base/byte_stream.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "base/quantity.h"
#include "base/units.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
constexpr char kPrefix[] = "record-";

// A whole file at once, or none: a reader never sees half of it.
void Replace(const std::string& path, const std::string& text) {
  const std::string next = path + ".next";
  unlink(next.c_str());
  Result<std::unique_ptr<ByteSink>> file = CreateFile(next);
  if (!file.ok() || !(*file)->Write(std::as_bytes(std::span(text))).ok()) return;
  if (rename(next.c_str(), path.c_str()) != 0) unlink(next.c_str());
}

Json ReadJson(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return Json();
  return ParseJson(*text);
}

// The file after its recorder has been asked to renew it.
Json Renewed(const std::string& path, pid_t pid, Json old) {
  if (kill(pid, SIGUSR1) != 0) return old;
  Clock* clock = Clock::Monotonic();
  const int64_t end_ns = clock->NowNs() + 2 * kNanosPerSecond;
  while (clock->NowNs() < end_ns) {
    clock->SleepUntilNs(clock->NowNs() + 20 * kNanosPerMilli);
    Json now = ReadJson(path);
    if (now.is_object() && now.value("updates", 0u) != old.value("updates", 0u)) return now;
  }
  return old;
}

}  // namespace

RecordStatusFile::RecordStatusFile(What what, std::string folder)
    : what_(std::move(what)), folder_(std::move(folder)) {
  mkdir(folder_.c_str(), 0755);
  path_ = folder_ + "/" + kPrefix + std::to_string(getpid()) + ".json";
}

RecordStatusFile::~RecordStatusFile() { unlink(path_.c_str()); }

void RecordStatusFile::Update(const LiveFigures& figures, const std::string& path) {
  Json json;
  json["pid"] = getpid();
  json["owner"] = OwnPidAndStart();
  json["updates"] = ++updates_;
  json["source"] = what_.source;
  json["devices"] = what_.devices;
  json["path"] = path;
  json["elapsed_ns"] = figures.elapsed_ns;
  json["ios"] = figures.ios;
  json["ios_per_s"] = figures.ios_per_s;
  json["queue_depth"] = figures.queue_depth;
  json["share_4k"] = figures.share_4k;
  json["lost_events"] = figures.lost_events;
  json["lost_events_is_lower_bound"] = figures.lost_events_is_lower_bound;
  json["own_excluded"] = figures.own_excluded;
  json["filtered"] = figures.filtered;
  json["file_bytes"] = figures.file_bytes;
  json["files_finished"] = figures.files_finished;
  json["buffer_bytes_per_cpu"] = figures.buffer_bytes_per_cpu;
  json["cpu_ns"] = figures.cpu_ns;
  json["paused"] = figures.paused;
  Replace(path_, JsonText(json) + "\n");
}

std::string FigureLine(const LiveFigures& figures, size_t columns) {
  const int64_t seconds = figures.elapsed_ns / kNanosPerSecond;
  // As they stand in the line, each with its rank: where there is no room those of the last go.
  const std::pair<int, std::string> parts[] = {
      {0, fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)},
      {1, FormatCounted(figures.ios, "I/O")},
      {3, FormatNumber(figures.ios_per_s) + "/s"},
      {5, "4K " + FormatNumber(figures.share_4k * 100) + " %"},
      {6, "depth " + FormatNumber(figures.queue_depth)},
      {2, "lost " + FormatCount(figures.lost_events)},
      {4, FormatBytes(figures.file_bytes)},
      {1, figures.paused ? "DISK FULL" : ""},
  };
  const auto line_of = [&parts](int last_rank) {
    std::string line;
    for (const auto& [rank, text] : parts) {
      if (rank > last_rank || text.empty()) continue;
      line += (line.empty() ? "" : "  ") + text;
    }
    return line;
  };
  int last_rank = 6;
  while (last_rank > 1 && line_of(last_rank).size() > columns) --last_rank;
  return line_of(last_rank);
}

Status PrintRecordings(bool json, const std::string& folder) {
  Json all = Json::array();
  bool hidden = false;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(kPrefix, 0) != 0 || it->path().extension() != ".json") continue;
    hidden = hidden || access(it->path().c_str(), R_OK) != 0;
    Json one = ReadJson(it->path().string());
    if (!one.is_object() || !ProcessLives(one.value("owner", ""))) continue;
    all.push_back(Renewed(it->path().string(), one.value("pid", 0), one));
  }
  if (all.empty() && hidden) {
    return Status(StatusCode::kPermissionDenied,
                  "no recording of yours runs, and those of others do not tell you\n"
                  "  try:  sudo blktape record --status");
  }
  if (all.empty()) return Status(StatusCode::kNotFound, "no recording runs");
  if (json) {
    std::printf("%s\n", JsonText(all).c_str());
    return OkStatus();
  }
  for (const Json& one : all) {
    LiveFigures figures;
    figures.elapsed_ns = one.value("elapsed_ns", int64_t{0});
    figures.ios = one.value("ios", uint64_t{0});
    figures.ios_per_s = one.value("ios_per_s", 0.0);
    figures.queue_depth = one.value("queue_depth", 0.0);
    figures.share_4k = one.value("share_4k", 0.0);
    figures.lost_events = one.value("lost_events", uint64_t{0});
    figures.file_bytes = one.value("file_bytes", uint64_t{0});
    figures.paused = one.value("paused", false);
    const auto cpu_ns = one.value("cpu_ns", int64_t{0});
    std::string devices;
    for (const Json& device : one["devices"]) {
      devices += (devices.empty() ? "" : ", ") + device.get<std::string>();
    }
    std::printf("process %d: %s by %s into %s\n  %s\n  CPU %s (%s %% of one core), %s left out\n",
                one.value("pid", 0), devices.c_str(), one.value("source", "").c_str(),
                one.value("path", "").c_str(), FigureLine(figures).c_str(),
                FormatDurationNs(cpu_ns).c_str(),
                FormatNumber(figures.elapsed_ns > 0 ? 100.0 * static_cast<double>(cpu_ns) /
                                                          static_cast<double>(figures.elapsed_ns)
                                                    : 0.0)
                    .c_str(),
                FormatCounted(one.value("own_excluded", uint64_t{0}), "own I/O").c_str());
  }
  return OkStatus();
}

}  // namespace blktape
