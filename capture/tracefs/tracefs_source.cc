#include "capture/tracefs/tracefs_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/process.h"
#include "base/units.h"
#include "capture/source/forwarding_sink.h"
#include "capture/source/source_errors.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

// An event takes its time stamp first and is committed a moment later; a virtual CPU that loses its
// core in between can take milliseconds.
constexpr int64_t kCommitMarginNs = 20 * kNanosPerMilli;
// One busy CPU must not keep us from reading the others: this is the maximum number of pages read
// from one ring before the next. It also limits what waits in the merger.
constexpr int kPagesAtOnce = 8;
// Of all rings, before the rest of the recorder gets its turn.
constexpr int kPagesPerTurn = 2048;
// What is waiting is fetched at least this often while I/O flows.
constexpr int kLongestNapMs = 100;
// After this many turns without an event, the next event must wake us. Long enough (a second) for
// held records to become old and be written.
constexpr uint32_t kQuietTurns = 10;
constexpr int64_t kRefreshIntervalNs = 2 * kNanosPerSecond;
// Per cent of a full ring that ends a Poll early.
constexpr std::string_view kWakePercent = "25";
constexpr std::string_view kWakeAtOnce = "0";
// What is told of the layers above the disks, too; the last one for their sake alone.
constexpr std::string_view kRemap = "block_bio_remap";
constexpr std::array<std::string_view, 3> kOfLayers = {"block_bio_queue", "block_split", kRemap};
// The text that our threads write before their own id.
constexpr std::string_view kThreadMark = "tid ";

// Numbers that lie at most `gap` apart are one range.
std::string FilterOfRanges(const std::vector<uint32_t>& devs, uint32_t gap) {
  std::string filter;
  for (size_t begin = 0; begin < devs.size();) {
    size_t end = begin + 1;
    while (end < devs.size() && devs[end] - devs[end - 1] <= gap) ++end;
    if (!filter.empty()) filter += " || ";
    filter += end - begin == 1
                  ? fmt::format("dev == {}", devs[begin])
                  : fmt::format("(dev >= {} && dev <= {})", devs[begin], devs[end - 1]);
    begin = end;
  }
  return filter;
}

}  // namespace

// Between a decoder and the session: replaces partitions by their disk, and sets the counts of
// gaps.
class TracefsSource::Translator : public ForwardingSink {
 public:
  Translator(TracefsSource* source, Ring* ring, CaptureSink* sink)
      : ForwardingSink(sink), source_(source), ring_(ring) {}

  void OnEvent(uint32_t stream, const BlockEvent& event) override {
    const auto disk = source_->disk_of_.find(event.device);
    const auto from = source_->disk_of_.find(event.from_device);
    const auto none = source_->disk_of_.end();
    if (disk == none && from == none && source_->own_pids_.empty()) {
      return next().OnEvent(stream, event);
    }
    BlockEvent moved = event;
    if (disk != none) moved.device = disk->second;
    // Of a remapping to a partition the event names the disk, too.
    if (from != none) moved.from_device = from->second;
    const auto own = source_->own_pids_.find(event.pid);
    if (own != source_->own_pids_.end()) moved.pid = OwnId(own->second);
    next().OnEvent(stream, moved);
  }
  void OnLoss(const proto::Loss& loss) override {
    if (loss.reason() != proto::RING_OVERRUN) return next().OnLoss(loss);
    const auto total = [this]() -> uint64_t {
      const Result<RingStats> stats = source_->ReadStats(*ring_);
      return stats.ok() ? stats->lost() : 0;
    };
    const std::optional<uint64_t> stored =
        loss.has_count() ? std::optional<uint64_t>(loss.count()) : std::nullopt;
    const uint64_t count = ring_->loss.OnGap(stored, total);
    // Already reported, by the running total.
    if (count == 0) return;
    proto::Loss counted = loss;
    counted.set_count(count);
    next().OnLoss(counted);
  }
  // A mark of one of our threads: the kernel's id of the writer, and the thread's own id.
  void OnProcessName(uint32_t pid, int64_t /*since_ns*/, const ProcessComm& comm) override {
    const std::string_view text = CommView(comm);
    uint32_t own = 0;
    if (text.substr(0, kThreadMark.size()) != kThreadMark) return;
    const char* const digits = text.data() + kThreadMark.size();
    if (std::from_chars(digits, text.data() + text.size(), own).ec == std::errc()) {
      source_->own_pids_[pid] = own;
    }
  }

 private:
  TracefsSource* source_;
  Ring* ring_;
};

std::string DeviceFilter(std::vector<uint32_t> devs, size_t max_bytes) {
  std::sort(devs.begin(), devs.end());
  devs.erase(std::unique(devs.begin(), devs.end()), devs.end());
  std::string filter = FilterOfRanges(devs, 1);
  for (uint64_t gap = 2; filter.size() > max_bytes && gap <= ~0u; gap *= 2) {
    filter = FilterOfRanges(devs, static_cast<uint32_t>(gap));
  }
  return filter;
}

TracefsSource::TracefsSource(std::vector<Disk> devices, const TracefsOptions& options)
    : devices_(std::move(devices)),
      buffer_bytes_per_cpu_(options.buffer_bytes_per_cpu != 0 ? options.buffer_bytes_per_cpu
                                                              : PlanBuffersHere().bytes_per_cpu) {}

Status TracefsSource::Start() {
  Result<KernelFs> tracefs = KernelFs::Tracefs();
  if (!tracefs.ok()) return ExplainSourceFailure(tracefs.status(), name());
  tracefs_ = std::move(tracefs).value();
  RemoveDeadInstances(tracefs_->folder());
  Result<std::unique_ptr<TraceInstance>> instance = TraceInstance::Create(tracefs_->folder());
  if (!instance.ok()) return ExplainSourceFailure(instance.status(), name());
  instance_ = std::move(instance).value();
  const Status configured = Configure();
  if (configured.ok()) return OkStatus();
  rings_.clear();
  instance_.reset();
  return ExplainSourceFailure(configured, name());
}

Status TracefsSource::Configure() {
  RETURN_IF_ERROR(instance_->Set("tracing_on", "0"));
  RETURN_IF_ERROR(instance_->Set("trace_clock", "mono"));
  RETURN_IF_ERROR(
      instance_->Set("buffer_size_kb", fmt::format("{}", (buffer_bytes_per_cpu_ + 1023) / 1024)));
  // Kernels before 6.1 or so lack it for instances: then Poll wakes by its time alone.
  if (instance_->Set("buffer_percent", kWakePercent).ok()) {
    wake_percent_.reset(open(instance_->Path("buffer_percent").c_str(), O_WRONLY | O_CLOEXEC));
  }
  // The events name the process themselves.
  (void)instance_->Set("options/record-cmd", "0");
  RETURN_IF_ERROR(LoadFormats());
  RETURN_IF_ERROR(SetFilter());
  RETURN_IF_ERROR(OpenRings());
  for (const std::string& event : events_) {
    if (event == kRemap) continue;
    RETURN_IF_ERROR(instance_->Set("events/block/" + event + "/enable", "1"));
  }
  return instance_->Set("tracing_on", "1");
}

Status TracefsSource::LoadFormats() {
  const std::string events = tracefs_->folder() + "/events/";
  ASSIGN_OR_RETURN(const std::string header_page, ReadFile(events + "header_page"));
  ASSIGN_OR_RETURN(formats_, FtraceFormats::Create(header_page));
  for (const std::string_view name : FtraceBlockEvents()) {
    const Result<std::string> format = ReadFile(events + "block/" + std::string(name) + "/format");
    if (!format.ok()) {
      if (name == "block_rq_issue" || name == "block_rq_complete") return format.status();
      continue;
    }
    RETURN_IF_ERROR(formats_->AddEvent(*format));
    events_.emplace_back(name);
  }
  if (LocalPidNamespace()) {
    ASSIGN_OR_RETURN(const std::string print, ReadFile(events + "ftrace/print/format"));
    RETURN_IF_ERROR(formats_->AddMarker(print));
    marker_.reset(open(instance_->Path("trace_marker").c_str(), O_WRONLY | O_CLOEXEC));
  }
  page_.resize(formats_->page().page_bytes());
  return OkStatus();
}

Status TracefsSource::SetFilter() {
  std::vector<uint32_t> devs;
  std::unordered_map<uint32_t, uint32_t> disk_of;
  for (const Disk& disk : devices_) {
    devs.push_back(disk.dev);
    for (const uint32_t partition : sysfs_.PartitionsOf(disk)) {
      devs.push_back(partition);
      disk_of[partition] = disk.dev;
    }
  }
  const std::string filter = DeviceFilter(devs);
  for (const Layer& layer : layers_) devs.push_back(layer.dev);
  const std::string with_layers = DeviceFilter(std::move(devs));
  if (std::pair(filter, with_layers) == filters_) return OkStatus();
  for (const std::string& event : events_) {
    const bool of_layers = std::ranges::find(kOfLayers, event) != kOfLayers.end();
    RETURN_IF_ERROR(
        instance_->Set("events/block/" + event + "/filter", of_layers ? with_layers : filter));
  }
  filters_ = {filter, with_layers};
  // Old ones stay: events of a partition that has just gone may still be in the ring.
  for (const auto& [partition, disk] : disk_of) disk_of_[partition] = disk;
  return OkStatus();
}

Status TracefsSource::Add(const Disk& disk) {
  devices_.push_back(disk);
  return SetFilter();
}

void TracefsSource::SetLayers(const std::vector<Layer>& layers) {
  if (layers == layers_) return;
  layers_ = layers;
  // Without them I/Os have the thread that submitted them; nothing else is lost.
  if (!devices_.empty()) (void)SetFilter();
  if (std::ranges::find(events_, kRemap) == events_.end()) return;
  const std::string enable = fmt::format("events/block/{}/enable", kRemap);
  (void)instance_->Set(enable, layers_.empty() ? "0" : "1");
}

void TracefsSource::MarkThread() {
  if (!marker_) return;
  const std::string mark = fmt::format("{}{}\n", kThreadMark, gettid());
  (void)!write(marker_.get(), mark.data(), mark.size());
}

void TracefsSource::SetOwnPids(const std::vector<uint32_t>& pids) {
  // What the kernel called one that has ended may be somebody else by now.
  std::erase_if(own_pids_, [&](const auto& one) {
    return std::find(pids.begin(), pids.end(), one.second) == pids.end();
  });
}

void TracefsSource::Remove(const Disk& disk) {
  std::erase_if(devices_, [&](const Disk& one) { return one.dev == disk.dev; });
  std::erase_if(disk_of_, [&](const auto& pair) { return pair.second == disk.dev; });
  // A filter without a disk would match all events.
  if (!devices_.empty()) (void)SetFilter();
}

Status TracefsSource::Refresh() {
  const int64_t now_ns = Clock::Monotonic()->NowNs();
  if (now_ns < next_refresh_ns_) return OkStatus();
  next_refresh_ns_ = now_ns + kRefreshIntervalNs;
  for (Ring& ring : rings_) ring.absent = false;
  return devices_.empty() ? OkStatus() : SetFilter();
}

Status TracefsSource::OpenRings() {
  std::error_code error;
  for (fs::directory_iterator it(instance_->Path("per_cpu"), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.substr(0, 3) != "cpu") continue;
    Ring ring;
    ring.cpu = static_cast<uint32_t>(std::strtoul(name.c_str() + 3, nullptr, 10));
    const std::string pages = it->path().string() + "/trace_pipe_raw";
    ring.pages.reset(open(pages.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!ring.pages) return ErrnoStatus(errno, pages);
    const std::string stats = it->path().string() + "/stats";
    ring.stats.reset(open(stats.c_str(), O_RDONLY | O_CLOEXEC));
    if (!ring.stats) return ErrnoStatus(errno, stats);
    ring.decoder = std::make_unique<FtracePageDecoder>(&*formats_, ring.cpu);
    rings_.push_back(std::move(ring));
  }
  if (error) return ErrnoStatus(error.value(), instance_->Path("per_cpu"));
  std::sort(rings_.begin(), rings_.end(),
            [](const Ring& a, const Ring& b) { return a.cpu < b.cpu; });
  return OkStatus();
}

Result<RingStats> TracefsSource::ReadStats(const Ring& ring) const {
  std::array<char, 1024> text{};
  const ssize_t count = pread(ring.stats.get(), text.data(), text.size(), 0);
  if (count < 0) return ErrnoStatus(errno, fmt::format("statistics of CPU {}'s ring", ring.cpu));
  return ParseRingStats(std::string_view(text.data(), static_cast<size_t>(count)));
}

Result<bool> TracefsSource::ReadRing(Ring* ring, int max_pages, CaptureSink* sink) {
  Translator translator(this, ring, sink);
  for (int i = 0; i < max_pages; ++i) {
    const ssize_t count = read(ring->pages.get(), page_.data(), page_.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == ENODEV) ring->absent = true;
      if (errno == EAGAIN || errno == ENODEV) return true;
      return ErrnoStatus(errno, fmt::format("ring of CPU {}", ring->cpu));
    }
    if (count == 0) return true;
    ring->decoder->DecodePage(std::span(page_).first(static_cast<size_t>(count)), &translator);
  }
  return false;
}

Result<bool> TracefsSource::ReadRings(int max_pages, CaptureSink* sink) {
  const int64_t now_ns = Clock::Monotonic()->NowNs() - kCommitMarginNs;
  const auto later = [](const Ring* a, const Ring* b) { return a->read_to_ns > b->read_to_ns; };
  std::vector<Ring*> waiting;  // a heap: the one furthest behind on top
  for (Ring& ring : rings_) {
    ring.read_to_ns = ring.decoder->last_ns().value_or(0);
    if (!ring.absent) waiting.push_back(&ring);
  }
  std::make_heap(waiting.begin(), waiting.end(), later);
  for (int pages = 0; !waiting.empty() && pages < max_pages; pages += kPagesAtOnce) {
    std::pop_heap(waiting.begin(), waiting.end(), later);
    Ring* const ring = waiting.back();
    ASSIGN_OR_RETURN(const bool drained, ReadRing(ring, kPagesAtOnce, sink));
    if (drained) {
      waiting.pop_back();
      pages -= kPagesAtOnce;  // an idle CPU does not use up a turn
      continue;
    }
    ring->read_to_ns = ring->decoder->last_ns().value_or(0);
    std::push_heap(waiting.begin(), waiting.end(), later);
    sink->OnWatermark(std::min(now_ns, waiting.front()->read_to_ns));
  }
  sink->OnWatermark(waiting.empty() ? now_ns : std::min(now_ns, waiting.front()->read_to_ns));
  return waiting.empty();
}

void TracefsSource::SetWake(std::string_view percent) {
  (void)!pwrite(wake_percent_.get(), percent.data(), percent.size(), 0);
}

Status TracefsSource::Wait(int timeout_ms) {
  std::vector<pollfd> waits;
  waits.reserve(rings_.size());
  for (const Ring& ring : rings_) {
    waits.push_back({ring.absent ? -1 : ring.pages.get(), POLLIN, 0});
  }
  if (poll(waits.data(), waits.size(), timeout_ms) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, "waiting for tracefs");
  }
  return OkStatus();
}

Result<bool> TracefsSource::Poll(int timeout_ms, CaptureSink* sink) {
  if (quiet_turns_ < kQuietTurns || !wake_percent_) {
    RETURN_IF_ERROR(Wait(std::min(timeout_ms, kLongestNapMs)));
  } else {
    SetWake(kWakeAtOnce);
    const Status waited = Wait(timeout_ms);
    SetWake(kWakePercent);
    RETURN_IF_ERROR(waited);
  }
  ReportGrowth(sink);
  ASSIGN_OR_RETURN([[maybe_unused]] const bool drained, ReadRings(kPagesPerTurn, sink));
  uint64_t events = 0;
  for (const Ring& ring : rings_) events += ring.decoder->events();
  quiet_turns_ = events == std::exchange(events_read_, events) ? quiet_turns_ + 1 : 0;
  RETURN_IF_ERROR(Refresh());
  return true;
}

Status TracefsSource::Stop(CaptureSink* sink) {
  if (instance_ == nullptr) return OkStatus();
  for (const std::string& event : events_) {
    RETURN_IF_ERROR(instance_->Set("events/block/" + event + "/enable", "0"));
  }
  RETURN_IF_ERROR(instance_->Set("tracing_on", "0"));
  ReportGrowth(sink);
  // In turns here too: a backlog read ring by ring would exceed what the merger may hold.
  for (bool drained = false; !drained;) {
    ASSIGN_OR_RETURN(drained, ReadRings(kPagesPerTurn, sink));
  }
  kernel_lost_ = 0;
  for (Ring& ring : rings_) {
    ASSIGN_OR_RETURN(const RingStats stats, ReadStats(ring));
    kernel_lost_ += stats.lost();
    const uint64_t rest = ring.loss.Rest(stats.lost());
    if (rest == 0) continue;
    proto::Loss loss;
    loss.set_reason(proto::RING_OVERRUN);
    loss.set_count(rest);
    loss.set_cpu(ring.cpu);
    loss.set_detail("place not known: by the kernel's counters at the end");
    sink->OnLoss(loss);
  }
  rings_.clear();
  wake_percent_.reset();
  marker_.reset();
  const Status removed = instance_->Remove();
  instance_.reset();
  return removed;
}

Result<uint64_t> TracefsSource::KernelLost() {
  if (instance_ == nullptr) return kernel_lost_;
  uint64_t lost = 0;
  for (const Ring& ring : rings_) {
    ASSIGN_OR_RETURN(const RingStats stats, ReadStats(ring));
    lost += stats.lost();
  }
  return lost;
}

Result<bool> TracefsSource::Grow(uint64_t limit_bytes) {
  if (instance_ == nullptr) return false;
  const uint64_t bytes = buffer_bytes_per_cpu_ * 2;
  const auto cpus = static_cast<uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  if (bytes * cpus > limit_bytes) return false;
  // Meanwhile the kernel neither records nor counts (kernel/trace/trace.c,
  // __tracing_resize_ring_buffer, since Linux 6.7 and in what was mended of older ones): 10 to 100
  // ms have been seen.
  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_from_ns(Clock::Monotonic()->NowNs());
  const Status resized = instance_->Set("buffer_size_kb", fmt::format("{}", bytes / 1024));
  loss.set_to_ns(Clock::Monotonic()->NowNs());
  loss.set_detail("the kernel records nothing while it makes its buffers larger");
  growth_.push_back(std::move(loss));
  RETURN_IF_ERROR(resized);
  buffer_bytes_per_cpu_ = bytes;
  return true;
}

void TracefsSource::ReportGrowth(CaptureSink* sink) {
  for (const proto::Loss& loss : growth_) sink->OnLoss(loss);
  growth_.clear();
}

}  // namespace blktape
