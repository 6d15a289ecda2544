#include "analysis/profile_counts.h"

#include <algorithm>
#include <optional>
#include <span>

#include "analysis/plausible.h"
#include "base/saturating.h"
#include "base/units.h"

namespace blktape {
namespace {

using Fields = RecordColumns;

// Devices with as many exact samples as the whole trace; all rows together take 40 MiB at most.
constexpr size_t kExactDevices = 16;
constexpr uint64_t kDeviceSamples = 8192;

constexpr uint8_t kRead = static_cast<uint8_t>(Op::kRead);
constexpr uint8_t kWrite = static_cast<uint8_t>(Op::kWrite);

void AddTotals(const Profile::Totals& from, Profile::Totals* to) {
  to->ios += from.ios;
  to->bytes = SaturatingAdd(to->bytes, from.bytes);
}

void CountOne(uint64_t bytes, Profile::Totals* totals) {
  ++totals->ios;
  totals->bytes = SaturatingAdd(totals->bytes, bytes);
}

template <typename Row>
Profile::Totals& TotalsOf(uint8_t op, Row* row) {
  return op == kRead ? row->reads : op == kWrite ? row->writes : row->other;
}

template <typename Row>
void AddRow(const Row& from, Row* to) {
  AddTotals(from.reads, &to->reads);
  AddTotals(from.writes, &to->writes);
  AddTotals(from.other, &to->other);
}

void MergeInto(const Profile::Latencies& from, Profile::Latencies* to) {
  to->q2d.Merge(from.q2d);
  to->d2c.Merge(from.d2c);
  to->q2c.Merge(from.q2c);
}

bool IsSeen(const Profile::ProcessRow& row) {
  return row.reads.ios + row.writes.ios + row.other.ios > 0;
}

// Kinds of a record that is not empty, by operation, then by two marks: 2, a flag for which
// somebody waits for a write; 1, derived.
constexpr uint32_t kWaitedWrite = kFlagSync | kFlagFua | kFlagPreflush;
constexpr std::array<uint8_t, 4 * kOpCount> kKindsOf = [] {
  std::array<uint8_t, 4 * kOpCount> of{};
  for (uint8_t op = 0; op < kOpCount; ++op) {
    for (size_t marks = 0; marks < 4; ++marks) {
      const bool foreground = op == kRead || op == static_cast<uint8_t>(Op::kFlush) ||
                              (op == kWrite && (marks & 2) != 0);
      uint8_t& kinds = of[4 * op + marks];
      if (op == kRead || op == kWrite) kinds |= ProfileBatch::kData;
      if (foreground) kinds |= ProfileBatch::kForeground;
      if (foreground && (marks & 1) == 0) kinds |= ProfileBatch::kWaited;
    }
  }
  return of;
}();

// Whether a time is not plausible, quickly: also for one at the very edge, which is.
uint64_t LooksImplausible(int64_t ns) {
  return (static_cast<uint64_t>(ns) + static_cast<uint64_t>(kPlausibleNs)) >> 61;
}
static_assert(kPlausibleNs == int64_t{1} << 60);

}  // namespace

// Durations are gathered by operation and class of wait before they are counted.
struct ProfileCounts::Scratch {
  static constexpr size_t kRows = 1024;
  static constexpr size_t kKeys = 2 * kOpCount;
  struct Gathered {
    std::array<size_t, kKeys> count{};
    std::array<std::array<int64_t, kRows>, kKeys> ns;
    void Add(size_t key, int64_t one_ns) { ns[key][count[key]++] = one_ns; }
    std::span<const int64_t> of(size_t key) const { return {ns[key].data(), count[key]}; }
  };
  Gathered q2d, d2c, q2c;
};

ProfileCounts::ProfileCounts() : scratch_(std::make_unique<Scratch>()) {}
ProfileCounts::~ProfileCounts() = default;

Profile::DeviceRow& ProfileCounts::Device(uint32_t index) {
  const size_t at = std::min<size_t>(index, kMaxDevices);  // the last row lumps the rest
  while (at >= devices_.size()) {
    const uint64_t samples =
        devices_.size() < kExactDevices ? LatencyHistogram::kExactSamples : kDeviceSamples;
    devices_.emplace_back().d2c = LatencyHistogram(samples);
  }
  return devices_[at];
}

void ProfileCounts::RemoveImplausible(RecordColumns* columns) {
  const auto clean = [&](const std::vector<int64_t>& times_ns, uint16_t field) {
    if (times_ns.size() < columns->count) return;  // nobody has one
    uint64_t any = 0;
    for (size_t i = 0; i < columns->count; ++i) any |= LooksImplausible(times_ns[i]);
    if (any == 0) return;
    for (size_t i = 0; i < columns->count; ++i) {
      if (!columns->Has(i, field) || IsPlausibleNs(times_ns[i])) continue;
      columns->present[i] &= static_cast<uint16_t>(~field);
      ++sums_.implausible_times;
    }
  };
  clean(columns->queue_ns, Fields::kQueue);
  clean(columns->issue_ns, Fields::kIssue);
  clean(columns->complete_ns, Fields::kComplete);
}

void ProfileCounts::Add(ProfileBatch* batch) {
  const RecordColumns& columns = *batch->columns;
  if (columns.count == 0) return;
  uint32_t differs = 0;
  for (size_t i = 0; i < columns.count; ++i) differs |= columns.device[i] ^ columns.device[0];
  const bool one_device = differs == 0;
  batch->kinds.resize(columns.count);
  batch->odd_sizes.clear();
  // So many that they stay in the nearest cache from one figure to the next.
  for (size_t begin = 0; begin < columns.count; begin += Scratch::kRows) {
    const Rows rows = {begin, std::min(columns.count, begin + Scratch::kRows), one_device};
    AddKinds(rows, batch);
    AddSums(*batch, rows);
    AddProcesses(columns, rows);
    AddSizes(rows, batch);
    AddAddresses(*batch, rows);
    AddTimes(*batch, rows);
  }
}

// As IsForeground and WaitClassOf (analysis/foreground.h) have it.
void ProfileCounts::AddKinds(const Rows& rows, ProfileBatch* batch) {
  const RecordColumns& columns = *batch->columns;
  for (size_t i = rows.begin; i < rows.end; ++i) {
    const uint32_t flags = columns.flags[i];
    const size_t marks =
        ((flags & kWaitedWrite) != 0 ? 2 : 0) | ((flags & kFlagDerived) != 0 ? 1 : 0);
    const auto no_data = static_cast<uint8_t>(columns.bytes[i] == 0 ? ProfileBatch::kData : 0);
    batch->kinds[i] = static_cast<uint8_t>(kKindsOf[4 * columns.op[i] + marks] & ~no_data);
  }
}

void ProfileCounts::AddSums(const ProfileBatch& batch, const Rows& rows) {
  const RecordColumns& columns = *batch.columns;
  std::array<Profile::Totals, Scratch::kKeys> by_key{};
  uint64_t data = 0, fua_writes = 0, sync_writes = 0, flushes_derived = 0;
  for (size_t i = rows.begin; i < rows.end; ++i) {
    const uint8_t op = columns.op[i];
    const uint32_t flags = columns.flags[i];
    const uint8_t kinds = batch.kinds[i];
    CountOne(columns.bytes[i], &by_key[2 * op + ((kinds & ProfileBatch::kWaited) != 0 ? 1 : 0)]);
    const bool write = op == kWrite;
    data += kinds & ProfileBatch::kData;
    fua_writes += write && (flags & kFlagFua) != 0;
    sync_writes += write && (flags & kFlagSync) != 0;
    flushes_derived += op == static_cast<uint8_t>(Op::kFlush) && (flags & kFlagDerived) != 0;
  }
  static_assert(ProfileBatch::kData == 1);
  sums_.ios += rows.end - rows.begin;
  sums_.data_requests += data;
  sums_.fua_writes += fua_writes;
  sums_.sync_writes += sync_writes;
  sums_.flushes_derived += flushes_derived;
  for (size_t op = 0; op < kOpCount; ++op) {
    AddTotals(by_key[2 * op], &sums_.by_op[op]);
    AddTotals(by_key[2 * op + 1], &sums_.by_op[op]);
    AddTotals(by_key[2 * op + 1], &sums_.foreground);
    if (!rows.one_device) continue;
    Profile::Totals& of_device = TotalsOf(static_cast<uint8_t>(op), &Device(columns.device[0]));
    AddTotals(by_key[2 * op], &of_device);
    AddTotals(by_key[2 * op + 1], &of_device);
  }
  for (size_t i = rows.begin; !rows.one_device && i < rows.end; ++i) {
    CountOne(columns.bytes[i], &TotalsOf(columns.op[i], &Device(columns.device[i])));
  }
  uint64_t errors = 0, merged_bios = 0;
  for (size_t i = rows.begin; i < rows.end; ++i) {
    if (columns.Has(i, Fields::kError)) errors += columns.error[i] != 0;
    if (columns.Has(i, Fields::kMergedBios)) merged_bios += columns.merged_bios[i];
  }
  sums_.errors += errors;
  sums_.merged_bios += merged_bios;
}

void ProfileCounts::AddProcesses(const RecordColumns& columns, const Rows& rows) {
  for (size_t i = rows.begin; i < rows.end; ++i) {
    Profile::ProcessRow* row = &no_process_;
    if (columns.Has(i, Fields::kProcess)) {
      const uint32_t process = columns.process[i];
      if (process >= kMaxProcesses) {
        ++sums_.processes_lumped;
        continue;
      }
      if (process >= processes_.size()) processes_.resize(process + 1);
      row = &processes_[process];
    }
    CountOne(columns.bytes[i], &TotalsOf(columns.op[i], row));
  }
}

void ProfileCounts::AddSizes(const Rows& rows, ProfileBatch* batch) {
  const RecordColumns& columns = *batch->columns;
  for (size_t i = rows.begin; i < rows.end; ++i) {
    const uint8_t op = columns.op[i];
    const uint64_t bytes = columns.bytes[i];
    SizeHistogram* sizes = nullptr;
    if ((batch->kinds[i] & ProfileBatch::kData) != 0) {
      sizes = op == kRead ? &sums_.read_sizes : &sums_.write_sizes;
    } else if (op == static_cast<uint8_t>(Op::kDiscard)) {
      sizes = &sums_.discard_sizes;
    } else {
      continue;
    }
    if (SizeHistogram::IsUsual(bytes)) [[likely]] {
      sizes->Add(bytes);
    } else {
      batch->odd_sizes.emplace_back(op, bytes);
    }
  }
}

void ProfileCounts::AddAddresses(const ProfileBatch& batch, const Rows& rows) {
  const RecordColumns& columns = *batch.columns;
  constexpr uint64_t kAlignment = 4096;
  uint64_t end_bytes = 0;
  Profile::Alignment aligned[2];
  for (size_t i = rows.begin; i < rows.end; ++i) {
    if ((batch.kinds[i] & ProfileBatch::kData) == 0 || !columns.Has(i, Fields::kLba)) continue;
    const uint64_t offset_bytes = Lba(columns.lba_sectors[i]).bytes();
    const uint64_t bytes = columns.bytes[i];
    Profile::Alignment& of_op = aligned[columns.op[i] == kWrite ? 1 : 0];
    const bool begin_4k = offset_bytes % kAlignment == 0;
    ++of_op.requests;
    of_op.begin_4k += begin_4k;
    of_op.whole_4k += begin_4k && bytes % kAlignment == 0;
    const uint64_t ends_bytes = SaturatingAdd(offset_bytes, bytes);
    if (rows.one_device) {
      end_bytes = std::max(end_bytes, ends_bytes);
    } else {
      uint64_t& most = Device(columns.device[i]).max_end_bytes;
      most = std::max(most, ends_bytes);
    }
  }
  if (rows.one_device) {
    uint64_t& most = Device(columns.device[0]).max_end_bytes;
    most = std::max(most, end_bytes);
  }
  const auto add = [](const Profile::Alignment& from, Profile::Alignment* to) {
    to->requests += from.requests;
    to->begin_4k += from.begin_4k;
    to->whole_4k += from.whole_4k;
  };
  add(aligned[0], &sums_.aligned_reads);
  add(aligned[1], &sums_.aligned_writes);
}

void ProfileCounts::AddLateness(const RecordColumns& columns, size_t index) {
  Profile::Lateness& lateness = sums_.lateness;
  const int64_t late_ns = columns.issue_ns[index] - columns.queue_ns[index];
  if (!columns.Has(index, Fields::kBacklog)) {  // of a result that tells only whether
    ((columns.flags[index] & kFlagBacklog) != 0 ? lateness.backlog : lateness.host).Add(late_ns);
    return;
  }
  const auto backlog_ns =
      static_cast<int64_t>(std::min(columns.backlog_ns[index], static_cast<uint64_t>(late_ns)));
  lateness.host.Add(late_ns - backlog_ns);
  if (backlog_ns > 0) lateness.backlog.Add(backlog_ns);
}

void ProfileCounts::AddTimes(const ProfileBatch& batch, const Rows& rows) {
  const RecordColumns& columns = *batch.columns;
  Scratch& scratch = *scratch_;
  scratch.q2d.count = {};
  scratch.d2c.count = {};
  scratch.q2c.count = {};
  uint64_t without_issue = 0, without_completion = 0, negative = 0;
  for (size_t i = rows.begin; i < rows.end; ++i) {
    const uint16_t has = columns.present[i];
    const bool queued = (has & Fields::kQueue) != 0;
    const bool issued = (has & Fields::kIssue) != 0;
    const bool completed = (has & Fields::kComplete) != 0;
    without_issue += !issued;
    without_completion += !completed;
    // A read or write of no data is counted, but is no request that a latency would tell about.
    const bool data = (batch.kinds[i] & ProfileBatch::kData) != 0;
    if (!data && columns.op[i] <= kWrite) continue;
    const bool waited = (batch.kinds[i] & ProfileBatch::kWaited) != 0;
    const size_t key = 2 * columns.op[i] + (waited ? 1 : 0);
    if (queued && issued) {
      const int64_t q2d_ns = columns.issue_ns[i] - columns.queue_ns[i];
      if (q2d_ns < 0) {
        ++negative;
      } else {
        scratch.q2d.Add(key, q2d_ns);
        // Only the records of a result have an ordinal.
        if ((has & Fields::kOrdinal) != 0) AddLateness(columns, i);
      }
    }
    if (!completed) continue;
    if (issued) {
      const int64_t d2c_ns = columns.complete_ns[i] - columns.issue_ns[i];
      if (d2c_ns < 0) {
        ++negative;
      } else {
        scratch.d2c.Add(key, d2c_ns);
        if (!rows.one_device && data) Device(columns.device[i]).d2c.Add(d2c_ns);
      }
    }
    if (queued) {
      const int64_t q2c_ns = columns.complete_ns[i] - columns.queue_ns[i];
      if (q2c_ns >= 0) {
        scratch.q2c.Add(key, q2c_ns);
      } else if (!issued) {
        ++negative;
      }
    }
  }
  static_assert(kRead == 0 && kWrite == 1);
  sums_.without_issue += without_issue;
  sums_.without_completion += without_completion;
  sums_.negative_times += negative;
  for (size_t key = 0; key < Scratch::kKeys; ++key) {
    OpLatencies& of_op = latencies_[key / 2];
    Profile::Latencies& latency = key % 2 == 1 ? of_op.waited : of_op.background;
    latency.q2d.AddAll(scratch.q2d.of(key));
    latency.d2c.AddAll(scratch.d2c.of(key));
    latency.q2c.AddAll(scratch.q2c.of(key));
    if (rows.one_device && key / 2 <= kWrite) {
      Device(columns.device[0]).d2c.AddAll(scratch.d2c.of(key));
    }
  }
}

void ProfileCounts::Merge(const ProfileCounts& other) {
  const Profile& from = other.sums_;
  sums_.ios += from.ios;
  sums_.data_requests += from.data_requests;
  sums_.fua_writes += from.fua_writes;
  sums_.sync_writes += from.sync_writes;
  sums_.flushes_derived += from.flushes_derived;
  sums_.errors += from.errors;
  sums_.merged_bios += from.merged_bios;
  sums_.without_issue += from.without_issue;
  sums_.without_completion += from.without_completion;
  sums_.negative_times += from.negative_times;
  sums_.implausible_times += from.implausible_times;
  sums_.processes_lumped += from.processes_lumped;
  AddTotals(from.foreground, &sums_.foreground);
  for (size_t op = 0; op < kOpCount; ++op) {
    AddTotals(from.by_op[op], &sums_.by_op[op]);
    MergeInto(other.latencies_[op].waited, &latencies_[op].waited);
    MergeInto(other.latencies_[op].background, &latencies_[op].background);
  }
  sums_.lateness.host.Merge(from.lateness.host);
  sums_.lateness.backlog.Merge(from.lateness.backlog);
  sums_.read_sizes.Merge(from.read_sizes);
  sums_.write_sizes.Merge(from.write_sizes);
  sums_.discard_sizes.Merge(from.discard_sizes);
  for (Profile::Alignment Profile::* aligned :
       {&Profile::aligned_reads, &Profile::aligned_writes}) {
    (sums_.*aligned).requests += (from.*aligned).requests;
    (sums_.*aligned).begin_4k += (from.*aligned).begin_4k;
    (sums_.*aligned).whole_4k += (from.*aligned).whole_4k;
  }
  for (size_t i = 0; i < other.devices_.size(); ++i) {
    Profile::DeviceRow& row = Device(static_cast<uint32_t>(i));
    AddRow(other.devices_[i], &row);
    row.max_end_bytes = std::max(row.max_end_bytes, other.devices_[i].max_end_bytes);
    row.d2c.Merge(other.devices_[i].d2c);
  }
  if (processes_.size() < other.processes_.size()) processes_.resize(other.processes_.size());
  for (size_t id = 0; id < other.processes_.size(); ++id) {
    if (IsSeen(other.processes_[id])) AddRow(other.processes_[id], &processes_[id]);
  }
  AddRow(other.no_process_, &no_process_);
}

void ProfileCounts::MoveInto(Profile* profile) {
  profile->ios = sums_.ios;
  profile->by_op = sums_.by_op;
  profile->data_requests = sums_.data_requests;
  profile->foreground = sums_.foreground;
  profile->fua_writes = sums_.fua_writes;
  profile->sync_writes = sums_.sync_writes;
  profile->flushes_derived = sums_.flushes_derived;
  profile->errors = sums_.errors;
  profile->merged_bios = sums_.merged_bios;
  profile->without_issue = sums_.without_issue;
  profile->without_completion = sums_.without_completion;
  profile->negative_times = sums_.negative_times;
  profile->implausible_times = sums_.implausible_times;
  profile->processes_lumped = sums_.processes_lumped;
  profile->read_sizes.Merge(sums_.read_sizes);
  profile->write_sizes.Merge(sums_.write_sizes);
  profile->discard_sizes.Merge(sums_.discard_sizes);
  profile->aligned_reads = sums_.aligned_reads;
  profile->aligned_writes = sums_.aligned_writes;
  profile->lateness = std::move(sums_.lateness);
  for (size_t op = 0; op < kOpCount; ++op) {
    Profile::Latencies& latency = profile->latency_by_op[op];
    MergeInto(latencies_[op].waited, &latency);
    MergeInto(latencies_[op].background, &latency);
    MergeInto(latencies_[op].waited, &profile->foreground_latency);
    MergeInto(latency, &profile->all);
  }
  MergeInto(profile->latency_of(Op::kRead), &profile->data);
  MergeInto(profile->latency_of(Op::kWrite), &profile->data);
}

}  // namespace blktape
