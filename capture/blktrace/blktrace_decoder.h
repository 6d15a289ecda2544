#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/source/capture_source.h"

namespace blktape {

// The stream numbers of a blktrace decoder are `stream_base` + CPU; CPU numbers are below this.
inline constexpr uint32_t kBlktraceStreamsPerFile = 4096;

// Decodes blktrace's binary records, versions 7 and 8, in either byte order, from input in pieces
// of any size. Pure. Memory: one record (64 KiB), whatever the input.
//
// Delivers OnEvent (the stream comes from the record's cpu field, because a merged dump contains
// several), OnProcessName, OnAnchor and OnLoss (SEQUENCE_GAP, DAMAGED_INPUT with byte range,
// TRUNCATED_INPUT, UNDECODABLE_EVENT). Events of plugging, sleeping and similar actions are
// counted, not delivered.
class BlktraceDecoder {
 public:
  // `name` is the input's name in losses: a path.
  BlktraceDecoder(std::string name, uint32_t stream_base)
      : name_(std::move(name)), stream_base_(stream_base) {}

  // A note that somebody (an I/O scheduler, whoever writes to the disk's file `msg` in debugfs) has
  // left among the events, and who it was; 0 before Linux 5.10 or so.
  using OnMessage = std::function<void(uint32_t pid, std::string_view text)>;
  // Has messages delivered, which are passed over otherwise.
  void ListenToMessages(OnMessage on_message) { on_message_ = std::move(on_message); }

  void Decode(std::span<const std::byte> bytes, CaptureSink* sink);
  // The input has ended: a partial record becomes TRUNCATED_INPUT.
  void Finish(CaptureSink* sink);

  uint64_t bytes() const { return offset_ + carry_.size(); }
  // The number of records decoded, including notify records and records that are not delivered.
  uint64_t records() const { return records_; }
  // 7 or 8; 0 before the first record.
  int version() const { return version_; }

 private:
  struct Header {
    uint32_t sequence = 0;
    int64_t time_ns = 0;
    uint64_t sector = 0;
    uint32_t bytes = 0;
    uint64_t action = 0;
    uint32_t pid = 0;
    uint32_t device = 0;
    uint32_t cpu = 0;
    uint16_t error = 0;
    uint16_t payload_bytes = 0;
  };
  struct StreamState {
    uint32_t last_sequence = 0;
    int64_t last_ns = 0;
  };

  size_t DecodeSome(std::span<const std::byte> bytes, bool at_end, CaptureSink* sink);
  bool LockFormat(std::span<const std::byte> bytes);
  bool MagicAt(std::span<const std::byte> bytes) const;
  bool MagicWithin(std::span<const std::byte> bytes) const;
  Header ReadHeader(std::span<const std::byte> bytes) const;
  void DecodeRecord(const Header& header, std::span<const std::byte> payload, CaptureSink* sink);
  void DecodeNotify(const Header& header, uint32_t what, std::span<const std::byte> payload,
                    CaptureSink* sink);
  void CheckSequence(const Header& header, CaptureSink* sink);
  void ReportRange(proto::LossReason reason, uint64_t from, uint64_t to, const char* what,
                   CaptureSink* sink) const;

  std::string name_;
  uint32_t stream_base_;
  OnMessage on_message_;
  std::vector<std::byte> carry_;          // the start of an incomplete record
  uint64_t offset_ = 0;                   // offset of carry_'s first byte, or of the next byte if
                                          // carry_ is empty
  std::optional<uint64_t> damage_begin_;  // start of invalid bytes
  bool swapped_ = false;
  int version_ = 0;
  uint64_t records_ = 0;
  std::unordered_map<uint64_t, StreamState> streams_;  // by device and CPU
};

// Whether `head`, the first bytes of a file, looks like blktrace's binary output.
bool LooksLikeBlktrace(std::span<const std::byte> head);

}  // namespace blktape
