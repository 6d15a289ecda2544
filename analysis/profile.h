#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/details.h"
#include "analysis/footprint_meter.h"
#include "analysis/in_flight.h"
#include "analysis/latency_histogram.h"
#include "analysis/size_histogram.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "format/io_record.h"
#include "format/loss.h"
#include "format/record_columns.h"
#include "format/trace.pb.h"
#include "format/trace_reader.h"

namespace blktape {

// What a trace holds, as numbers. docs/metrics.md defines each; in short:
// data requests = reads and writes with data; R = Q2C, V = D2C, lateness of a replay = Q2D.
struct Profile {
  struct Totals {
    uint64_t ios = 0;
    uint64_t bytes = 0;
  };
  // Of one kind of latency each. A negative difference is counted in `negative_times` instead.
  struct Latencies {
    LatencyHistogram q2d;  // queue to issue; the lateness in the result of a replay
    LatencyHistogram d2c;  // issue to completion: service
    LatencyHistogram q2c;  // queue to completion: response
  };
  // In the result of a replay, all operations: submission after due. Of what could have been issued
  // when due, this is the host's lateness; of what had to wait for a free slot or for a conflicting
  // I/O, the drive's backlog.
  struct Lateness {
    LatencyHistogram host;
    LatencyHistogram backlog;
  };
  struct Depth {
    uint64_t max = 0;
    double mean = 0;       // over observed_ns
    double mean_busy = 0;  // over the time in which at least one was in flight
    bool limited = false;  // the maximum is a lower bound
    std::array<InFlight::Class, InFlight::kClasses> classes{};
  };
  // What `replay --idle-cap` would cut of the trace's time.
  struct IdleCap {
    int64_t cap_ns = 0;
    int64_t cut_ns = 0;
  };
  // Data requests with an address, whose begin or whose begin and size are multiples of 4 KiB.
  struct Alignment {
    uint64_t requests = 0;
    uint64_t begin_4k = 0;
    uint64_t whole_4k = 0;
  };
  // A loss or a mark that says when, counted from the first arrival.
  struct Event {
    int64_t from_ns = 0;
    int64_t to_ns = 0;  // = from_ns for a moment
    std::string what;
  };
  // Time between two busy times, by length: [0] below 1 us, [1] 1 us to 10 us, ... [9] from 100 s
  // on.
  static constexpr int kIdleClasses = 10;
  struct IdleClass {
    uint64_t count = 0;
    int64_t total_ns = 0;
  };
  struct DeviceRow {
    std::string name;
    Totals reads, writes, other;
    uint64_t max_end_bytes = 0;
    LatencyHistogram d2c;  // data requests
  };
  struct ProcessRow {
    std::string name;  // "" = the trace does not say who
    Totals reads, writes, other;
  };

  // The trace.
  proto::Header header;
  std::optional<proto::Summary> summary;
  bool finished_cleanly = false;  // the trace has its summary and as many records as it says
  std::map<proto::LossReason, LossTally::Total> losses;
  uint64_t lost_events = 0;         // of reasons that mean lost events
  bool losses_uncountable = false;  // some loss among them has no count
  bool DataMissing() const { return lost_events > 0 || losses_uncountable || !finished_cleanly; }

  // The part of the trace that was looked at, counted from its first arrival; absent: no bound.
  std::optional<int64_t> from_ns, to_ns;
  bool has_window() const { return from_ns || to_ns; }
  std::vector<std::string> filters;  // which chose beside, "op=write", "device=sda"; empty: none

  // Counts.
  uint64_t ios = 0;
  std::array<Totals, kOpCount> by_op{};
  uint64_t data_requests = 0;
  Totals foreground;
  uint64_t fua_writes = 0;
  uint64_t sync_writes = 0;
  uint64_t flushes_derived = 0;                  // by the block layer, of flagged writes
  std::optional<uint64_t> flushes_asked;         // absent: the trace does not tell
  std::optional<uint64_t> flagged_writes_asked;  // likewise
  uint64_t errors = 0;
  uint64_t merged_bios = 0;
  uint64_t without_issue = 0;
  uint64_t without_completion = 0;
  uint64_t negative_times = 0;     // issue before queue, or completion before issue
  uint64_t implausible_times = 0;  // beyond +-2^60 ns: taken as absent
  uint64_t out_of_order = 0;       // arrivals before the arrival of the record before
  // I/Os whose issue lies so far before those of their neighbours that a part of their time at the
  // drive is in no busy time: busy_ns is then a lower bound.
  uint64_t busy_cut = 0;
  uint64_t wait_cut = 0;  // likewise of wait_ns, by where their wait begins
  const Totals& of(Op op) const { return by_op[static_cast<size_t>(op)]; }

  // Sizes: of data requests, and of what software queued before merging (empty if not recorded).
  SizeHistogram read_sizes, write_sizes, discard_sizes;
  SizeHistogram queued_read_sizes, queued_write_sizes;
  bool has_queued_sizes = false;
  // Of a window: which part of the trace the sizes as queued are of, since its first arrival. A
  // trace tells them by stretches of its records; all that overlap the window count whole.
  struct Stretch {
    int64_t from_ns = 0;
    int64_t to_ns = 0;
  };
  std::optional<Stretch> queued_stretch;

  // Addresses, data requests only, in order of issue.
  uint64_t sequential_any = 0;     // begins where the data request before it ended (definition A)
  uint64_t sequential_device = 0;  // ... of the same device (B, the headline)
  uint64_t sequential_direction = 0;  // ... of the same device and op (C)
  uint64_t sequential_reads = 0;      // those of B that are reads; the others are writes
  Alignment aligned_reads, aligned_writes;
  FootprintMeter::Sizes footprint;
  uint64_t max_end_bytes = 0;

  // Time.
  std::optional<int64_t> first_arrival_ns;
  int64_t duration_ns = 0;             // last arrival - first arrival
  int64_t observed_ns = 0;             // last arrival or completion - first arrival
  std::optional<int64_t> recorded_ns;  // from start to end of the recording, where the trace tells
  int64_t busy_ns = 0;                 // union of all [issue, completion]
  int64_t idle_ns = 0;                 // observed_ns - busy_ns
  int64_t wait_ns = 0;  // union of all times in which somebody waited for an I/O (docs/metrics.md)
  std::array<IdleClass, kIdleClasses> idle{};
  std::array<IdleCap, 6> idle_caps{
      {{1'000'000}, {10'000'000}, {25'000'000}, {100'000'000}, {1'000'000'000}, {10'000'000'000}}};
  Depth depth;      // data requests
  Depth depth_all;  // all operations

  // Latency.
  Latencies data;  // data requests: the headline
  Latencies all;   // all operations
  Latencies foreground_latency;
  Lateness lateness;
  std::array<Latencies, kOpCount> latency_by_op;
  const Latencies& latency_of(Op op) const { return latency_by_op[static_cast<size_t>(op)]; }

  std::vector<DeviceRow> devices;     // in the header's order
  std::vector<ProcessRow> processes;  // most bytes first
  uint64_t processes_lumped = 0;      // I/Os of processes beyond the table's bound, in no row

  // I/Os by arrival in at most kActivitySteps steps, for a picture in one line.
  static constexpr size_t kActivitySteps = 60;
  int64_t activity_step_ns = 0;
  std::vector<uint64_t> activity;

  static constexpr size_t kMostEvents = 200;
  std::vector<Event> events;  // in the order of the trace
  uint64_t events_left_out = 0;

  std::shared_ptr<const Details> details;  // null unless ProfileOptions.details
};

struct ProfileOptions {
  std::optional<uint32_t> device = {};  // only this index of Header.devices
  // Only records whose arrival is in [from, to) after the first arrival of the trace.
  std::optional<int64_t> from_ns = {};
  std::optional<int64_t> to_ns = {};
  bool footprint = true;  // false leaves Profile.footprint empty and saves its memory
  bool details = false;   // fills Profile.details: about as much time again, and some 16 MiB
  // Of ProfileTrace: so many threads, the caller's among them. Absent: as many as the machine has
  // CPUs for. The result does not depend on it.
  std::optional<int> threads = {};

  // Which records to look at besides, by all but time and process. Several threads ask at once.
  using Keeps = std::function<bool(const IoRecord&)>;
  struct Choice {
    Keeps keeps = {};
    // Whether frames with such contents may hold a record that is looked at; null: all may.
    std::function<bool(const proto::FrameContents&)> frames = {};
  };
  // Of ProfileTrace: makes it for that trace; absent: all.
  std::function<Result<Choice>(const TraceReader&)> choose = {};
  std::vector<std::string> processes = {};  // of ProfileTrace: only of these names; empty: all
  std::vector<std::string> filters = {};    // what both mean, for Profile.filters
};

// Computes a Profile in one pass over the records, in their order. Memory is bounded whatever the
// length of the trace: at most some 110 MiB, typically 5. Not thread-safe.
class ProfileBuilder : public TraceObserver {
 public:
  // The columns that Add() looks at.
  static constexpr uint16_t kFields =
      RecordColumns::kLba | RecordColumns::kQueue | RecordColumns::kIssue |
      RecordColumns::kComplete | RecordColumns::kError | RecordColumns::kProcess |
      RecordColumns::kMergedBios | RecordColumns::kOrdinal | RecordColumns::kBacklog;

  explicit ProfileBuilder(const ProfileOptions& options = {});
  ~ProfileBuilder() override;

  // The trace's header, where it is known before its records: hours of the day need its clocks.
  void Begins(const proto::Header& header);
  // What may be known of a trace before its records: its first arrival, from which options count
  // (else that of the first record that has one), and from it steps of time and address get a good
  // length at once. Call first, if at all.
  void Expect(const proto::Summary& summary);
  void Add(const IoRecord& record);
  // The same for many at once, which it may change.
  void Add(std::shared_ptr<RecordColumns> records);
  // Before the first record: which records count, beside ProfileOptions. `name_of` gives the name
  // of a process whose id has come, on the thread that adds records.
  void Filter(ProfileOptions::Keeps keeps, std::function<std::string_view(uint32_t)> name_of);
  // So many records of the trace were passed over, none of which counts.
  void PassedOver(uint64_t records);
  // Not all of the trace was read, which has this summary: losses that it knows of count.
  void ReadInPart(const proto::Summary& summary);
  // Before the first record: `pool` does a part of the work from now on, to the same result. It
  // must outlive the builder.
  void WorkOn(TaskPool* pool);
  void OnLoss(const proto::Loss& loss) override;
  void OnMark(const proto::Mark& mark) override;
  void OnAnchor(const proto::ClockAnchor& anchor) override;
  void OnQueuedSizes(const proto::QueuedSizes& sizes) override;

  // `process_name` maps a process id to its name ("" if unknown). Call once, last.
  Profile Finish(const proto::Header& header, const std::optional<proto::Summary>& summary,
                 const std::function<std::string(uint32_t)>& process_name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Who wrote. Buffered writes leave by the kernel's workers, whose names begin with "kworker/": they
// stand for programs that the trace does not name.
struct Writers {
  uint64_t kernel_bytes = 0;                     // written by kworkers, all together
  const Profile::ProcessRow* program = nullptr;  // wrote most of the others with a name; null: none
};
Writers WritersOf(const Profile& profile);

// "nvme0n1" to its index in the header. kNotFound names the devices there are.
Result<uint32_t> FindDevice(const proto::Header& header, const std::string& name);

}  // namespace blktape
