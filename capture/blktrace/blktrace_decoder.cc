#include "capture/blktrace/blktrace_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/units.h"
#include "capture/source/rwbs.h"

namespace blktape {
namespace {

// include/uapi/linux/blktrace_api.h, version 7 of every kernel so far and version 8 of Linux 6.19.
constexpr uint32_t kMagic = 0x65617400;  // the low byte is the version
constexpr size_t kHeaderBytesV7 = 48;
constexpr size_t kHeaderBytesV8 = 64;

constexpr uint64_t kWhatMask = 0xffff & ~uint64_t{0x100};
constexpr uint64_t kCgroup = 0x100;  // the payload begins with 8 bytes of cgroup id
constexpr size_t kCgroupBytes = 8;
constexpr int kCategoryShift = 16;
enum Category : uint64_t {
  kCatRead = 1u << 0,
  kCatWrite = 1u << 1,
  kCatFlush = 1u << 2,
  kCatSync = 1u << 3,
  kCatPassthrough = 1u << 9,
  kCatNotify = 1u << 10,
  kCatAhead = 1u << 11,
  kCatMeta = 1u << 12,
  kCatDiscard = 1u << 13,
  kCatFua = 1u << 15,
  kCatZoneAppend = 1u << 16,
  kCatZoneReset = 1u << 17,
  kCatZoneResetAll = 1u << 18,
  kCatZoneFinish = 1u << 19,
  kCatZoneOpen = 1u << 20,
  kCatZoneClose = 1u << 21,
  kCatWriteZeroes = 1u << 22,
};
enum What : uint32_t {
  kWhatQueue = 1,
  kWhatBackMerge = 2,
  kWhatFrontMerge = 3,
  kWhatGetRequest = 4,
  kWhatRequeue = 6,
  kWhatIssue = 7,
  kWhatComplete = 8,
  kWhatInsert = 12,
  kWhatSplit = 13,
  kWhatRemap = 15,
  kWhatLast = 19,  // zone unplug of version 8
};
enum Notify : uint32_t { kNotifyProcess = 0, kNotifyTimestamp = 1, kNotifyMessage = 2 };

// Longer than any machine runs: a later time is invalid.
constexpr int64_t kTimeMaxNs = int64_t{1} << 62;

template <typename T>
T Load(std::span<const std::byte> bytes, size_t at, bool swapped) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  if (!swapped) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

// Payloads of remap and split are big-endian whatever the machine.
template <typename T>
T LoadBig(std::span<const std::byte> bytes, size_t at) {
  return Load<T>(bytes, at, std::endian::native == std::endian::little);
}

bool IsMagic(uint32_t word) {
  return (word & 0xffffff00) == kMagic && ((word & 0xff) == 7 || (word & 0xff) == 8);
}

std::optional<BlockAction> ActionOf(uint32_t what) {
  switch (what) {
    case kWhatQueue:
      return BlockAction::kQueue;
    case kWhatBackMerge:
      return BlockAction::kBackMerge;
    case kWhatFrontMerge:
      return BlockAction::kFrontMerge;
    case kWhatGetRequest:
      return BlockAction::kGetRequest;
    case kWhatRequeue:
      return BlockAction::kRequeue;
    case kWhatIssue:
      return BlockAction::kIssue;
    case kWhatComplete:
      return BlockAction::kComplete;
    case kWhatInsert:
      return BlockAction::kInsert;
    case kWhatSplit:
      return BlockAction::kSplit;
    case kWhatRemap:
      return BlockAction::kRemap;
    default:  // sleep, plug, unplug, bounce, abort, driver data, zone plugs
      return std::nullopt;
  }
}

// DISCARD carries WRITE too, and so do the ops that only version 8 names: the particular first.
Op OpOf(uint64_t category, uint32_t bytes) {
  if (category & kCatDiscard) return Op::kDiscard;
  if (category & kCatWriteZeroes) return Op::kWriteZeroes;
  if (category & kCatZoneAppend) return Op::kZoneAppend;
  if (category & kCatZoneResetAll) return Op::kZoneResetAll;
  if (category & kCatZoneReset) return Op::kZoneReset;
  if (category & kCatZoneFinish) return Op::kZoneFinish;
  if (category & kCatZoneOpen) return Op::kZoneOpen;
  if (category & kCatZoneClose) return Op::kZoneClose;
  if (category & kCatWrite) return Op::kWrite;
  // A flush of the drive looks like a zero-length read.
  if (bytes == 0 && (category & kCatFlush)) return Op::kFlush;
  return Op::kRead;
}

uint32_t FlagsOf(uint64_t category) {
  uint32_t flags = 0;
  if (category & kCatSync) flags |= kFlagSync;
  if (category & kCatFua) flags |= kFlagFua;
  if (category & kCatFlush) flags |= kFlagPreflush;
  if (category & kCatMeta) flags |= kFlagMeta;
  if (category & kCatAhead) flags |= kFlagReadahead;
  return flags;
}

}  // namespace

bool LooksLikeBlktrace(std::span<const std::byte> head) {
  if (head.size() < sizeof(uint32_t)) return false;
  const auto word = Load<uint32_t>(head, 0, false);
  return IsMagic(word) || IsMagic(__builtin_bswap32(word));
}

bool BlktraceDecoder::LockFormat(std::span<const std::byte> bytes) {
  const auto word = Load<uint32_t>(bytes, 0, false);
  if (IsMagic(word)) {
    swapped_ = false;
    version_ = static_cast<int>(word & 0xff);
    return true;
  }
  if (IsMagic(__builtin_bswap32(word))) {
    swapped_ = true;
    version_ = static_cast<int>(__builtin_bswap32(word) & 0xff);
    return true;
  }
  return false;
}

// Whether a record of the version and byte order met first begins here.
bool BlktraceDecoder::MagicAt(std::span<const std::byte> bytes) const {
  return Load<uint32_t>(bytes, 0, swapped_) == (kMagic | static_cast<uint32_t>(version_));
}

bool BlktraceDecoder::MagicWithin(std::span<const std::byte> bytes) const {
  for (; bytes.size() >= sizeof(uint32_t); bytes = bytes.subspan(1)) {
    if (MagicAt(bytes)) return true;
  }
  return false;
}

BlktraceDecoder::Header BlktraceDecoder::ReadHeader(std::span<const std::byte> bytes) const {
  Header header;
  header.sequence = Load<uint32_t>(bytes, 4, swapped_);
  header.time_ns = static_cast<int64_t>(Load<uint64_t>(bytes, 8, swapped_));
  header.sector = Load<uint64_t>(bytes, 16, swapped_);
  header.bytes = Load<uint32_t>(bytes, 24, swapped_);
  if (version_ == 7) {
    header.action = Load<uint32_t>(bytes, 28, swapped_);
    header.pid = Load<uint32_t>(bytes, 32, swapped_);
    header.device = Load<uint32_t>(bytes, 36, swapped_);
    header.cpu = Load<uint32_t>(bytes, 40, swapped_);
    header.error = Load<uint16_t>(bytes, 44, swapped_);
    header.payload_bytes = Load<uint16_t>(bytes, 46, swapped_);
  } else {
    header.pid = Load<uint32_t>(bytes, 28, swapped_);
    header.action = Load<uint64_t>(bytes, 32, swapped_);
    header.device = Load<uint32_t>(bytes, 40, swapped_);
    header.cpu = Load<uint32_t>(bytes, 44, swapped_);
    header.error = Load<uint16_t>(bytes, 48, swapped_);
    header.payload_bytes = Load<uint16_t>(bytes, 50, swapped_);
  }
  return header;
}

void BlktraceDecoder::ReportRange(proto::LossReason reason, uint64_t from, uint64_t to,
                                  const char* what, CaptureSink* sink) const {
  proto::Loss loss;
  loss.set_reason(reason);
  loss.set_from_bytes(from);
  loss.set_to_bytes(to);
  loss.set_detail(name_ + ": " + what);
  sink->OnLoss(loss);
}

void BlktraceDecoder::Decode(std::span<const std::byte> bytes, CaptureSink* sink) {
  if (carry_.empty()) {
    const size_t used = DecodeSome(bytes, false, sink);
    offset_ += used;
    carry_.assign(bytes.begin() + static_cast<ptrdiff_t>(used), bytes.end());
    return;
  }
  carry_.insert(carry_.end(), bytes.begin(), bytes.end());
  const size_t used = DecodeSome(carry_, false, sink);
  offset_ += used;
  carry_.erase(carry_.begin(), carry_.begin() + static_cast<ptrdiff_t>(used));
}

void BlktraceDecoder::Finish(CaptureSink* sink) {
  const size_t used = DecodeSome(carry_, true, sink);
  offset_ += used;
  carry_.erase(carry_.begin(), carry_.begin() + static_cast<ptrdiff_t>(used));
  const uint64_t end = offset_ + carry_.size();
  if (damage_begin_) {
    ReportRange(proto::DAMAGED_INPUT, *damage_begin_, end, "bytes that are no record", sink);
    damage_begin_.reset();
  } else if (!carry_.empty()) {
    ReportRange(proto::TRUNCATED_INPUT, offset_, end, "ends inside a record", sink);
  }
  offset_ = end;
  carry_.clear();
}

// Decodes the whole records at the start of `bytes` and returns how many bytes they (and garbage)
// took. A record is taken when the one after it has been seen to begin where it should, or at the
// end.
size_t BlktraceDecoder::DecodeSome(std::span<const std::byte> bytes, bool at_end,
                                   CaptureSink* sink) {
  size_t at = 0;
  while (bytes.size() - at >= sizeof(uint32_t)) {
    const std::span<const std::byte> rest = bytes.subspan(at);
    const bool magic = version_ == 0 ? LockFormat(rest) : MagicAt(rest);
    if (!magic) {
      if (!damage_begin_) damage_begin_ = offset_ + at;
      ++at;
      continue;
    }
    const size_t header_bytes = version_ == 7 ? kHeaderBytesV7 : kHeaderBytesV8;
    if (rest.size() < header_bytes) return at;
    const Header header = ReadHeader(rest);
    const uint32_t what = header.action & kWhatMask;
    const size_t record_bytes = header_bytes + header.payload_bytes;
    const bool plausible = what <= kWhatLast && header.cpu < kBlktraceStreamsPerFile &&
                           header.time_ns >= 0 && header.time_ns < kTimeMaxNs;
    // A payload that looks like a record is the next record: the length is damaged.
    const bool length_wrong = header.payload_bytes >= sizeof(uint32_t) &&
                              rest.size() >= header_bytes + sizeof(uint32_t) &&
                              MagicAt(rest.subspan(header_bytes));
    if (plausible && rest.size() < record_bytes && !length_wrong) {
      // Wait for the rest. At the end there is none, but what looks like a record may be damage
      // with records after it.
      if (!at_end || !MagicWithin(rest.subspan(sizeof(uint32_t)))) return at;
    }
    const bool whole = rest.size() >= record_bytes && !length_wrong;
    const bool last = whole && rest.size() < record_bytes + sizeof(uint32_t);
    const bool followed = whole && !last && MagicAt(rest.subspan(record_bytes));
    // After damage a magic number may occur by chance: accept it only if the next record follows.
    if (!plausible || (damage_begin_ && !followed && !last)) {
      if (!damage_begin_) damage_begin_ = offset_ + at;
      ++at;
      continue;
    }
    if (damage_begin_) {
      ReportRange(proto::DAMAGED_INPUT, *damage_begin_, offset_ + at, "bytes that are no record",
                  sink);
      damage_begin_.reset();
    }
    ++records_;
    const size_t payload_bytes = std::min<size_t>(header.payload_bytes, rest.size() - header_bytes);
    DecodeRecord(header, rest.subspan(header_bytes, payload_bytes), sink);
    // A damaged payload length must not swallow the records that follow.
    at += followed || last ? record_bytes : header_bytes;
    if (!followed && !last) damage_begin_ = offset_ + at;
  }
  if (at_end && damage_begin_) at = bytes.size();
  return at;
}

void BlktraceDecoder::CheckSequence(const Header& header, CaptureSink* sink) {
  if (header.sequence == 0) return;  // not numbered
  const uint64_t key = (uint64_t{header.device} << 32) | header.cpu;
  const auto [it, first] = streams_.try_emplace(key);
  StreamState& state = it->second;
  const uint32_t missing = header.sequence - state.last_sequence - 1;  // may have wrapped
  // A number that goes back means that another recording begins. A trace may be a part of a longer
  // one, so its first number has no meaning.
  if (!first && missing > 0 && missing < (1u << 31)) {
    proto::Loss loss;
    loss.set_reason(proto::SEQUENCE_GAP);
    loss.set_count(missing);
    loss.set_from_ns(state.last_ns);
    loss.set_to_ns(header.time_ns);
    loss.set_cpu(header.cpu);
    loss.set_device(header.device);
    loss.set_detail(name_ + ": sequence numbers skip");
    sink->OnLoss(loss);
  }
  state.last_sequence = header.sequence;
  state.last_ns = header.time_ns;
}

void BlktraceDecoder::DecodeNotify(const Header& header, uint32_t what,
                                   std::span<const std::byte> payload, CaptureSink* sink) {
  if (what == kNotifyProcess && !payload.empty()) {
    ProcessComm comm{};
    const size_t length = std::min(payload.size(), comm.size() - 1);
    std::memcpy(comm.data(), payload.data(), length);
    sink->OnProcessName(header.pid, header.time_ns, comm);
  } else if (what == kNotifyTimestamp && payload.size() >= 8) {
    proto::ClockAnchor anchor;
    const auto seconds = Load<uint32_t>(payload, 0, swapped_);
    const auto nanos = Load<uint32_t>(payload, 4, swapped_);
    anchor.set_monotonic_ns(header.time_ns);
    anchor.set_wall_ns(int64_t{seconds} * kNanosPerSecond + nanos);
    sink->OnAnchor(anchor);
  } else if (what == kNotifyMessage && on_message_) {
    // Padded with NUL bytes by some kernels.
    const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
    on_message_(header.pid, text.substr(0, text.find('\0')));
  }
}

void BlktraceDecoder::DecodeRecord(const Header& header, std::span<const std::byte> payload,
                                   CaptureSink* sink) {
  const uint64_t category = header.action >> kCategoryShift;
  const uint32_t what = header.action & kWhatMask;
  if ((header.action & kCgroup) != 0) {
    payload = payload.subspan(std::min(payload.size(), kCgroupBytes));
  }
  if ((category & kCatNotify) != 0) return DecodeNotify(header, what, payload, sink);
  CheckSequence(header, sink);
  const std::optional<BlockAction> action = ActionOf(what);
  if (!action) return;

  BlockEvent event;
  event.time_ns = header.time_ns;
  event.device = header.device;
  event.cpu = header.cpu;
  event.action = *action;
  event.op = OpOf(category, header.bytes);
  event.flags = FlagsOf(category);
  event.lba = Lba(header.sector);
  event.bytes = header.bytes;
  event.pid = header.pid;
  event.error = header.error;
  event.sequence = header.sequence;
  event.passthrough = (category & kCatPassthrough) != 0;
  // A request without data has no address; some kernels write -1.
  if (header.bytes == 0 && header.sector == ~uint64_t{0}) event.lba = Lba();
  if (*action == BlockAction::kSplit && payload.size() >= 8) {
    event.split_lba = Lba(LoadBig<uint64_t>(payload, 0));
  } else if (*action == BlockAction::kRemap && payload.size() >= 16) {
    event.from_device = LoadBig<uint32_t>(payload, 0);
    event.from_lba = Lba(LoadBig<uint64_t>(payload, 8));
  }
  NormalizeFlush(&event);
  sink->OnEvent(stream_base_ + header.cpu, event);
}

}  // namespace blktape
