#include "capture/tracefs/ftrace_page_decoder.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>

#include "capture/source/rwbs.h"

namespace blktape {
namespace {

// The kernel's include/linux/ring_buffer.h and kernel/trace/ring_buffer.c.
constexpr uint64_t kCommitLengthMask = (1u << 27) - 1;
constexpr uint64_t kMissedStored = 1u << 30;
constexpr uint64_t kMissedEvents = 1u << 31;
constexpr uint32_t kTypePadding = 29;
constexpr uint32_t kTypeTimeExtend = 30;
constexpr uint32_t kTypeTimeStamp = 31;
constexpr int kDeltaBits = 27;
// An absolute stamp holds 59 bits; the page's own stamp tells the others.
constexpr uint64_t kAbsoluteBits = (uint64_t{1} << 59) - 1;

struct KnownEvent {
  std::string_view name;
  BlockAction action;
};
constexpr KnownEvent kKnownEvents[] = {
    {"block_bio_queue", BlockAction::kQueue},
    {"block_rq_issue", BlockAction::kIssue},
    {"block_rq_complete", BlockAction::kComplete},
    {"block_rq_requeue", BlockAction::kRequeue},
    {"block_split", BlockAction::kSplit},
    {"block_bio_complete", BlockAction::kComplete},
    {"block_bio_backmerge", BlockAction::kBackMerge},
    {"block_bio_frontmerge", BlockAction::kFrontMerge},
    {"block_getrq", BlockAction::kGetRequest},
    {"block_rq_insert", BlockAction::kInsert},
    {"block_bio_remap", BlockAction::kRemap},
    {"block_rq_remap", BlockAction::kRemap},
    // Two requests became one: their bios are told apart by where they lie, so no more is needed.
    {"block_rq_merge", BlockAction::kInsert},
};

uint32_t LoadU32(const std::byte* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint64_t LoadField(const std::byte* base, const TracefsField& field) {
  const std::byte* at = base + field.offset_bytes;
  switch (field.size_bytes) {
    case 1:
      return static_cast<uint8_t>(*at);
    case 2: {
      uint16_t value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    case 4:
      return LoadU32(at);
    default: {
      uint64_t value;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
  }
}

bool IsNumber(const TracefsField& field) {
  return field.size_bytes == 1 || field.size_bytes == 2 || field.size_bytes == 4 ||
         field.size_bytes == 8;
}

std::string_view LoadText(const std::byte* base, const TracefsField& field) {
  const char* at = reinterpret_cast<const char*>(base + field.offset_bytes);
  return {at, strnlen(at, field.size_bytes)};
}

}  // namespace

std::span<const std::string_view> FtraceBlockEvents() {
  static constexpr std::string_view kNames[] = {
      "block_bio_queue", "block_rq_issue",     "block_rq_complete", "block_rq_requeue",
      "block_split",     "block_bio_complete", "block_bio_remap",
  };
  return kNames;
}

Result<FtraceFormats> FtraceFormats::Create(std::string_view header_page) {
  FtraceFormats formats;
  ASSIGN_OR_RETURN(formats.page_, ParseTracefsHeaderPage(header_page));
  return formats;
}

Status FtraceFormats::AddEvent(std::string_view format) {
  ASSIGN_OR_RETURN(const TracefsEventFormat parsed, ParseTracefsEventFormat(format));
  const auto known = std::find_if(std::begin(kKnownEvents), std::end(kKnownEvents),
                                  [&](const KnownEvent& e) { return e.name == parsed.name; });
  if (known == std::end(kKnownEvents)) {
    return Status(StatusCode::kUnimplemented, "tracefs event " + parsed.name + " is not known");
  }
  FtraceEventLayout layout;
  layout.action = known->action;
  std::string missing;
  const auto need = [&](const char* name, bool number) {
    const TracefsField* field = parsed.Find(name);
    if (field == nullptr || (number && !IsNumber(*field))) {
      missing += std::string(" ") + name;
      return TracefsField();
    }
    layout.min_bytes = std::max(layout.min_bytes, field->offset_bytes + field->size_bytes);
    return *field;
  };
  const auto want = [&](const char* name, bool number) -> std::optional<TracefsField> {
    const TracefsField* field = parsed.Find(name);
    if (field == nullptr || (number && !IsNumber(*field))) return std::nullopt;
    layout.min_bytes = std::max(layout.min_bytes, field->offset_bytes + field->size_bytes);
    return *field;
  };
  layout.pid = need("common_pid", true);
  layout.dev = need("dev", true);
  layout.sector = need("sector", true);
  layout.rwbs = need("rwbs", false);
  if (layout.action == BlockAction::kSplit) {
    layout.new_sector = need("new_sector", true);
  } else {
    layout.nr_sector = need("nr_sector", true);
  }
  layout.bytes = want("bytes", true);
  layout.error = want("error", true);
  // Linux 5.x called the completion's error so.
  if (!layout.error) layout.error = want("errors", true);
  layout.comm = want("comm", false);
  layout.old_dev = want("old_dev", true);
  layout.old_sector = want("old_sector", true);
  if (!missing.empty()) {
    return Status(StatusCode::kDataLoss,
                  "tracefs event " + parsed.name + " lacks the fields" + missing);
  }
  events_.emplace_back(parsed.id, layout);
  return OkStatus();
}

Status FtraceFormats::AddMarker(std::string_view format) {
  ASSIGN_OR_RETURN(const TracefsEventFormat parsed, ParseTracefsEventFormat(format));
  const TracefsField* const pid = parsed.Find("common_pid");
  const TracefsField* const text = parsed.Find("buf");
  if (pid == nullptr || !IsNumber(*pid) || text == nullptr) {
    return Status(StatusCode::kDataLoss, "tracefs event " + parsed.name + " lacks fields");
  }
  marker_ = Marker{parsed.id, *pid, text->offset_bytes};
  return OkStatus();
}

const FtraceEventLayout* FtraceFormats::Find(uint32_t id) const {
  for (const auto& [event_id, layout] : events_) {
    if (event_id == id) return &layout;
  }
  return nullptr;
}

void FtracePageDecoder::ReportDamage(const char* what, CaptureSink* sink) const {
  proto::Loss loss;
  loss.set_reason(proto::DAMAGED_INPUT);
  loss.set_cpu(cpu_);
  if (last_ns_) loss.set_from_ns(*last_ns_);
  loss.set_detail(what);
  sink->OnLoss(loss);
}

void FtracePageDecoder::ReportMissed(std::span<const std::byte> page, uint64_t commit,
                                     int64_t page_ns, CaptureSink* sink) {
  const size_t end = formats_->page().data.offset_bytes + (commit & kCommitLengthMask);
  proto::Loss loss;
  loss.set_reason(proto::RING_OVERRUN);
  loss.set_cpu(cpu_);
  if (last_ns_) loss.set_from_ns(*last_ns_);
  loss.set_to_ns(page_ns);
  // The kernel appends the number as an unsigned long, if the page had room for it.
  const size_t long_bytes = formats_->page().commit.size_bytes;
  if ((commit & kMissedStored) != 0 && end + long_bytes <= page.size()) {
    const uint64_t count =
        LoadField(page.data(), {static_cast<uint32_t>(end), static_cast<uint32_t>(long_bytes)});
    loss.set_count(count);
    lost_ += count;
  }
  sink->OnLoss(loss);
}

void FtracePageDecoder::DecodePage(std::span<const std::byte> page, CaptureSink* sink) {
  const TracefsPageLayout& layout = formats_->page();
  if (page.size() < layout.data.offset_bytes) {
    ReportDamage("ring-buffer page shorter than its header", sink);
    return;
  }
  uint64_t time = LoadField(page.data(), layout.timestamp);
  const uint64_t commit = LoadField(page.data(), layout.commit);
  if ((commit & kMissedEvents) != 0) ReportMissed(page, commit, static_cast<int64_t>(time), sink);

  size_t end = layout.data.offset_bytes + (commit & kCommitLengthMask);
  if (end > page.size()) {
    ReportDamage("ring-buffer page claims more than it holds", sink);
    end = page.size();
  }
  size_t at = layout.data.offset_bytes;
  while (at + 4 <= end) {
    const uint32_t head = LoadU32(page.data() + at);
    uint32_t type = head & 31;
    uint64_t delta = head >> 5;
    if constexpr (std::endian::native == std::endian::big) {
      type = head >> kDeltaBits;
      delta = head & ((1u << kDeltaBits) - 1);
    }
    at += 4;
    if (type == kTypePadding && delta == 0) return;  // nothing more on this page
    size_t payload_at = at;
    size_t payload_bytes = size_t{type} * 4;
    if (type == 0 || type >= kTypePadding) {
      if (at + 4 > end) {
        ReportDamage("ring-buffer event cut short", sink);
        return;
      }
      const uint32_t word = LoadU32(page.data() + at);
      if (type == kTypeTimeExtend) {
        time += (uint64_t{word} << kDeltaBits) + delta;
        at += 4;
        continue;
      }
      if (type == kTypeTimeStamp) {
        uint64_t absolute = ((uint64_t{word} << kDeltaBits) + delta) & kAbsoluteBits;
        absolute |= time & ~kAbsoluteBits;
        // The lower bits have wrapped since `time`.
        if (absolute < time && time - absolute > kAbsoluteBits / 2) absolute += kAbsoluteBits + 1;
        time = absolute;
        at += 4;
        continue;
      }
      // The length counts its own word; in padding it is what to skip.
      if (word < 4) {
        ReportDamage("ring-buffer event of impossible length", sink);
        return;
      }
      payload_at = at + 4;
      payload_bytes = word - 4;
    }
    if (payload_bytes > end - payload_at) {
      ReportDamage("ring-buffer event reaches beyond its page", sink);
      return;
    }
    time += delta;
    // Events are aligned to four bytes.
    at = std::min(end, payload_at + (payload_bytes + 3) / 4 * 4);
    if (type == kTypePadding) continue;  // an event taken back by a filter
    const int64_t time_ns = static_cast<int64_t>(time);
    if (DecodeEvent(page.subspan(payload_at, payload_bytes), time_ns, sink)) {
      last_ns_ = std::max(last_ns_.value_or(time_ns), time_ns);
      ++events_;
    }
  }
}

bool FtracePageDecoder::DecodeEvent(std::span<const std::byte> payload, int64_t time_ns,
                                    CaptureSink* sink) {
  uint16_t id = 0;
  if (payload.size() >= sizeof id) std::memcpy(&id, payload.data(), sizeof id);
  const std::optional<FtraceFormats::Marker>& marker = formats_->marker();
  if (marker && id == marker->id && payload.size() > marker->text_offset &&
      payload.size() >= marker->pid.offset_bytes + marker->pid.size_bytes) {
    ProcessComm text{};
    std::memcpy(text.data(), payload.data() + marker->text_offset,
                std::min(payload.size() - marker->text_offset, text.size() - 1));
    sink->OnProcessName(static_cast<uint32_t>(LoadField(payload.data(), marker->pid)), time_ns,
                        text);
    return true;
  }
  const FtraceEventLayout* layout = formats_->Find(id);
  if (layout == nullptr || payload.size() < layout->min_bytes) {
    proto::Loss loss;
    loss.set_reason(proto::UNDECODABLE_EVENT);
    loss.set_count(1);
    loss.set_cpu(cpu_);
    loss.set_from_ns(time_ns);
    loss.set_to_ns(time_ns);
    loss.set_detail(layout == nullptr ? "tracefs event of unknown id" : "tracefs event too short");
    sink->OnLoss(loss);
    return false;
  }
  const std::byte* base = payload.data();
  const Rwbs rwbs = ParseRwbs(LoadText(base, layout->rwbs));
  BlockEvent event;
  event.time_ns = time_ns;
  event.cpu = cpu_;
  event.action = layout->action;
  event.op = rwbs.op;
  event.flags = rwbs.flags;
  event.device = static_cast<uint32_t>(LoadField(base, layout->dev));
  event.pid = static_cast<uint32_t>(LoadField(base, layout->pid));
  event.lba = Lba(LoadField(base, layout->sector));
  uint64_t sectors = 0;
  if (layout->nr_sector) {
    sectors = LoadField(base, *layout->nr_sector);
    event.bytes = sectors * kSectorBytes;
  }
  if (rwbs.none) {
    // Kernels that do not name write zeroes print it so; a passthrough command spans no sectors.
    event.op = Op::kWriteZeroes;
    event.unnamed_op = true;
    event.passthrough = sectors == 0;
    if (event.passthrough && layout->bytes) event.bytes = LoadField(base, *layout->bytes);
  }
  if (layout->error) {
    const auto error = static_cast<int32_t>(LoadField(base, *layout->error));
    // Both signs have been in use.
    event.error = static_cast<uint32_t>(std::abs(int64_t{error}));
  }
  if (layout->comm) {
    const std::string_view comm = LoadText(base, *layout->comm);
    std::copy_n(comm.begin(), std::min(comm.size(), event.comm.size() - 1), event.comm.begin());
  }
  if (layout->new_sector) event.split_lba = Lba(LoadField(base, *layout->new_sector));
  if (layout->old_dev) event.from_device = static_cast<uint32_t>(LoadField(base, *layout->old_dev));
  if (layout->old_sector) event.from_lba = Lba(LoadField(base, *layout->old_sector));
  NormalizeFlush(&event);
  sink->OnEvent(cpu_, event);
  return true;
}

}  // namespace blktape
