#include "tests/analysis/plain_profile.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "analysis/foreground.h"
#include "analysis/in_flight.h"
#include "analysis/interval_union.h"
#include "analysis/plausible.h"
#include "analysis/reorder_buffer.h"
#include "analysis/step_series.h"
#include "base/check.h"
#include "base/saturating.h"

namespace blktape {
namespace {

// Rows of their own, and those among them with as many exact samples as the whole trace: together
// at most 40 MiB.
constexpr size_t kMaxDevices = 512;
constexpr size_t kExactDevices = 16;
constexpr uint64_t kDeviceSamples = 8192;
constexpr size_t kMaxProcesses = 65'536;
bool IsData(const IoRecord& io) {
  return (io.op == Op::kRead || io.op == Op::kWrite) && io.bytes > 0;
}

size_t OpIndex(Op op) {
  const size_t index = static_cast<size_t>(op);
  BLKTAPE_CHECK(index < kOpCount);
  return index;
}

int IdleClassOf(int64_t gap_ns) {
  int index = 0;
  for (int64_t from_ns = kNanosPerMicro; gap_ns >= from_ns && index + 1 < Profile::kIdleClasses;
       from_ns *= 10) {
    ++index;
  }
  return index;
}

void CountByKind(const IoRecord& io, Profile::Totals* reads, Profile::Totals* writes,
                 Profile::Totals* other) {
  Profile::Totals* totals = io.op == Op::kRead ? reads : io.op == Op::kWrite ? writes : other;
  ++totals->ios;
  totals->bytes = SaturatingAdd(totals->bytes, io.bytes);
}

void MergeInto(const Profile::Latencies& from, Profile::Latencies* to) {
  to->q2d.Merge(from.q2d);
  to->d2c.Merge(from.d2c);
  to->q2c.Merge(from.q2c);
}

Profile::Depth DepthOf(InFlight* in_flight, int64_t observed_ns, int64_t busy_ns) {
  Profile::Depth depth{.max = in_flight->max(), .limited = in_flight->limited()};
  depth.classes = in_flight->FinishClasses();
  const double time_ns = static_cast<double>(in_flight->time_ns());
  if (observed_ns > 0) depth.mean = time_ns / static_cast<double>(observed_ns);
  if (busy_ns > 0) depth.mean_busy = time_ns / static_cast<double>(busy_ns);
  return depth;
}

std::string DeviceName(const proto::Header& header, uint32_t index) {
  std::string name;
  if (index < static_cast<uint32_t>(header.devices_size())) {
    name = header.devices(static_cast<int>(index)).name();
  }
  return name.empty() ? "device " + std::to_string(index) : name;
}

}  // namespace

struct PlainProfile::Impl {
  // What matters about an I/O once it is issued.
  struct Issued {
    uint64_t offset_bytes = 0;
    uint64_t bytes = 0;
    std::optional<int64_t> end_ns;
    uint32_t device = 0;
    bool data = false;  // with an address
    bool write = false;
  };
  struct Place {  // where the data request before ended
    bool known = false;
    uint64_t end_bytes = 0;
  };
  struct DeviceState {
    Profile::DeviceRow row;
    Place any, read, write;
  };
  // By class of wait, so that "foreground" and "all" are sums.
  struct OpLatencies {
    Profile::Latencies waited, background;
  };

  ProfileOptions options;
  Profile profile;
  uint64_t records_read = 0;
  std::optional<int64_t> trace_first_ns;  // before any filter
  std::optional<Profile::Stretch> stretch;
  int64_t watermark_ns = std::numeric_limits<int64_t>::min();
  int64_t last_arrival_ns = 0;
  int64_t last_event_ns = 0;
  ReorderBuffer<Issued> in_issue_order;
  ReorderBuffer<int64_t> waits_in_order;  // ends
  std::optional<bool> result;             // as the first record tells
  IntervalUnion waits;
  InFlight data_in_flight, all_in_flight;
  IntervalUnion data_busy, all_busy;
  std::optional<uint32_t> last_device;
  std::vector<DeviceState> devices;
  std::array<OpLatencies, kOpCount> latencies;
  std::vector<Profile::ProcessRow> processes;
  std::vector<bool> process_seen;
  Profile::ProcessRow no_process;
  FootprintMeter footprint;
  StepSeries<uint64_t> activity{Profile::kActivitySteps, kNanosPerMicro};
  std::optional<int64_t> idle_from_ns;  // as `replay --idle-cap` has it
  DetailsBuilder::Expected expected;
  std::unique_ptr<DetailsBuilder> details;
  std::optional<int64_t> utc_ns;  // the clock on the wall - the trace's
  struct Placed {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
    std::string what;
  };
  std::vector<Placed> events;

  void AddEvent(Placed event) {
    if (events.size() < Profile::kMostEvents) {
      events.push_back(std::move(event));
    } else {
      ++profile.events_left_out;
    }
  }

  void AddIdle(int64_t arrival_ns, std::optional<int64_t> complete_ns) {
    const int64_t idle_ns = arrival_ns - idle_from_ns.value_or(arrival_ns);
    if (idle_ns > profile.idle_caps.front().cap_ns) {
      for (Profile::IdleCap& cap : profile.idle_caps) {
        cap.cut_ns += std::max<int64_t>(0, idle_ns - cap.cap_ns);
      }
    }
    idle_from_ns =
        std::max({idle_from_ns.value_or(arrival_ns), arrival_ns, complete_ns.value_or(arrival_ns)});
  }

  std::optional<int64_t> Plausible(const std::optional<int64_t>& time_ns) {
    if (!time_ns || IsPlausibleNs(*time_ns)) return time_ns;
    ++profile.implausible_times;
    return std::nullopt;
  }

  DeviceState& Device(uint32_t index) {
    const size_t at = std::min<size_t>(index, kMaxDevices);  // the last row lumps the rest
    while (at >= devices.size()) {
      const uint64_t samples =
          devices.size() < kExactDevices ? LatencyHistogram::kExactSamples : kDeviceSamples;
      devices.emplace_back().row.d2c = LatencyHistogram(samples);
    }
    return devices[at];
  }

  // Arrivals since the last sizes as queued, since the first of the trace.
  void AddToStretch(std::optional<int64_t> arrival_ns) {
    if (!arrival_ns) return;
    const int64_t at_ns = SaturatingSubtract(*arrival_ns, *trace_first_ns);
    if (!stretch) stretch = Profile::Stretch{at_ns, at_ns};
    stretch->from_ns = std::min(stretch->from_ns, at_ns);
    stretch->to_ns = std::max(stretch->to_ns, at_ns);
  }

  // Whether sizes as queued in `part` count; absent: a part without records, which is nowhere.
  bool SelectsSizesOf(const std::optional<Profile::Stretch>& part) {
    // They are of all devices.
    if (options.device) return false;
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

  bool Selected(const IoRecord& io, std::optional<int64_t> arrival_ns) const {
    if (options.device && *options.device != io.device) return false;
    if (!options.from_ns && !options.to_ns) return true;
    if (!arrival_ns) return false;
    const int64_t since_first_ns = SaturatingSubtract(*arrival_ns, *trace_first_ns);
    if (options.from_ns && since_first_ns < *options.from_ns) return false;
    return !options.to_ns || since_first_ns < *options.to_ns;
  }

  void AddArrival(int64_t arrival_ns) {
    if (!profile.first_arrival_ns) {
      profile.first_arrival_ns = last_arrival_ns = last_event_ns = arrival_ns;
    } else if (arrival_ns < watermark_ns) {
      ++profile.out_of_order;
      profile.first_arrival_ns = std::min(*profile.first_arrival_ns, arrival_ns);
    }
    last_arrival_ns = std::max(last_arrival_ns, arrival_ns);
    watermark_ns = last_arrival_ns;
    ++activity.At(arrival_ns - *profile.first_arrival_ns);
  }

  void AddDifference(std::optional<int64_t> from_ns, std::optional<int64_t> to_ns,
                     LatencyHistogram* histogram) {
    if (!from_ns || !to_ns) return;
    if (*to_ns < *from_ns) {
      ++profile.negative_times;
    } else {
      histogram->Add(*to_ns - *from_ns);
    }
  }

  void AddTimes(const IoRecord& io, std::optional<int64_t> queue_ns,
                std::optional<int64_t> issue_ns, std::optional<int64_t> complete_ns, bool waited,
                DeviceState* device) {
    OpLatencies& of_op = latencies[OpIndex(io.op)];
    Profile::Latencies& latency = waited ? of_op.waited : of_op.background;
    if (!issue_ns) ++profile.without_issue;
    if (!complete_ns) ++profile.without_completion;
    // A read or write of no data is counted, but is no request that a latency would tell about.
    if ((io.op == Op::kRead || io.op == Op::kWrite) && io.bytes == 0) return;
    AddDifference(queue_ns, issue_ns, &latency.q2d);
    // Only the records of a result have an ordinal.
    if (io.ordinal && queue_ns && issue_ns && *issue_ns >= *queue_ns) {
      AddLateness(*issue_ns - *queue_ns, io);
    }
    AddDifference(issue_ns, complete_ns, &latency.d2c);
    if (queue_ns && complete_ns && *complete_ns >= *queue_ns) {
      latency.q2c.Add(*complete_ns - *queue_ns);
    } else if (queue_ns && complete_ns && !issue_ns) {
      ++profile.negative_times;
    }
    if (issue_ns && complete_ns && *complete_ns >= *issue_ns && IsData(io)) {
      device->row.d2c.Add(*complete_ns - *issue_ns);
    }
  }

  // Software waits from the arrival on; in a result from when a host that is never late would have
  // submitted. A derived flush belongs to a write somebody waits for.
  void AddWait(const IoRecord& io, std::optional<int64_t> queue_ns, std::optional<int64_t> issue_ns,
               std::optional<int64_t> complete_ns) {
    std::optional<int64_t> from_ns = queue_ns ? queue_ns : issue_ns;
    if (!IsForeground(io) || !from_ns || !complete_ns || *complete_ns < *from_ns) return;
    if (io.ordinal && io.backlog_ns && issue_ns && *issue_ns >= *from_ns) {
      const int64_t late_ns = *issue_ns - *from_ns;
      *from_ns +=
          late_ns - static_cast<int64_t>(std::min(*io.backlog_ns, static_cast<uint64_t>(late_ns)));
    }
    waits_in_order.Push(*from_ns, std::max(*from_ns, *complete_ns));
    // A result is in the order of its plan; in a closed loop I/Os are due in another one.
    waits_in_order.Release(io.ordinal ? INT64_MIN : watermark_ns,
                           [this](int64_t start, int64_t end) { waits.Add(start, end); });
  }

  void AddLateness(int64_t late_ns, const IoRecord& io) {
    Profile::Lateness& lateness = profile.lateness;
    if (!io.backlog_ns) {  // of a result that tells only whether
      ((io.flags & kFlagBacklog) != 0 ? lateness.backlog : lateness.host).Add(late_ns);
      return;
    }
    const int64_t backlog_ns =
        static_cast<int64_t>(std::min(*io.backlog_ns, static_cast<uint64_t>(late_ns)));
    lateness.host.Add(late_ns - backlog_ns);
    if (backlog_ns > 0) lateness.backlog.Add(backlog_ns);
  }

  void AddProcess(const IoRecord& io) {
    Profile::ProcessRow* row = &no_process;
    if (io.process) {
      if (*io.process >= kMaxProcesses) {
        ++profile.processes_lumped;
        return;
      }
      if (*io.process >= processes.size()) {
        processes.resize(*io.process + 1);
        process_seen.resize(*io.process + 1);
      }
      process_seen[*io.process] = true;
      row = &processes[*io.process];
    }
    CountByKind(io, &row->reads, &row->writes, &row->other);
  }

  void AddSize(const IoRecord& io) {
    if (io.op == Op::kRead && io.bytes > 0) profile.read_sizes.Add(io.bytes);
    if (io.op == Op::kWrite && io.bytes > 0) profile.write_sizes.Add(io.bytes);
    if (io.op == Op::kDiscard) profile.discard_sizes.Add(io.bytes);
  }

  void AddIssued(int64_t start_ns, const Issued& io) {
    if (io.data) AddAddress(start_ns, io);
    if (!io.end_ns || *io.end_ns < start_ns) return;
    const int64_t run_start_ns = all_busy.run_start_ns();
    const int64_t run_end_ns = all_busy.last_ns();
    const int64_t gap_ns = all_busy.Add(start_ns, *io.end_ns);
    if (details != nullptr) {
      if (gap_ns > 0) details->AddBusy(run_start_ns, run_end_ns);
      if (io.data) details->AddInFlight(start_ns, *io.end_ns);
    }
    if (gap_ns > 0) {
      Profile::IdleClass& idle = profile.idle[static_cast<size_t>(IdleClassOf(gap_ns))];
      ++idle.count;
      idle.total_ns += gap_ns;
    }
    all_in_flight.Add(start_ns, *io.end_ns);
    if (!io.data) return;
    data_busy.Add(start_ns, *io.end_ns);
    data_in_flight.Add(start_ns, *io.end_ns);
  }

  void AddAddress(int64_t start_ns, const Issued& io) {
    constexpr uint64_t kAlignment = 4096;
    if (details != nullptr) {
      details->AddIssuedData(start_ns, io.device, io.offset_bytes, io.bytes, io.write);
    }
    Profile::Alignment& aligned = io.write ? profile.aligned_writes : profile.aligned_reads;
    ++aligned.requests;
    if (io.offset_bytes % kAlignment == 0) {
      ++aligned.begin_4k;
      if (io.bytes % kAlignment == 0) ++aligned.whole_4k;
    }
    DeviceState& device = Device(io.device);
    Place& same_op = io.write ? device.write : device.read;
    if (device.any.known && device.any.end_bytes == io.offset_bytes) {
      ++profile.sequential_device;
      if (!io.write) ++profile.sequential_reads;
      if (last_device == io.device) ++profile.sequential_any;
    }
    if (same_op.known && same_op.end_bytes == io.offset_bytes) ++profile.sequential_direction;
    const uint64_t end_bytes = SaturatingAdd(io.offset_bytes, io.bytes);
    // Nothing begins where an absurd address ends.
    same_op = device.any = {end_bytes != UINT64_MAX, end_bytes};
    last_device = io.device;
    if (options.footprint) footprint.Add(io.device, io.offset_bytes, io.bytes, io.write);
    device.row.max_end_bytes = std::max(device.row.max_end_bytes, end_bytes);
  }
};

PlainProfile::PlainProfile(const ProfileOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
}

void PlainProfile::Expect(const proto::Summary& summary) {
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
  in.activity = StepSeries<uint64_t>(Profile::kActivitySteps,
                                     NiceStepNs(in.expected.length_ns, Profile::kActivitySteps));
  for (const proto::DeviceExtent& extent : summary.extents()) {
    if (extent.device() >= kMaxDevices) continue;
    if (extent.device() >= in.expected.end_bytes.size()) {
      in.expected.end_bytes.resize(extent.device() + 1);
    }
    in.expected.end_bytes[extent.device()] = extent.end_bytes();
  }
}

PlainProfile::~PlainProfile() = default;

void PlainProfile::Add(const IoRecord& io) {
  Impl& in = *impl_;
  Profile& profile = in.profile;
  ++in.records_read;
  const std::optional<int64_t> queue_ns = in.Plausible(io.queue_ns);
  const std::optional<int64_t> issue_ns = in.Plausible(io.issue_ns);
  const std::optional<int64_t> complete_ns = in.Plausible(io.complete_ns);
  const std::optional<int64_t> arrival_ns = queue_ns ? queue_ns : issue_ns;
  if (!in.trace_first_ns) in.trace_first_ns = arrival_ns;
  in.AddToStretch(arrival_ns);
  if (!in.Selected(io, arrival_ns)) return;

  ++profile.ios;
  Profile::Totals& of_op = profile.by_op[OpIndex(io.op)];
  ++of_op.ios;
  of_op.bytes = SaturatingAdd(of_op.bytes, io.bytes);
  const bool data = IsData(io);
  const bool waited = WaitClassOf(io) != WaitClass::kBackground;
  if (data) ++profile.data_requests;
  if (waited) {
    ++profile.foreground.ios;
    profile.foreground.bytes = SaturatingAdd(profile.foreground.bytes, io.bytes);
  }
  if (io.op == Op::kWrite && (io.flags & kFlagFua) != 0) ++profile.fua_writes;
  if (io.op == Op::kWrite && (io.flags & kFlagSync) != 0) ++profile.sync_writes;
  if (io.op == Op::kFlush && (io.flags & kFlagDerived) != 0) ++profile.flushes_derived;
  if (io.error.value_or(0) != 0) ++profile.errors;
  profile.merged_bios += io.merged_bios.value_or(0);

  Impl::DeviceState& device = in.Device(io.device);
  CountByKind(io, &device.row.reads, &device.row.writes, &device.row.other);
  in.AddProcess(io);
  in.AddSize(io);
  if (arrival_ns) {
    in.AddArrival(*arrival_ns);
    in.AddIdle(*arrival_ns, complete_ns);
  }
  if (in.options.details) {
    if (in.details == nullptr) in.details = std::make_unique<DetailsBuilder>(in.expected);
    in.details->AddRecord(io, arrival_ns, queue_ns, issue_ns, complete_ns);
    in.details->AddHour(io, arrival_ns && in.utc_ns
                                ? std::optional(SaturatingAdd(*arrival_ns, *in.utc_ns))
                                : std::nullopt);
  }
  in.AddTimes(io, queue_ns, issue_ns, complete_ns, waited, &device);
  in.AddWait(io, queue_ns, issue_ns, complete_ns);
  if (complete_ns && profile.first_arrival_ns) {
    in.last_event_ns = std::max(in.last_event_ns, *complete_ns);
  }

  // A bio-based device has no issue: there the queue time stands for it.
  const std::optional<int64_t> start_ns = issue_ns ? issue_ns : queue_ns;
  const Impl::Issued issued{.offset_bytes = io.lba.value_or(Lba()).bytes(),
                            .bytes = io.bytes,
                            .end_ns = start_ns ? complete_ns : std::nullopt,
                            .device = io.device,
                            .data = data && io.lba.has_value(),
                            .write = io.op == Op::kWrite};
  if (issued.data && in.options.footprint)
    in.footprint.Prefetch(issued.device, issued.offset_bytes);
  in.in_issue_order.Push(start_ns.value_or(in.watermark_ns), issued);
  if (!in.result) in.result = io.ordinal.has_value();
  in.in_issue_order.Release(
      *in.result ? INT64_MIN : in.watermark_ns,
      [&in](int64_t at_ns, const Impl::Issued& one) { in.AddIssued(at_ns, one); });
}

void PlainProfile::OnAnchor(const proto::ClockAnchor& anchor) {
  if (anchor.wall_ns() <= 0) return;
  impl_->utc_ns = SaturatingSubtract(anchor.wall_ns(), anchor.monotonic_ns());
}

void PlainProfile::OnMark(const proto::Mark& mark) {
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
  impl_->AddEvent({mark.at_ns(), mark.at_ns(), std::move(what)});
}

void PlainProfile::OnLoss(const proto::Loss& loss) {
  Profile& profile = impl_->profile;
  if (loss.has_from_ns() || loss.has_to_ns()) {
    const int64_t from_ns = loss.has_from_ns() ? loss.from_ns() : loss.to_ns();
    impl_->AddEvent({from_ns, loss.has_to_ns() ? loss.to_ns() : from_ns,
                     std::string(MeansLostEvents(loss.reason()) ? "lost: " : "") +
                         LossReasonName(loss.reason())});
  }
  LossTally::Total& total = profile.losses[loss.reason()];
  if (loss.has_count()) {
    total.count = SaturatingAdd(total.count, loss.count());
    if (MeansLostEvents(loss.reason())) {
      profile.lost_events = SaturatingAdd(profile.lost_events, loss.count());
    }
  } else {
    ++total.unknowable;
    if (MeansLostEvents(loss.reason())) profile.losses_uncountable = true;
  }
}

void PlainProfile::OnQueuedSizes(const proto::QueuedSizes& sizes) {
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

Profile PlainProfile::Finish(const proto::Header& header,
                             const std::optional<proto::Summary>& summary,
                             const std::function<std::string(uint32_t)>& process_name) {
  Impl& in = *impl_;
  Profile& profile = in.profile;
  in.in_issue_order.ReleaseAll(
      [&in](int64_t at_ns, const Impl::Issued& one) { in.AddIssued(at_ns, one); });
  in.waits_in_order.ReleaseAll([&in](int64_t start, int64_t end) { in.waits.Add(start, end); });

  profile.from_ns = in.options.from_ns;
  profile.to_ns = in.options.to_ns;
  profile.header = header;
  profile.summary = summary;
  profile.finished_cleanly = summary.has_value() && !summary->recovered();
  if (summary && summary->records() > in.records_read && !profile.DataMissing()) {
    proto::Loss loss;
    loss.set_reason(proto::DAMAGED_INPUT);
    loss.set_count(summary->records() - in.records_read);
    OnLoss(loss);
  }
  if (header.has_start() && summary && summary->has_end() &&
      summary->end().monotonic_ns() > header.start().monotonic_ns()) {
    profile.recorded_ns = summary->end().monotonic_ns() - header.start().monotonic_ns();
  }
  if (profile.first_arrival_ns) {
    profile.duration_ns = in.last_arrival_ns - *profile.first_arrival_ns;
    profile.observed_ns =
        std::max(in.last_arrival_ns, in.last_event_ns) - *profile.first_arrival_ns;
  }
  profile.activity_step_ns = in.activity.step_ns();
  profile.activity = in.activity.steps();
  for (const Impl::Placed& event : in.events) {
    if (!profile.first_arrival_ns || !IsPlausibleNs(event.from_ns) || !IsPlausibleNs(event.to_ns)) {
      continue;
    }
    const int64_t from_ns = event.from_ns - *profile.first_arrival_ns;
    const int64_t to_ns = std::max(from_ns, event.to_ns - *profile.first_arrival_ns);
    if (to_ns < 0 || from_ns > profile.observed_ns) continue;
    profile.events.push_back({from_ns, to_ns, event.what});
  }
  profile.busy_ns = in.all_busy.measure_ns();
  profile.busy_cut = in.all_busy.out_of_order();
  profile.wait_ns = in.waits.measure_ns();
  profile.wait_cut = in.waits.out_of_order();
  profile.idle_ns = std::max<int64_t>(0, profile.observed_ns - profile.busy_ns);
  profile.depth = DepthOf(&in.data_in_flight, profile.observed_ns, in.data_busy.measure_ns());
  profile.depth_all = DepthOf(&in.all_in_flight, profile.observed_ns, profile.busy_ns);
  profile.footprint = in.footprint.Measure();

  for (size_t op = 0; op < kOpCount; ++op) {
    const Impl::OpLatencies& of_op = in.latencies[op];
    Profile::Latencies& latency = profile.latency_by_op[op];
    MergeInto(of_op.waited, &latency);
    MergeInto(of_op.background, &latency);
    MergeInto(of_op.waited, &profile.foreground_latency);
    MergeInto(latency, &profile.all);
  }
  if (in.options.details) {
    if (in.details == nullptr) in.details = std::make_unique<DetailsBuilder>(in.expected);
    if (!in.all_busy.empty())
      in.details->AddBusy(in.all_busy.run_start_ns(), in.all_busy.last_ns());
    profile.details = std::make_shared<const Details>(in.details->Finish(
        profile.observed_ns, profile.ios,
        [&header](uint32_t index) { return DeviceName(header, index); }, process_name));
  }
  MergeInto(profile.latency_of(Op::kRead), &profile.data);
  MergeInto(profile.latency_of(Op::kWrite), &profile.data);

  for (size_t i = 0; i < in.devices.size(); ++i) {
    Profile::DeviceRow& row = in.devices[i].row;
    if (row.reads.ios + row.writes.ios + row.other.ios == 0) continue;
    row.name = i == kMaxDevices ? "others" : DeviceName(header, static_cast<uint32_t>(i));
    profile.max_end_bytes = std::max(profile.max_end_bytes, row.max_end_bytes);
    profile.devices.push_back(std::move(row));
  }
  for (size_t id = 0; id < in.processes.size(); ++id) {
    if (!in.process_seen[id]) continue;
    in.processes[id].name = process_name(static_cast<uint32_t>(id));
    profile.processes.push_back(std::move(in.processes[id]));
  }
  if (in.no_process.reads.ios + in.no_process.writes.ios + in.no_process.other.ios > 0) {
    profile.processes.push_back(in.no_process);
  }
  std::stable_sort(profile.processes.begin(), profile.processes.end(),
                   [](const Profile::ProcessRow& a, const Profile::ProcessRow& b) {
                     return a.reads.bytes + a.writes.bytes > b.reads.bytes + b.writes.bytes;
                   });
  return std::move(profile);
}

}  // namespace blktape
