#include "replay/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/file.h"
#include "base/quantity.h"
#include "base/sha256.h"
#include "base/units.h"
#include "replay/engine/engine_options.h"
#include "replay/issue/lane_progress.h"
#include "replay/plan/kept_blocks.h"
#include "replay/plan/schedule.h"
#include "replay/plan/trace_stream.h"

namespace blktape {
namespace {

constexpr char kLeaveOut[] = "none";

Status Invalid(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

bool NeedsTarget(const ReplayOptions& options) {
  return options.engine != "simulated" && options.engine != "null";
}

// One thread can guarantee more than several.
Status CheckThreads(const ReplayOptions& options) {
  if (options.threads > kMaxLanes)
    return Invalid(fmt::format("at most {} threads issue", kMaxLanes));
  if (options.rule == TimingRule::kMaxOrder || options.rule == TimingRule::kClosed) {
    return Invalid(
        "one thread alone keeps the recording's order of completion\n"
        "  try:  --queue-depth N, or the original timing");
  }
  if (options.rule == TimingRule::kQueueDepth && options.keep_think_time) {
    return Invalid("one thread alone knows when the drive is idle\n  try:  --think drop");
  }
  if (options.rule == TimingRule::kQueueDepth && options.threads > options.queue_depth) {
    return Invalid("a queue depth of less than the issuing threads leaves some without an I/O");
  }
  if (options.depth != 0 && options.threads > options.depth) {
    return Invalid("a depth of less than the issuing threads leaves some without an I/O");
  }
  if (options.verify) return Invalid("verification follows the order in which one thread issues");
  if (options.engine == "simulated") return Invalid("the simulated engine runs in one thread");
  return OkStatus();
}

Status CheckOptions(const ReplayOptions& options) {
  if ((options.trace_path.empty() ? 0 : 1) + (options.workload ? 1 : 0) +
          (options.records ? 1 : 0) !=
      1) {
    return Invalid("a replay needs a trace or a workload, and one of them only");
  }
  // At a lower speed the times of a long trace would overflow.
  if (!(options.speed >= 0.001 && options.speed <= 1e6)) {
    return Invalid("the speed must be from 0.001 to 1000000");
  }
  if (options.rule == TimingRule::kQueueDepth && options.queue_depth == 0) {
    return Invalid("the queue depth must be at least 1");
  }
  if (std::max(options.queue_depth, options.depth) > kMaxEngineDepth) {
    return Invalid(fmt::format("the queue depth is at most {}", kMaxEngineDepth));
  }
  if (options.idle_cap_ns && *options.idle_cap_ns < 0) return Invalid("the idle cap is below zero");
  if (IsPunctual(options.rule) && options.keep_think_time) {
    return Invalid("think time is kept or dropped only at maximum speed");
  }
  if (!IsPunctual(options.rule) && !options.keep_think_time && options.idle_cap_ns) {
    return Invalid("an idle cap means nothing where think time is dropped\n  try:  --think keep");
  }
  if (options.on_error != "stop" && options.on_error != "continue") {
    return Invalid("on-error \"" + options.on_error + "\" is none of stop, continue");
  }
  if (options.compressible_percent > 100 || options.dedupe_percent > 100) {
    return Invalid("compressible and dedupe are percentages");
  }
  if (options.verify &&
      (options.repeat_payload || options.compressible_percent > 0 || options.dedupe_percent > 0)) {
    return Invalid("verification stamps every sector: it goes with the default payload only");
  }
  if (options.verify && (!options.order_overlaps || !NeedsTarget(options))) {
    return Invalid("verification needs a target that keeps data, and conflicting I/Os in order");
  }
  if (options.verify && options.rule == TimingRule::kClosed) {
    return Invalid(
        "verification follows the order of the plan, which a closed replay keeps within a thread "
        "of the recording only\n  try:  the original timing, or --max");
  }
  if (options.threads > 1) RETURN_IF_ERROR(CheckThreads(options));
  if (options.from_ns && options.to_ns && *options.from_ns >= *options.to_ns) {
    return Invalid("the piece of the trace ends before it begins");
  }
  for (size_t i = 0; i < options.mappings.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (options.mappings[i].device == options.mappings[j].device) {
        return Invalid("device \"" + options.mappings[i].device + "\" is mapped twice");
      }
    }
  }
  if ((options.submission_thread || options.polled_completion) && options.engine != "io_uring") {
    return Invalid(
        "only io_uring has a submission thread and polled completion\n"
        "  try:  --engine io_uring");
  }
  if (!options.queue_settings.empty() && !NeedsTarget(options)) {
    return Invalid("queue settings are those of a disk, and the " + options.engine +
                   " engine touches none");
  }
  if (options.mappings.empty() && NeedsTarget(options)) {
    return Invalid("no target is named\n  try:  --target /dev/sdX, or a file");
  }
  return OkStatus();
}

TraceStreamOptions PieceOf(const ReplayOptions& options) {
  return {.from_ns = options.from_ns, .to_ns = options.to_ns, .loops = options.loops};
}

Result<std::unique_ptr<RecordStream>> OpenStream(const ReplayOptions& options, bool one_pass) {
  if (options.workload) return MakeGenerator(*options.workload);
  if (options.records) return options.records->open();
  TraceStreamOptions piece = PieceOf(options);
  if (one_pass) piece.loops = 1;
  ASSIGN_OR_RETURN(std::unique_ptr<TraceStream> stream,
                   TraceStream::Open(options.trace_path, piece));
  return std::unique_ptr<RecordStream>(std::move(stream));
}

// Target index of a recorded device; absent: left out by name.
using TargetOfDevice = std::vector<std::optional<uint32_t>>;

Footprint FootprintOfWorkload(const WorkloadSpec& spec) {
  Footprint footprint;
  DeviceFootprint& device = footprint.devices.emplace_back();
  device.records = spec.count.value_or(1);
  device.begin_bytes = spec.begin_bytes;
  device.end_bytes = spec.begin_bytes + spec.span_bytes;
  device.address_bits = spec.begin_bytes | spec.align_bytes;
  for (const WorkloadSpec::Size& size : spec.sizes) {
    device.address_bits |= size.bytes;
    device.longest_bytes = std::max(device.longest_bytes, size.bytes);
  }
  footprint.records = device.records;
  footprint.records_by_op[static_cast<size_t>(Op::kRead)] = spec.read_share > 0 ? 1 : 0;
  footprint.records_by_op[static_cast<size_t>(Op::kWrite)] = spec.read_share < 1 ? 1 : 0;
  return footprint;
}

// The summary is enough if the trace is complete and no relevant I/O is filtered out.
std::optional<Footprint> FootprintFromSummary(const proto::Summary& summary, int devices) {
  if (summary.extents_size() == 0 && summary.records() > 0) return std::nullopt;
  Footprint footprint;
  footprint.devices.resize(devices);
  footprint.records = summary.records();
  footprint.has_completions = summary.completed() > 0;
  for (const auto& [op, count] : summary.records_by_op()) {
    if (op < kOpCount) footprint.records_by_op[op] = count;
  }
  for (const proto::DeviceExtent& extent : summary.extents()) {
    footprint.devices[extent.device()] = {
        .records = extent.records(),
        .begin_bytes = extent.begin_bytes(),
        .end_bytes = extent.end_bytes(),
        .address_bits = extent.address_bits(),
        .longest_bytes = extent.end_bytes() - extent.begin_bytes()};
  }
  return footprint;
}

// Excludes filtered I/Os. `target_of_device` is empty before it is known; then no device is left
// out.
Result<Footprint> PassOver(const ReplayOptions& options, TargetOfDevice target_of_device,
                           const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(std::unique_ptr<RecordStream> stream, OpenStream(options, /*one_pass=*/true));
  PlanOptions filter;
  filter.skip_writes = options.skip_writes;
  filter.skip_discards = options.skip_discards;
  filter.target_of_device = std::move(target_of_device);
  if (filter.target_of_device.empty()) {
    filter.target_of_device.assign(stream->header().devices_size(), 0);
  }
  return MeasureFootprint(stream.get(), stop, [&filter](const IoRecord& io) {
    return Plan::SkipReason(filter, io) == nullptr;
  });
}

// Returns the target of each recorded device, and fills `paths` with the targets, each once.
Status ResolveMappings(const ReplayOptions& options, const proto::Header& header,
                       const Footprint& footprint, std::vector<std::string>* paths,
                       TargetOfDevice* target_of_device) {
  target_of_device->assign(std::max<size_t>(header.devices_size(), footprint.devices.size()),
                           std::nullopt);
  const auto target = [paths](const std::string& path) {
    const auto found = std::find(paths->begin(), paths->end(), path);
    if (found != paths->end()) return static_cast<uint32_t>(found - paths->begin());
    paths->push_back(path);
    return static_cast<uint32_t>(paths->size() - 1);
  };
  std::vector<bool> left_out(target_of_device->size());
  // A mapping by name takes precedence over the mapping of all other devices.
  std::vector<ReplayOptions::Mapping> mappings = options.mappings;
  std::stable_partition(mappings.begin(), mappings.end(),
                        [](const auto& mapping) { return !mapping.device.empty(); });
  for (const ReplayOptions::Mapping& mapping : mappings) {
    bool known = mapping.device.empty();
    for (size_t device = 0; device < target_of_device->size(); ++device) {
      const std::string name = static_cast<int>(device) < header.devices_size()
                                   ? header.devices(static_cast<int>(device)).name()
                                   : "";
      if (mapping.device.empty() ? (*target_of_device)[device] || left_out[device]
                                 : mapping.device != name) {
        continue;
      }
      known = true;
      left_out[device] = mapping.target_path == kLeaveOut;
      if (!left_out[device]) (*target_of_device)[device] = target(mapping.target_path);
    }
    if (!known) {
      std::string names;
      for (const proto::Device& one : header.devices()) names += " " + one.name();
      return Invalid("the trace has no device \"" + mapping.device + "\"; it has:" + names);
    }
  }
  for (size_t device = 0; device < target_of_device->size(); ++device) {
    if ((*target_of_device)[device] || left_out[device]) continue;
    if (!NeedsTarget(options)) {
      (*target_of_device)[device] = target("");
    } else if (device < footprint.devices.size() && footprint.devices[device].records > 0) {
      const std::string name = header.devices(static_cast<int>(device)).name();
      return Invalid(
          fmt::format("the trace has {} of {}, for which no target is named\n"
                      "  try:  --map {}=TARGET, or --map {}=none to leave them out",
                      FormatCounted(footprint.devices[device].records, "I/O"), name, name, name));
    }
  }
  if (paths->empty()) return Invalid("every device of the trace is left out");
  return OkStatus();
}

// Refuses, before the first write, operations in the trace that the target does not support.
Status CheckFit(const ReplayOptions& options, Remap remap, const DeviceFootprint& footprint,
                const PlanTarget& target, const std::string& path) {
  if (footprint.end_bytes == 0) return OkStatus();
  uint64_t end_bytes = footprint.end_bytes;
  if (remap == Remap::kOffset) {
    const AddressMap map({.remap = remap, .offset_bytes = options.remap_offset_bytes},
                         footprint.begin_bytes, footprint.end_bytes, UINT64_MAX >> 1, 1);
    const Result<AddressMap::Place> first = map.Map(Lba(footprint.begin_bytes / kSectorBytes), 1);
    if (!first.ok()) {
      return Status(StatusCode::kFailedPrecondition,
                    "the offset moves the lowest address of the trace below zero");
    }
    end_bytes = footprint.end_bytes - footprint.begin_bytes + first->offset_bytes;
  }
  if ((remap == Remap::kRefuse || remap == Remap::kOffset) && end_bytes > target.size_bytes) {
    return Status(
        StatusCode::kFailedPrecondition,
        fmt::format("{} is too small: the trace reaches up to {} ({} bytes), the target ends at {}"
                    "\n  try:  {}",
                    path, FormatBytes(end_bytes), end_bytes, FormatBytes(target.size_bytes),
                    options.scored
                        ? "a target at least as large, as a score is of the whole trace at its own "
                          "addresses;\n        or a file that --create makes as large as needed"
                        : "a larger target, or replay --remap offset, scale or wrap, which the "
                          "result\n        names"));
  }
  if (footprint.longest_bytes > target.size_bytes) {
    return Status(
        StatusCode::kFailedPrecondition,
        fmt::format("{} is too small: the trace has a request of {}, the target ends at {}\n"
                    "  try:  a larger target{}",
                    path, FormatBytes(footprint.longest_bytes), FormatBytes(target.size_bytes),
                    options.scored ? "" : ", or replay --skip-discards where that is a discard"));
  }
  if (!options.align && !footprint.AlignedTo(target.block_bytes)) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} has blocks of {} bytes, but the trace has requests that are no "
                              "whole blocks\n  try:  {}",
                              path, target.block_bytes,
                              options.scored ? "a target with smaller blocks, on which a score can "
                                               "be had"
                                             : "replay --align, which widens them, counted"));
  }
  return OkStatus();
}

Status CheckOps(const ReplayOptions& options, const Footprint& footprint, const PlanTarget& target,
                const std::string& path) {
  if (options.unsupported != "fail") return OkStatus();
  const auto count = [&footprint](Op op) {
    return footprint.records_by_op[static_cast<size_t>(op)];
  };
  const auto refuse = [&](Op op, const std::string& way_out) {
    return Status(
        StatusCode::kFailedPrecondition,
        fmt::format("the trace has {}, which {} cannot do\n  try:  {}",
                    FormatCounted(count(op), std::string(OpName(op)) + " I/O"), path, way_out));
  };
  const bool changes = !options.skip_writes;
  const bool discards = changes && !options.skip_discards;
  if (discards && count(Op::kDiscard) > 0 && !target.abilities.discard) {
    return refuse(Op::kDiscard, "--unsupported skip or emulate, or replay --skip-discards");
  }
  if (changes && count(Op::kWriteZeroes) > 0 && !target.abilities.write_zeroes) {
    return refuse(Op::kWriteZeroes, "--unsupported skip or emulate");
  }
  if (discards && count(Op::kSecureErase) > 0 && !target.abilities.secure_erase) {
    return refuse(Op::kSecureErase, "--unsupported skip or emulate, or replay --skip-discards");
  }
  if (discards && count(Op::kSecureErase) > 0 && !options.secure_erase) {
    return Status(
        StatusCode::kFailedPrecondition,
        fmt::format("the trace has {} secure erases, which destroy data beyond recovery\n"
                    "  try:  --unsupported skip or emulate, or replay --secure-erase to do them",
                    FormatCount(count(Op::kSecureErase))));
  }
  for (int op = static_cast<int>(Op::kZoneReset); changes && op < kOpCount; ++op) {
    if (count(static_cast<Op>(op)) > 0) return refuse(static_cast<Op>(op), "--unsupported skip");
  }
  return OkStatus();
}

// The substitute for a target if the engine touches none: as large as the trace needs or the
// options say, and supporting every operation.
PlanTarget MadeUpTarget(const ReplayOptions& options, const Footprint& footprint) {
  PlanTarget target{
      .size_bytes = options.made_up_bytes,
      .block_bytes = options.made_up_block_bytes,
      .abilities = {.discard = true, .write_zeroes = true, .secure_erase = true, .fua = true}};
  if (target.size_bytes > 0) return target;
  for (const DeviceFootprint& device : footprint.devices) {
    target.size_bytes = std::max(target.size_bytes, device.end_bytes);
  }
  return target;
}

Status OpenTargets(const ReplayOptions& options, const Footprint& footprint,
                   const std::vector<std::string>& paths, ReplaySetup* setup) {
  for (const std::string& path : paths) {
    if (!NeedsTarget(options)) {
      PlanTarget made_up = MadeUpTarget(options, footprint);
      proto::Device device;
      device.set_name(options.engine);
      if (options.engine == "simulated") {
        device.set_model("simulated drive " + options.simulated_drive);
      }
      device.set_size_bytes(made_up.size_bytes);
      setup->descriptions.push_back(std::move(device));
      setup->plan.targets.push_back(made_up);
      continue;
    }
    ASSIGN_OR_RETURN(std::unique_ptr<Target> target,
                     Target::Open(path, {.write = !options.skip_writes,
                                         .overwrite = options.overwrite,
                                         .keep_paths = {options.trace_path, options.result_path},
                                         .identity = options.IdentityAt(path)}));
    if (!options.queue_settings.empty() && !target->is_block_device()) {
      return Invalid(path + " is a file: the queue of the disk below it is not its own to set\n" +
                     "  try:  a block device as the target, or without queue settings");
    }
    setup->plan.targets.push_back({.size_bytes = target->size_bytes(),
                                   .block_bytes = target->logical_block_bytes(),
                                   .abilities = target->abilities()});
    setup->descriptions.push_back(target->description());
    setup->targets.push_back(std::move(target));
  }
  return OkStatus();
}

std::string PayloadName(const ReplayOptions& options) {
  if (options.verify) return "stamped";
  if (options.repeat_payload) return "repeat";
  std::string name = fmt::format("compressible {} %", options.compressible_percent);
  if (options.dedupe_percent > 0) name += fmt::format(", dedupe {} %", options.dedupe_percent);
  return name;
}

// Lists recorded devices that touch the same addresses of one target: "sda, sdb on /dev/sdx".
std::vector<std::string> SharedTargets(const ReplayOptions& options, Remap remap,
                                       const Footprint& footprint, const ReplaySetup& setup) {
  // Moved by the same distance or not at all, their addresses keep their distance.
  const bool as_recorded = remap == Remap::kRefuse ||
                           (remap == Remap::kOffset && options.remap_offset_bytes.has_value());
  const TargetOfDevice& target_of = setup.plan.target_of_device;
  const auto overlap = [&](size_t a, size_t b) {
    const DeviceFootprint& one = footprint.devices[a];
    const DeviceFootprint& other = footprint.devices[b];
    if (a == b || one.end_bytes == 0 || other.end_bytes == 0) return false;
    return !as_recorded || (one.begin_bytes < other.end_bytes && other.begin_bytes < one.end_bytes);
  };
  const proto::Header& header = setup.stream->header();
  const size_t devices =
      std::min(footprint.devices.size(), static_cast<size_t>(header.devices_size()));
  std::vector<std::string> shared;
  for (size_t target = 0; target < setup.targets.size(); ++target) {
    std::string names;
    for (size_t device = 0; device < devices; ++device) {
      bool meets = false;
      for (size_t other = 0; other < devices; ++other) {
        meets |=
            target_of[device] == target && target_of[other] == target && overlap(device, other);
      }
      if (!meets) continue;
      names += (names.empty() ? "" : ", ") + header.devices(static_cast<int>(device)).name();
    }
    if (!names.empty()) shared.push_back(names + " on " + setup.targets[target]->path());
  }
  return shared;
}

Status NamePlan(const ReplayOptions& options, ReplaySetup* setup) {
  proto::ReplayPlan& named = setup->named;
  if (options.workload) {
    named.set_trace_name(DescribeWorkload(*options.workload));
  } else if (options.records) {
    named.set_trace_name(options.records->name);
  } else {
    named.set_trace_name(std::filesystem::path(options.trace_path).filename().string());
  }
  for (const proto::Device& device : setup->descriptions) *named.add_targets() = device;
  named.set_rule(CanonicalRule(options));
  named.set_speed(options.speed);
  if (options.idle_cap_ns) named.set_idle_cap_ns(*options.idle_cap_ns);
  if (options.rule == TimingRule::kQueueDepth) named.set_queue_depth(options.queue_depth);
  if (!IsPunctual(options.rule)) named.set_think(options.keep_think_time ? "keep" : "drop");
  if (options.from_ns) named.set_from_ns(*options.from_ns);
  if (options.to_ns) named.set_to_ns(*options.to_ns);
  named.set_loops(static_cast<uint32_t>(options.loops));
  named.set_remap(options.remap);
  named.set_unsupported(options.unsupported);
  if (options.skip_writes) named.add_filters("skip-writes");
  if (options.skip_discards) named.add_filters("skip-discards");
  for (const ReplayOptions::Mapping& mapping : options.mappings) {
    if (mapping.target_path == kLeaveOut)
      named.add_filters("device " + mapping.device + " left out");
  }
  if (options.align) named.add_filters("align");
  if (!options.order_overlaps) named.add_filters("overlaps not ordered");
  named.set_payload(PayloadName(options));
  named.set_state(options.state);
  named.set_cycle(options.cycle);
  named.set_verify(options.verify ? "stamps, reads and final sweep" : "");
  named.set_on_error(options.on_error);
  return OkStatus();
}

}  // namespace

std::string CanonicalRule(const ReplayOptions& options) {
  std::string rule;
  switch (options.rule) {
    case TimingRule::kTimed:
      rule = fmt::format("timed x{:g}", options.speed);
      break;
    case TimingRule::kClosed:
      rule = options.speed == 1.0 ? "closed" : fmt::format("closed x{:g}", options.speed);
      break;
    case TimingRule::kMaxOrder:
      rule = "max order";
      break;
    case TimingRule::kQueueDepth:
      rule = fmt::format("max qd={}", options.queue_depth);
      break;
  }
  if (!IsPunctual(options.rule) && options.keep_think_time) {
    rule += " think=keep";
    if (options.speed != 1.0) rule += fmt::format(" x{:g}", options.speed);
  }
  if (options.idle_cap_ns) {
    const int64_t cap_ns = *options.idle_cap_ns;
    rule += cap_ns % kNanosPerMilli == 0   ? fmt::format(" idle-cap {}ms", cap_ns / kNanosPerMilli)
            : cap_ns % kNanosPerMicro == 0 ? fmt::format(" idle-cap {}us", cap_ns / kNanosPerMicro)
                                           : fmt::format(" idle-cap {}ns", cap_ns);
  }
  if (options.from_ns || options.to_ns) {
    rule += fmt::format(" from {}", FormatDurationNs(options.from_ns.value_or(0)));
    if (options.to_ns) rule += fmt::format(" to {}", FormatDurationNs(*options.to_ns));
  }
  if (options.threads > 1) rule += fmt::format(" threads={}", options.threads);
  if (options.loops != 1) {
    rule += options.loops == 0 ? " repeated" : fmt::format(" loop {}", options.loops);
  }
  return rule;
}

Result<Footprint> FindFootprint(const ReplayOptions& options, const std::atomic<bool>& stop) {
  if (options.workload) return FootprintOfWorkload(*options.workload);
  if (options.records) return PassOver(options, {}, stop);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceStream> stream,
                   TraceStream::Open(options.trace_path, PieceOf(options)));
  if (const std::optional<proto::Summary>& summary = stream->summary()) {
    std::optional<Footprint> whole =
        FootprintFromSummary(*summary, stream->header().devices_size());
    if (whole) return *std::move(whole);
  }
  return PassOver(options, {}, stop);
}

Result<ExpectedTimes> FindExpectedTimes(const ReplayOptions& options, const PlanOptions& plan,
                                        const std::atomic<bool>& stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> stream,
                   OpenStream(options, /*one_pass=*/false));
  Schedule schedule(plan.speed, plan.idle_cap_ns);
  ExpectedTimes times;
  RETURN_IF_ERROR(ForEachRecord(stream.get(), stop, [&](const IoRecord& record, uint64_t) {
    // Skipped I/Os keep their time.
    const int64_t due_ns = schedule.Advance(record);
    if (Plan::SkipReason(plan, record) == nullptr) times.Add(due_ns);
  }));
  return times;
}

namespace {

// What discards leave out. Passes over one trace follow each other like the runs of a campaign.
Result<std::shared_ptr<const KeptBlocks>> FindKept(const ReplayOptions& options,
                                                   const PlanOptions& plan,
                                                   const Footprint& footprint,
                                                   const std::atomic<bool>& stop) {
  bool discards = false;
  for (int op = 0; op < kOpCount; ++op) {
    discards |= KeptBlocks::Empties(static_cast<Op>(op)) && footprint.records_by_op[op] > 0;
  }
  if (!discards || options.loops == 1 || options.trace_path.empty()) return options.kept;
  const auto kept = std::make_shared<KeptBlocks>();
  for (const bool follows : {true, false}) {
    ASSIGN_OR_RETURN(const std::unique_ptr<RecordStream> pass,
                     OpenStream(options, /*one_pass=*/true));
    RETURN_IF_ERROR(ForEachRecord(pass.get(), stop, [&](const IoRecord& io, uint64_t) {
      const bool replayed = Plan::SkipReason(plan, io) == nullptr;
      if (!follows) kept->Add(io, replayed);
      if (follows && replayed && io.op == Op::kRead) kept->Follow(io);
    }));
  }
  kept->Finish();
  return std::shared_ptr<const KeptBlocks>(kept);
}

}  // namespace

Status HashTrace(const ReplayOptions& options, ReplaySetup* setup) {
  if (options.trace_path.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> file, OpenForReading(options.trace_path));
  ASSIGN_OR_RETURN(*setup->named.mutable_trace_sha256(), Sha256Hex(file.get()));
  return OkStatus();
}

Result<ReplaySetup> SetUpReplay(const ReplayOptions& options, const std::atomic<bool>& stop) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const Remap remap, ParseRemap(options.remap));
  ReplaySetup setup;
  ASSIGN_OR_RETURN(setup.plan.unsupported, ParseUnsupported(options.unsupported));
  ASSIGN_OR_RETURN(setup.stream, OpenStream(options, /*one_pass=*/false));
  setup.records = setup.stream->records();
  setup.span_ns = setup.stream->span_ns();
  ASSIGN_OR_RETURN(Footprint footprint, FindFootprint(options, stop));

  std::vector<std::string> paths;
  RETURN_IF_ERROR(ResolveMappings(options, setup.stream->header(), footprint, &paths,
                                  &setup.plan.target_of_device));
  RETURN_IF_ERROR(OpenTargets(options, footprint, paths, &setup));
  const bool needs_completions =
      options.rule == TimingRule::kMaxOrder || options.rule == TimingRule::kClosed;
  if (needs_completions && !footprint.has_completions && footprint.records > 0) {
    return Status(
        StatusCode::kFailedPrecondition,
        "the trace does not say when its I/Os completed, so nobody knows what each one waited for\n"
        "  try:  the original timing, or --queue-depth N");
  }
  const auto check = [&]() -> Status {
    for (size_t device = 0; device < footprint.devices.size(); ++device) {
      const std::optional<uint32_t> target = setup.plan.target_of_device[device];
      if (!target || footprint.devices[device].records == 0) continue;
      RETURN_IF_ERROR(CheckFit(options, remap, footprint.devices[device],
                               setup.plan.targets[*target], paths[*target]));
      RETURN_IF_ERROR(CheckOps(options, footprint, setup.plan.targets[*target], paths[*target]));
    }
    return OkStatus();
  };
  if (Status fits = check(); !fits.ok()) {
    // The summary covers the whole trace; the I/Os that do not fit may all be filtered out.
    if (options.workload || options.records) return fits;
    ASSIGN_OR_RETURN(footprint, PassOver(options, setup.plan.target_of_device, stop));
    RETURN_IF_ERROR(check());
  }
  for (size_t device = 0; device < setup.plan.target_of_device.size(); ++device) {
    const DeviceFootprint touched =
        device < footprint.devices.size() ? footprint.devices[device] : DeviceFootprint{};
    const PlanTarget& target = setup.plan.targets[setup.plan.target_of_device[device].value_or(0)];
    setup.plan.address_map_of_device.emplace_back(
        AddressMapOptions{
            .remap = remap, .offset_bytes = options.remap_offset_bytes, .align = options.align},
        touched.begin_bytes, touched.end_bytes, target.size_bytes, target.block_bytes);
  }
  setup.plan.rule = options.rule;
  setup.plan.speed = options.speed;
  setup.plan.idle_cap_ns = options.idle_cap_ns;
  setup.plan.keep_think_time = options.keep_think_time;
  setup.plan.skip_writes = options.skip_writes;
  setup.plan.skip_discards = options.skip_discards;
  setup.plan.secure_erase = options.secure_erase;
  ASSIGN_OR_RETURN(setup.plan.kept, FindKept(options, setup.plan, footprint, stop));
  RETURN_IF_ERROR(NamePlan(options, &setup));
  for (const std::string& one : SharedTargets(options, remap, footprint, setup)) {
    setup.named.add_shared(one);
  }
  return setup;
}

}  // namespace blktape
