#include "analysis/profile.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

#include "analysis/arrival_order.h"
#include "analysis/batch_lanes.h"
#include "analysis/issue_order.h"
#include "analysis/plausible.h"
#include "analysis/profile_batch.h"
#include "analysis/profile_counts.h"
#include "base/saturating.h"
#include "base/units.h"
#include "format/loss.h"
#include "format/process_dictionary.h"

namespace blktape {
namespace {

constexpr size_t kMaxDevices = ProfileCounts::kMaxDevices;
// So many records that come one by one are taken together.
constexpr size_t kGathered = 1024;
// So many may be on their way through the figures: with all that goes with them some 10 MiB. One
// batch more may join them.
constexpr size_t kMostUnderWay = 131'072;

// A trace has no more names of processes.
constexpr uint32_t kMostNames = 65'536;

std::string DeviceName(const proto::Header& header, uint32_t index) {
  std::string name;
  if (index < static_cast<uint32_t>(header.devices_size())) {
    name = header.devices(static_cast<int>(index)).name();
  }
  return name.empty() ? "device " + std::to_string(index) : name;
}

}  // namespace

// Each batch of records passes, in order:
//   the caller's thread   what filters are counted from
//   any thread            filters, and the figures that do not depend on order (ProfileCounts)
//   a thread at a time    each of the others, as soon as it has done the batch before:
//                           order of arrival; order of issue, then footprint and details, which
//                           want what the order of issue yields
// So the result is the same on one thread and on many.
struct ProfileBuilder::Impl {
  struct Batch : ProfileBatch, LaneBatch {
    std::optional<int64_t> trace_first_ns;
    std::optional<int64_t> local_ns;
    std::shared_ptr<const std::vector<bool>> kept_processes;  // by id
  };

  explicit Impl(const ProfileOptions& from)
      : options(from),
        issue_order(from.footprint, from.details),
        lanes(
            kMostUnderWay, [this](Batch* batch) { Prepare(batch); },
            [](Batch* batch) { batch->columns = nullptr; }) {
    lanes.Add([this](Batch* batch) { arrival_order->Add(*batch); });
    auto* const by_issue = lanes.Add([this](Batch* batch) { issue_order.Add(batch); });
    auto* const by_address = lanes.Add([this](Batch* batch) { AddFootprint(*batch); });
    by_address->after = by_issue;
    by_address->home = 1;
    by_address->used = options.footprint;
    auto* const by_detail = lanes.Add([this](Batch* batch) { AddDetails(*batch); });
    by_detail->after = by_issue;
    by_detail->used = options.details;
  }

  // What is known only when Expect may have been called.
  void BeginIfNew() {
    if (arrival_order) return;
    arrival_order.emplace(expected.length_ns);
    if (options.details) details.emplace(expected);
  }

  void AddEvent(int64_t from_ns, int64_t to_ns, std::string what) {
    if (events.size() < Profile::kMostEvents) {
      events.push_back({from_ns, to_ns, std::move(what)});
    } else {
      ++profile.events_left_out;
    }
  }

  static std::optional<int64_t> PlausibleArrival(const RecordColumns& columns, size_t i) {
    if (columns.Has(i, RecordColumns::kQueue) && IsPlausibleNs(columns.queue_ns[i])) {
      return columns.queue_ns[i];
    }
    if (columns.Has(i, RecordColumns::kIssue) && IsPlausibleNs(columns.issue_ns[i])) {
      return columns.issue_ns[i];
    }
    return std::nullopt;
  }

  // Arrivals since the last sizes as queued, since the first of the trace.
  void AddToStretch(const RecordColumns& columns) {
    for (size_t i = 0; i < columns.count; ++i) {
      const std::optional<int64_t> arrival_ns = PlausibleArrival(columns, i);
      if (!arrival_ns) continue;
      const int64_t at_ns = SaturatingSubtract(*arrival_ns, *trace_first_ns);
      if (!stretch) stretch = Profile::Stretch{at_ns, at_ns};
      stretch->from_ns = std::min(stretch->from_ns, at_ns);
      stretch->to_ns = std::max(stretch->to_ns, at_ns);
    }
  }

  // Whether sizes as queued in `part` count; absent: a part without records, which is nowhere.
  bool SelectsSizesOf(const std::optional<Profile::Stretch>& part) {
    // They are of all devices, processes, addresses.
    if (options.device || is_filtered()) return false;
    if (!options.from_ns && !options.to_ns) return true;
    if (!part || (options.from_ns && part->to_ns < *options.from_ns) ||
        (options.to_ns && part->from_ns >= *options.to_ns)) {
      return false;
    }
    std::optional<Profile::Stretch>& all = profile.queued_stretch;
    if (!all) all = part;
    all->from_ns = std::min(all->from_ns, part->from_ns);
    all->to_ns = std::max(all->to_ns, part->to_ns);
    return true;
  }

  bool has_window() const { return options.from_ns || options.to_ns; }

  bool is_filtered() const { return keeps != nullptr || !options.processes.empty(); }

  // Which processes to keep, by id: those that have been named by now.
  void NameProcesses(const RecordColumns& columns) {
    std::shared_ptr<std::vector<bool>> more;
    for (size_t i = 0; i < columns.count; ++i) {
      if (!columns.Has(i, RecordColumns::kProcess)) continue;
      const uint32_t id = columns.process[i];
      if (id >= kMostNames || (kept_processes != nullptr && id < kept_processes->size())) continue;
      if (more != nullptr && id < more->size()) continue;
      if (more == nullptr) {
        more = kept_processes == nullptr ? std::make_shared<std::vector<bool>>()
                                         : std::make_shared<std::vector<bool>>(*kept_processes);
      }
      while (more->size() <= id) {
        const std::string_view name = name_of(static_cast<uint32_t>(more->size()));
        more->push_back(std::ranges::find(options.processes, name) != options.processes.end());
      }
    }
    if (more != nullptr) kept_processes = std::move(more);
  }

  bool Selected(const Batch& batch, size_t i) const {
    if (options.device && *options.device != batch.columns->device[i]) return false;
    if (!options.processes.empty()) {
      if (!batch.columns->Has(i, RecordColumns::kProcess)) return false;
      const uint32_t id = batch.columns->process[i];
      if (id >= batch.kept_processes->size() || !(*batch.kept_processes)[id]) return false;
    }
    if (keeps != nullptr && !keeps(batch.columns->Record(i))) return false;
    if (!has_window()) return true;
    if (!batch.HasArrival(i)) return false;
    const int64_t since_first_ns = SaturatingSubtract(batch.ArrivalNs(i), *batch.trace_first_ns);
    if (options.from_ns && since_first_ns < *options.from_ns) return false;
    return !options.to_ns || since_first_ns < *options.to_ns;
  }

  void Take(std::shared_ptr<RecordColumns> columns) {
    if (columns->count == 0) return;
    BeginIfNew();
    records_read += columns->count;
    for (size_t i = 0; !trace_first_ns && i < columns->count; ++i) {
      trace_first_ns = PlausibleArrival(*columns, i);
    }
    if (has_window()) AddToStretch(*columns);
    const std::shared_ptr<Batch> batch = lanes.NewBatch(columns->home);
    batch->trace_first_ns = trace_first_ns;
    if (!options.processes.empty()) {
      NameProcesses(*columns);
      batch->kept_processes = kept_processes;
    }
    batch->local_ns = local_ns;
    batch->weight = columns->count;
    batch->home = columns->home;
    batch->columns = std::move(columns);
    lanes.Pass(batch);
  }

  std::unique_ptr<ProfileCounts> TakeCounts() {
    const std::lock_guard<std::mutex> lock(counts_mutex);
    if (counts.empty()) return std::make_unique<ProfileCounts>();
    std::unique_ptr<ProfileCounts> one = std::move(counts.back());
    counts.pop_back();
    return one;
  }

  // What does not depend on order.
  void Prepare(Batch* batch) {
    std::unique_ptr<ProfileCounts> mine = TakeCounts();
    mine->RemoveImplausible(batch->columns.get());
    if (options.device || has_window() || is_filtered()) {
      std::vector<uint32_t> rows;
      for (size_t i = 0; i < batch->columns->count; ++i) {
        if (Selected(*batch, i)) rows.push_back(static_cast<uint32_t>(i));
      }
      batch->columns->Keep(rows);
    }
    mine->Add(batch);
    const std::lock_guard<std::mutex> lock(counts_mutex);
    counts.push_back(std::move(mine));
  }

  void AddFootprint(const Batch& batch) {
    constexpr size_t kAhead = 8;
    const std::vector<ProfileBatch::Address>& at = batch.addresses;
    for (size_t i = 0; i < at.size(); ++i) {
      if (i + kAhead < at.size()) {
        footprint.Prefetch(at[i + kAhead].device, at[i + kAhead].offset_bytes);
      }
      footprint.Add(at[i].device, at[i].offset_bytes, at[i].bytes, at[i].write);
    }
  }

  void AddDetails(const Batch& batch) {
    const RecordColumns& columns = *batch.columns;
    for (size_t i = 0; i < columns.count; ++i) {
      const IoRecord io = columns.Record(i);
      const std::optional<int64_t> arrival_ns = io.arrival_ns();
      details->AddRecord(io, arrival_ns, io.queue_ns, io.issue_ns, io.complete_ns);
      details->AddHour(io, arrival_ns && batch.local_ns
                               ? std::optional(SaturatingAdd(*arrival_ns, *batch.local_ns))
                               : std::nullopt);
    }
    AddIssuedDetails(batch);
  }
  void AddIssuedDetails(const ProfileBatch& batch) {
    for (const ProfiledIo& io : batch.issued) {
      if (!io.data) continue;
      details->AddIssuedData(io.start_ns, io.device, io.offset_bytes, io.bytes, io.write);
      if (io.completed) details->AddInFlight(io.start_ns, io.end_ns);
    }
    for (const auto& [start_ns, end_ns] : batch.busy) details->AddBusy(start_ns, end_ns);
  }

  // Those that came one by one.
  void Flush() {
    if (gathered == nullptr || gathered->count == 0) return;
    if (lanes.threaded()) {
      Take(std::move(gathered));
      gathered = nullptr;
    } else {
      Take(gathered);
      gathered->count = 0;
    }
  }

  ProfileOptions options;
  Profile profile;
  std::shared_ptr<RecordColumns> gathered;

  ProfileOptions::Keeps keeps;
  std::function<std::string_view(uint32_t)> name_of;

  // The caller's thread.
  std::shared_ptr<const std::vector<bool>> kept_processes = std::make_shared<std::vector<bool>>();
  bool in_part = false;             // not all of the trace was read
  int64_t zone_ns = 0;              // local time - UTC
  std::optional<int64_t> local_ns;  // local time - the trace's clock, by now
  uint64_t records_read = 0;
  std::optional<int64_t> trace_first_ns;  // before any filter
  std::optional<Profile::Stretch> stretch;
  DetailsBuilder::Expected expected;
  struct Placed {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    std::string what;
  };
  std::vector<Placed> events;

  // A thread at a time each.
  std::optional<ArrivalOrder> arrival_order;
  IssueOrder issue_order;
  FootprintMeter footprint;
  std::optional<DetailsBuilder> details;

  std::mutex counts_mutex;
  std::vector<std::unique_ptr<ProfileCounts>> counts;  // that no thread has at hand
  BatchLanes<Batch> lanes;
};

ProfileBuilder::ProfileBuilder(const ProfileOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

ProfileBuilder::~ProfileBuilder() {
  if (impl_ != nullptr) impl_->lanes.Wait();
}

void ProfileBuilder::WorkOn(TaskPool* pool) { impl_->lanes.WorkOn(pool); }

void ProfileBuilder::Filter(ProfileOptions::Keeps keeps,
                            std::function<std::string_view(uint32_t)> name_of) {
  impl_->keeps = std::move(keeps);
  impl_->name_of = std::move(name_of);
}

void ProfileBuilder::PassedOver(uint64_t records) { impl_->records_read += records; }

void ProfileBuilder::ReadInPart(const proto::Summary& summary) {
  Profile& profile = impl_->profile;
  impl_->in_part = true;
  for (const proto::LossTotal& total : summary.losses()) {
    const LossTally::Total met = profile.losses[total.reason()];
    proto::Loss loss;
    loss.set_reason(total.reason());
    if (total.count() > met.count) {
      loss.set_count(total.count() - met.count);
      OnLoss(loss);
    }
    if (total.unknowable() > met.unknowable) {
      profile.losses[total.reason()].unknowable = total.unknowable();
      if (MeansLostEvents(total.reason())) profile.losses_uncountable = true;
    }
  }
}

void ProfileBuilder::Begins(const proto::Header& header) {
  // "+02:00"; anything else is UTC.
  const std::string& zone = header.timezone();
  int hours = 0, minutes = 0;
  char sign = 0;
  if (std::sscanf(zone.c_str(), "%c%2d:%2d", &sign, &hours, &minutes) == 3 &&
      (sign == '+' || sign == '-')) {
    impl_->zone_ns = (sign == '-' ? -1 : 1) * (hours * 60 + minutes) * 60 * kNanosPerSecond;
  }
  if (header.has_start()) OnAnchor(header.start());
}

void ProfileBuilder::OnAnchor(const proto::ClockAnchor& anchor) {
  if (anchor.wall_ns() <= 0) return;
  impl_->Flush();
  impl_->local_ns =
      SaturatingAdd(SaturatingSubtract(anchor.wall_ns(), anchor.monotonic_ns()), impl_->zone_ns);
}

void ProfileBuilder::Expect(const proto::Summary& summary) {
  Impl& in = *impl_;
  if (!summary.has_first_ns() || !summary.has_last_ns() || !IsPlausibleNs(summary.first_ns()) ||
      !IsPlausibleNs(summary.last_ns())) {
    return;
  }
  in.trace_first_ns = summary.first_ns();
  int64_t end_ns = std::max<int64_t>(0, summary.last_ns() - summary.first_ns());
  if (in.options.to_ns) end_ns = std::min(end_ns, *in.options.to_ns);
  in.expected.length_ns =
      std::max<int64_t>(0, SaturatingSubtract(end_ns, in.options.from_ns.value_or(0)));
  for (const proto::DeviceExtent& extent : summary.extents()) {
    if (extent.device() >= kMaxDevices) continue;
    if (extent.device() >= in.expected.end_bytes.size()) {
      in.expected.end_bytes.resize(extent.device() + 1);
    }
    in.expected.end_bytes[extent.device()] = extent.end_bytes();
  }
}

void ProfileBuilder::Add(const IoRecord& record) {
  Impl& in = *impl_;
  if (in.gathered == nullptr) in.gathered = std::make_shared<RecordColumns>();
  in.gathered->Append(record);
  if (in.gathered->count == kGathered) in.Flush();
}

void ProfileBuilder::Add(std::shared_ptr<RecordColumns> records) {
  // Small batches, as between many losses, would each cost what a large one does.
  if (records->count < kGathered) {
    for (size_t i = 0; i < records->count; ++i) Add(records->Record(i));
    return;
  }
  impl_->Flush();
  impl_->Take(std::move(records));
}

void ProfileBuilder::OnMark(const proto::Mark& mark) {
  std::string what;
  switch (mark.kind()) {
    case proto::SUSPEND:
      what = "the machine slept";
      break;
    case proto::WALL_CLOCK_STEP:
      what = "the wall clock was set";
      break;
    case proto::RECORDING_RESUMED:
      what = "recording went on after a pause";
      break;
    case proto::DEVICE_ADDED:
      what = "a device was added";
      break;
    case proto::PHASE_BEGIN:
      what = "a phase begins";
      break;
    case proto::PHASE_END:
      what = "a phase ends";
      break;
    default:
      what = "mark";
      break;
  }
  if (!mark.detail().empty()) what += ": " + mark.detail();
  impl_->AddEvent(mark.at_ns(), mark.at_ns(), std::move(what));
}

void ProfileBuilder::OnLoss(const proto::Loss& loss) {
  Profile& profile = impl_->profile;
  if (loss.has_from_ns() || loss.has_to_ns()) {
    const int64_t from_ns = loss.has_from_ns() ? loss.from_ns() : loss.to_ns();
    impl_->AddEvent(from_ns, loss.has_to_ns() ? loss.to_ns() : from_ns,
                    std::string(MeansLostEvents(loss.reason()) ? "lost: " : "") +
                        LossReasonName(loss.reason()));
  }
  const LossTally::Total lost = LossTally::Total::Of(loss);
  profile.losses[loss.reason()].Add(lost);
  if (!MeansLostEvents(loss.reason())) return;
  profile.lost_events = SaturatingAdd(profile.lost_events, lost.count);
  profile.losses_uncountable |= lost.unknowable > 0;
}

void ProfileBuilder::OnQueuedSizes(const proto::QueuedSizes& sizes) {
  impl_->Flush();
  if (!impl_->SelectsSizesOf(std::exchange(impl_->stretch, std::nullopt))) return;
  Profile& profile = impl_->profile;
  profile.has_queued_sizes = true;
  profile.flushes_asked = SaturatingAdd(profile.flushes_asked.value_or(0), sizes.flushes_asked());
  profile.flagged_writes_asked =
      SaturatingAdd(profile.flagged_writes_asked.value_or(0), sizes.flagged_writes());
  for (const proto::QueuedSizes::Entry& entry : sizes.entries()) {
    if (entry.bytes() == 0) continue;
    if (entry.op() == static_cast<uint32_t>(Op::kRead)) {
      profile.queued_read_sizes.Add(entry.bytes(), entry.count());
    } else if (entry.op() == static_cast<uint32_t>(Op::kWrite)) {
      profile.queued_write_sizes.Add(entry.bytes(), entry.count());
    }
  }
}

Profile ProfileBuilder::Finish(const proto::Header& header,
                               const std::optional<proto::Summary>& summary,
                               const std::function<std::string(uint32_t)>& process_name) {
  Impl& in = *impl_;
  Profile& profile = in.profile;
  in.Flush();
  in.lanes.Wait();
  in.BeginIfNew();
  Impl::Batch last;
  in.issue_order.End(&last);
  if (in.options.footprint) in.AddFootprint(last);
  if (in.options.details) in.AddIssuedDetails(last);
  ProfileCounts counts;
  for (const std::unique_ptr<ProfileCounts>& some : in.counts) counts.Merge(*some);
  in.counts.clear();

  profile.from_ns = in.options.from_ns;
  profile.to_ns = in.options.to_ns;
  profile.header = header;
  profile.summary = summary;
  profile.finished_cleanly = summary.has_value() && !summary->recovered();
  profile.filters = in.options.filters;
  if (summary && summary->records() > in.records_read && !profile.DataMissing() && !in.in_part) {
    proto::Loss loss;
    loss.set_reason(proto::DAMAGED_INPUT);
    loss.set_count(summary->records() - in.records_read);
    OnLoss(loss);
  }
  if (header.has_start() && summary && summary->has_end() &&
      summary->end().monotonic_ns() > header.start().monotonic_ns()) {
    profile.recorded_ns = summary->end().monotonic_ns() - header.start().monotonic_ns();
  }
  in.arrival_order->MoveInto(&profile);
  in.issue_order.MoveInto(&profile);
  counts.MoveInto(&profile);
  profile.footprint = in.footprint.Measure();
  for (const Impl::Placed& event : in.events) {
    if (!profile.first_arrival_ns || !IsPlausibleNs(event.from_ns) || !IsPlausibleNs(event.to_ns)) {
      continue;
    }
    const int64_t from_ns = event.from_ns - *profile.first_arrival_ns;
    const int64_t to_ns = std::max(from_ns, event.to_ns - *profile.first_arrival_ns);
    if (to_ns < 0 || from_ns > profile.observed_ns) continue;
    profile.events.push_back({from_ns, to_ns, event.what});
  }
  if (in.options.details) {
    profile.details = std::make_shared<const Details>(in.details->Finish(
        profile.observed_ns, profile.ios,
        [&header](uint32_t index) { return DeviceName(header, index); }, process_name));
  }

  for (size_t i = 0; i < counts.devices().size(); ++i) {
    Profile::DeviceRow& row = counts.devices()[i];
    if (row.reads.ios + row.writes.ios + row.other.ios == 0) continue;
    row.name = i == kMaxDevices ? "others" : DeviceName(header, static_cast<uint32_t>(i));
    profile.max_end_bytes = std::max(profile.max_end_bytes, row.max_end_bytes);
    profile.devices.push_back(std::move(row));
  }
  for (size_t id = 0; id < counts.processes().size(); ++id) {
    Profile::ProcessRow& row = counts.processes()[id];
    if (row.reads.ios + row.writes.ios + row.other.ios == 0) continue;
    row.name = process_name(static_cast<uint32_t>(id));
    profile.processes.push_back(std::move(row));
  }
  const Profile::ProcessRow& nobody = counts.no_process();
  if (nobody.reads.ios + nobody.writes.ios + nobody.other.ios > 0) {
    profile.processes.push_back(nobody);
  }
  std::stable_sort(profile.processes.begin(), profile.processes.end(),
                   [](const Profile::ProcessRow& a, const Profile::ProcessRow& b) {
                     return a.reads.bytes + a.writes.bytes > b.reads.bytes + b.writes.bytes;
                   });
  return std::move(profile);
}

Writers WritersOf(const Profile& profile) {
  Writers writers;
  for (const Profile::ProcessRow& row : profile.processes) {
    if (row.writes.bytes == 0 || row.name.empty()) continue;
    if (row.name.starts_with(kKernelWorker)) {
      writers.kernel_bytes = SaturatingAdd(writers.kernel_bytes, row.writes.bytes);
    } else if (writers.program == nullptr || row.writes.bytes > writers.program->writes.bytes) {
      writers.program = &row;
    }
  }
  return writers;
}

Result<uint32_t> FindDevice(const proto::Header& header, const std::string& name) {
  std::string known;
  for (int i = 0; i < header.devices_size(); ++i) {
    if (header.devices(i).name() == name) return static_cast<uint32_t>(i);
    known += (known.empty() ? "" : ", ") + header.devices(i).name();
  }
  return Status(StatusCode::kNotFound,
                "the trace holds no device \"" + name + "\"; it holds " + known);
}

}  // namespace blktape
