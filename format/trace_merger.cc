#include "format/trace_merger.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/saturating.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/partial_file.h"
#include "format/trace.pb.h"
#include "format/trace_copier.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

// Times of a trace may have any value: wraps instead of overflowing.
int64_t Sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

int64_t Difference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// Linux gives no pid from here on (PID_MAX_LIMIT, include/linux/threads.h).
constexpr uint32_t kPidsInARange = uint32_t{1} << 22;

// Gives each number that a machine's traces have (of a range of pids, of a machine within a trace
// that was merged itself) one of its own: 0 the machine's, and further ones what is free behind
// these.
class OwnNumbers {
 public:
  explicit OwnNumbers(uint32_t machines) : machines_(machines), next_(machines) {}
  uint32_t Of(uint32_t machine, uint32_t number) {
    if (machines_ == 1) return number;
    if (number == 0) return machine;
    const auto [known, added] = further_.try_emplace({machine, number}, next_);
    next_ += added;
    return known->second;
  }

 private:
  const uint32_t machines_;
  uint32_t next_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> further_;
};

// Of the first record; absent if there is none or it has no time.
Result<std::optional<int64_t>> FirstRecordArrival(const std::string& path) {
  // A pipe has no beginning that could be read twice.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status(StatusCode::kInvalidArgument,
                  path +
                      ": is no file, and --clock start reads the beginning of each trace twice\n"
                      "  try:  a file, or --clock wall or same");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path));
  IoRecord record;
  ASSIGN_OR_RETURN(const bool any, reader->Next(&record));
  return any ? record.arrival_ns() : std::optional<int64_t>();
}

// One trace, a record ahead.
class Source : public TraceObserver {
 public:
  Status Open(const std::string& path) {
    ASSIGN_OR_RETURN(reader_, TraceReader::Open(path, this));
    return OkStatus();
  }
  const proto::Header& header() const { return reader_->header(); }
  TraceReader* reader() { return reader_.get(); }
  bool has_record() const { return has_record_; }
  // Its place among all: where no time is known, where it stands.
  int64_t place_ns() const { return place_ns_; }
  // Where the ranges of pids that it has are in the merged trace.
  const std::map<uint32_t, uint32_t>& ranges() const { return ranges_; }
  uint64_t unknown_messages() const { return unknown_messages_; }
  uint64_t unknown_columns() const { return unknown_columns_; }

  // Reads the first record; what stands before it is written at once, so that nothing is held.
  Status Begin(TraceWriter* writer, std::vector<uint32_t> devices, int64_t shift_ns,
               uint32_t machine, OwnNumbers* all_ranges) {
    writer_ = writer;
    devices_ = std::move(devices);
    shift_ns_ = shift_ns;
    machine_ = machine;
    all_ranges_ = all_ranges;
    RETURN_IF_ERROR(Read());
    Place();
    return status_;
  }

  Status WriteAndReadOn(MergeReport* report) {
    IoRecord record = record_;
    record.device = devices_[record.device];
    for (std::optional<int64_t>* const time :
         {&record.queue_ns, &record.issue_ns, &record.complete_ns}) {
      if (*time) *time = Sum(**time, shift_ns_);
    }
    if (record.pid) record.pid = MovedPid(*record.pid);
    if (record.process) record.process = ProcessId(*record.process);
    RETURN_IF_ERROR(writer_->Write(record));
    ++report->records;
    const int64_t before_ns = place_ns_;
    RETURN_IF_ERROR(Read());
    Place();
    if (place_ns_ < before_ns) ++report->late;
    return status_;
  }

 private:
  Status Read() {
    ASSIGN_OR_RETURN(has_record_, reader_->Next(&record_));
    return OkStatus();
  }
  void Place() {
    const std::optional<int64_t> ns = has_record_ ? record_.arrival_ns() : std::nullopt;
    if (ns) place_ns_ = Sum(*ns, shift_ns_);
  }
  uint32_t MovedPid(uint32_t pid) {
    const uint32_t range = pid / kPidsInARange;
    auto known = ranges_.find(range);
    if (known == ranges_.end()) {
      known = ranges_.emplace(range, all_ranges_->Of(machine_, range)).first;
    }
    return known->second * kPidsInARange + pid % kPidsInARange;
  }
  std::optional<uint32_t> ProcessId(uint32_t id) {
    const auto known = process_ids_.find(id);
    if (known != process_ids_.end()) return known->second;
    const std::string_view name = reader_->ProcessName(id);
    if (name.empty()) return std::nullopt;
    return process_ids_.emplace(id, writer_->ProcessId(name)).first->second;
  }
  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  void OnLoss(const proto::Loss& loss) override {
    if (IsHarmlessDamage(loss)) return;
    proto::Loss moved = loss;
    if (loss.has_from_ns()) moved.set_from_ns(Sum(loss.from_ns(), shift_ns_));
    if (loss.has_to_ns()) moved.set_to_ns(Sum(loss.to_ns(), shift_ns_));
    if (loss.has_device() && loss.device() < devices_.size()) {
      moved.set_device(devices_[loss.device()]);
    }
    Keep(writer_->WriteLoss(moved));
  }
  void OnMark(const proto::Mark& mark) override {
    proto::Mark moved = mark;
    moved.set_at_ns(Sum(mark.at_ns(), shift_ns_));
    Keep(writer_->WriteMark(moved));
  }
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override {
    for (const proto::QueuedSizes::Entry& entry : sizes.entries()) {
      writer_->CountQueued(static_cast<Op>(entry.op()), entry.bytes(), entry.count());
    }
    writer_->CountQueued(Op::kFlush, 0, sizes.flushes_asked());
    writer_->CountFlaggedWrites(sizes.flagged_writes());
  }
  // Not copied: its times, devices and ids may be those of its own trace.
  void OnUnknown(const proto::Message& /*message*/) override { ++unknown_messages_; }
  void OnUnknownColumns() override { ++unknown_columns_; }

  std::unique_ptr<TraceReader> reader_;
  TraceWriter* writer_ = nullptr;
  std::vector<uint32_t> devices_;  // place in the merged header
  int64_t shift_ns_ = 0;
  uint32_t machine_ = 0;
  OwnNumbers* all_ranges_ = nullptr;
  std::map<uint32_t, uint32_t> ranges_;
  IoRecord record_;
  bool has_record_ = false;
  int64_t place_ns_ = INT64_MIN;
  Status status_;
  uint64_t unknown_messages_ = 0;
  uint64_t unknown_columns_ = 0;
  std::unordered_map<uint32_t, uint32_t> process_ids_;
};

// The same disk of the same machine, as far as two traces tell.
bool SameDisk(const proto::Device& a, const proto::Device& b) {
  return a.name() == b.name() && a.major() == b.major() && a.minor() == b.minor() &&
         a.model() == b.model() && a.size_bytes() == b.size_bytes();
}

// Of what Header.process_names says of two traces, what is true of both together.
std::string MoreTelling(const std::string& a, const std::string& b) {
  for (const char* names : {"recorded", "hashed", "none"}) {
    if (a == names || b == names) return a == names ? a : b;
  }
  return a;
}

// The first source whose machine has the name of this one's.
size_t FirstOfHost(const std::vector<std::unique_ptr<Source>>& sources, size_t source) {
  size_t first = 0;
  while (sources[first]->header().host() != sources[source]->header().host()) ++first;
  return first;
}

}  // namespace

Result<MergeReport> MergeTraces(const std::vector<std::string>& from_paths,
                                const std::string& to_path, MergeClock clock,
                                const TraceWriterOptions& options) {
  MergeReport report;
  std::vector<std::unique_ptr<Source>> sources;
  for (const std::string& path : from_paths) {
    sources.push_back(std::make_unique<Source>());
    RETURN_IF_ERROR(sources.back()->Open(path));
  }
  std::vector<uint32_t> machine_of;
  uint32_t machines = 0;
  std::optional<int64_t> first_start_ns;
  const proto::Header& first = sources.front()->header();
  for (size_t i = 0; i < sources.size(); ++i) {
    const proto::Header& header = sources[i]->header();
    if (header.has_replay()) {
      return Status(StatusCode::kInvalidArgument,
                    from_paths[i] +
                        ": is the result of a replay, of one trace by one rule\n"
                        "  try:  merge the recordings, and replay that");
    }
    int64_t shift_ns = 0;
    if (clock == MergeClock::kWall) {
      if (!header.has_start() || !first.has_start()) {
        return Status(StatusCode::kFailedPrecondition,
                      from_paths[header.has_start() ? 0 : i] +
                          ": does not know the wall clock\n"
                          "  try:  --clock same, if all were recorded on one machine without a "
                          "restart of it between them,\n        or --clock start, which makes the "
                          "first I/Os coincide");
      }
      const int64_t own_ns = Difference(header.start().wall_ns(), header.start().monotonic_ns());
      const int64_t first_ns = Difference(first.start().wall_ns(), first.start().monotonic_ns());
      shift_ns = Difference(own_ns, first_ns);
    } else if (clock == MergeClock::kStart) {
      ASSIGN_OR_RETURN(const std::optional<int64_t> own_ns, FirstRecordArrival(from_paths[i]));
      if (i == 0) first_start_ns = own_ns;
      if (own_ns && first_start_ns) shift_ns = Difference(*first_start_ns, *own_ns);
    }
    report.shifts_ns.push_back(shift_ns);
    const size_t same = clock == MergeClock::kWall    ? FirstOfHost(sources, i)
                        : clock == MergeClock::kStart ? i
                                                      : 0;
    machine_of.push_back(same < i ? machine_of[same] : machines++);
  }

  proto::Header merged = first;
  merged.set_source("merge");
  std::vector<std::vector<uint32_t>> devices(sources.size());
  merged.clear_devices();
  // Of each merged device: whose it is, by the first source of its host, and what it was there.
  std::vector<std::pair<size_t, const proto::Device*>> origins;
  OwnNumbers machine_numbers(machines);
  for (size_t i = 0; i < sources.size(); ++i) {
    const proto::Header& header = sources[i]->header();
    const size_t host = FirstOfHost(sources, i);
    const size_t of_others = origins.size();
    for (const proto::Device& device : header.devices()) {
      const auto others = std::span(origins).first(of_others);
      const auto same = std::ranges::find_if(others, [&](const auto& origin) {
        return origin.first == host && SameDisk(*origin.second, device);
      });
      devices[i].push_back(static_cast<uint32_t>(same - others.begin()));
      if (same != others.end()) continue;
      devices[i].back() = static_cast<uint32_t>(origins.size());
      origins.emplace_back(host, &device);
      const bool named =
          std::any_of(merged.devices().begin(), merged.devices().end(),
                      [&](const auto& other) { return other.name() == device.name(); });
      proto::Device* const added = merged.add_devices();
      *added = device;
      added->set_machine(machine_numbers.Of(machine_of[i], device.machine()));
      if (named) {
        added->set_name(device.name() + "." + std::to_string(i + 1));
        report.renamed.push_back(device.name() + " of " + from_paths[i] + " is " + added->name());
      }
    }
    if (i == 0) continue;
    merged.set_process_names(MoreTelling(merged.process_names(), header.process_names()));
    for (const std::string& filter : header.filters()) merged.add_filters(filter);
    if (host == i && !header.host().empty()) {
      merged.set_host(merged.host() + (merged.host().empty() ? "" : ", ") + header.host());
    }
  }

  ASSIGN_OR_RETURN(const std::unique_ptr<TraceWriter> writer,
                   TraceWriter::Create(to_path, merged, options));
  OwnNumbers pid_ranges(machines);
  for (size_t i = 0; i < sources.size(); ++i) {
    RETURN_IF_ERROR(sources[i]->Begin(writer.get(), devices[i], report.shifts_ns[i], machine_of[i],
                                      &pid_ranges));
  }
  // There are few traces, so a linear search is fast enough.
  while (true) {
    Source* earliest = nullptr;
    for (const std::unique_ptr<Source>& source : sources) {
      if (!source->has_record()) continue;
      if (earliest == nullptr || source->place_ns() < earliest->place_ns()) earliest = source.get();
    }
    if (earliest == nullptr) break;
    RETURN_IF_ERROR(earliest->WriteAndReadOn(&report));
  }
  proto::Summary extra;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->unknown_columns() > 0) {
      std::remove(PartialPath(to_path).c_str());
      return UnknownColumns(from_paths[i], sources[i]->header());
    }
    report.lost_events = SaturatingAdd(report.lost_events, sources[i]->reader()->lost_events());
    report.unknown_messages += sources[i]->unknown_messages();
    for (const auto& [from, to] : sources[i]->ranges()) {
      if (from == to) continue;
      report.pid_moves.push_back({.trace = i,
                                  .first = from * kPidsInARange,
                                  .by = (int64_t{to} - int64_t{from}) * int64_t{kPidsInARange}});
    }
    const auto& summary = sources[i]->reader()->summary();
    if (!summary || summary->recovered() || sources[i]->unknown_messages() > 0) {
      extra.set_recovered(true);
    }
    if (!summary) continue;
    extra.set_own_excluded(SaturatingAdd(extra.own_excluded(), summary->own_excluded()));
    extra.set_own_excluded_bytes(
        SaturatingAdd(extra.own_excluded_bytes(), summary->own_excluded_bytes()));
    extra.set_filtered(SaturatingAdd(extra.filtered(), summary->filtered()));
  }
  RETURN_IF_ERROR(writer->Finish(extra));
  return report;
}

}  // namespace blktape
