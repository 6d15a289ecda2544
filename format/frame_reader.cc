#include "format/frame_reader.h"

#include <algorithm>
#include <cstring>

namespace blktape {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kMagicBytes = 4;
// Reading a block header costs as much as decompressing this many bytes.
constexpr uint64_t kBytesPerBlock = 16;
constexpr uint64_t kNoLimit = ~uint64_t{0};

bool IsSkippable(uint32_t magic) { return (magic & 0xFFFFFFF0) == kSkippableMagic; }

}  // namespace

FrameReader::FrameReader(ByteSource* source, uint64_t offset_bytes)
    : source_(source), buffer_at_(offset_bytes), read_all_(offset_bytes == 0) {}

Status FrameReader::Seek(uint64_t offset_bytes) {
  RETURN_IF_ERROR(source_->Seek(offset_bytes));
  begin_ = end_ = 0;
  buffer_at_ = offset_bytes;
  at_end_ = false;
  found_.reset();
  read_all_ = offset_bytes == 0;
  digest_ = {};
  return OkStatus();
}

Result<size_t> FrameReader::Fill(uint64_t bytes) {
  while (end_ - begin_ < bytes && !at_end_) {
    // Not if the remainder is large: it would be moved for every few bytes read.
    if (begin_ > 0 && begin_ >= end_ - begin_ && buffer_.size() - end_ < kReadBytes) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      buffer_at_ += begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    // Grows with the bytes that really arrive, not with the value of a damaged size field.
    if (buffer_.size() - end_ < kReadBytes) {
      buffer_.resize(std::max(buffer_.size() * 2, end_ + kReadBytes));
    }
    ASSIGN_OR_RETURN(const size_t got, source_->Read(std::span(buffer_).subspan(end_)));
    if (got == 0) at_end_ = true;
    end_ += got;
  }
  return end_ - begin_;
}

Result<bool> FrameReader::Discard(uint64_t bytes) {
  while (true) {
    const auto now = static_cast<size_t>(std::min<uint64_t>(bytes, end_ - begin_));
    Drop(now);
    bytes -= now;
    if (bytes == 0) return true;
    ASSIGN_OR_RETURN(const size_t there, Fill(1));
    if (there == 0) return false;
  }
}

Result<FrameReader::Attempt> FrameReader::TryZstd(uint64_t most_bytes) {
  Attempt attempt;
  FrameWalk walk;
  while (true) {
    const FrameWalk::State state = walk.Advance(unread());
    attempt.cost_bytes = walk.blocks() * kBytesPerBlock;
    if (state == FrameWalk::State::kComplete) break;
    if (state == FrameWalk::State::kInvalid) {
      attempt.reason = "a frame header or block header that makes no sense";
      return attempt;
    }
    ASSIGN_OR_RETURN(const size_t there, Fill(walk.frame_bytes()));
    if (there < walk.frame_bytes()) {
      attempt.truncated = true;
      attempt.reason = "it ends inside a frame";
      return attempt;
    }
  }
  attempt.cost_bytes += walk.content_bytes();
  if (attempt.cost_bytes > most_bytes) {
    attempt.cost_bytes = 0;
    attempt.reason = "too many bytes that look like a frame";
    return attempt;
  }
  attempt.end_bytes = offset() + walk.frame_bytes();
  const auto content =
      decompressor_.Decompress(unread().first(walk.frame_bytes()), walk.content_bytes());
  if (!content) {
    attempt.reason = "a frame whose checksum does not hold";
    return attempt;
  }
  content_ = *content;
  attempt.good = true;
  attempt.kind = Kind::kFrame;
  return attempt;
}

Result<FrameReader::Attempt> FrameReader::TrySkippable(uint32_t magic, uint64_t most_bytes) {
  Attempt attempt;
  ASSIGN_OR_RETURN(const size_t header_bytes, Fill(kSkippableHeaderBytes));
  attempt.truncated = true;
  attempt.reason = "it ends inside a skippable frame";
  if (header_bytes < kSkippableHeaderBytes) return attempt;
  const uint64_t payload_bytes = LoadLittle32(unread().data() + kMagicBytes);
  const uint64_t frame_bytes = kSkippableHeaderBytes + payload_bytes;
  if (magic != kSeekTableMagic) {
    ASSIGN_OR_RETURN(attempt.skip, Discard(frame_bytes));
    attempt.good = attempt.skip;
    return attempt;
  }
  attempt.reason = "it ends inside the seek table";
  ASSIGN_OR_RETURN(const size_t there,
                   Fill(std::min<uint64_t>(frame_bytes, kMaxSeekTableBytes + kMagicBytes)));
  attempt.truncated = there < frame_bytes && payload_bytes <= kMaxSeekTableBytes;
  if (attempt.truncated) return attempt;
  if (payload_bytes > kMaxSeekTableBytes) {
    attempt.reason = "a seek table that is too large";
    return attempt;
  }
  attempt.cost_bytes = payload_bytes;
  if (attempt.cost_bytes > most_bytes) {
    attempt.cost_bytes = 0;
    attempt.reason = "too many bytes that look like a seek table";
    return attempt;
  }
  const std::optional<FrameSizesDigest> table =
      ParseSeekTable(unread().subspan(kSkippableHeaderBytes, payload_bytes));
  if (!table || (read_all_ && *table != digest_)) {
    attempt.reason = table ? "the seek table does not agree with the frames"
                           : "the seek table contradicts itself";
    // Only a well-formed table has a known end.
    if (table) attempt.end_bytes = offset() + frame_bytes;
    return attempt;
  }
  attempt.good = true;
  attempt.kind = Kind::kSeekTable;
  attempt.end_bytes = offset() + frame_bytes;
  return attempt;
}

Result<FrameReader::Attempt> FrameReader::Try(uint64_t most_bytes) {
  ASSIGN_OR_RETURN(const size_t there, Fill(kMagicBytes));
  Attempt attempt;
  if (there < kMagicBytes) {
    attempt.truncated = true;
    attempt.reason = "it ends inside a frame";
    return attempt;
  }
  const uint32_t magic = LoadLittle32(unread().data());
  if (magic == kZstdMagic) return TryZstd(most_bytes);
  if (IsSkippable(magic)) return TrySkippable(magic, most_bytes);
  attempt.reason = "bytes that begin no frame";
  return attempt;
}

uint64_t FrameReader::SearchBytesLeft() const {
  const uint64_t allowed = kFreeSearchBytes + offset() * kSearchBytesPerByte;
  return allowed - std::min(allowed, search_bytes_);
}

FrameReader::Event FrameReader::Take(const Attempt& attempt) {
  const Event event = {attempt.kind, offset(), attempt.end_bytes, false, {}};
  const uint64_t bytes = attempt.end_bytes - offset();
  if (attempt.kind == Kind::kFrame) digest_.Add(bytes, content_.size());
  Drop(static_cast<size_t>(bytes));
  return event;
}

Result<FrameReader::Event> FrameReader::FindNextGood(uint64_t from_bytes, const Attempt& failure) {
  read_all_ = false;
  Event damage = {Kind::kDamage, from_bytes, 0, failure.truncated, failure.reason};
  if (failure.end_bytes != 0) {
    // The block headers lead to an end: if a frame begins there, continue there.
    const auto bytes = static_cast<size_t>(failure.end_bytes - offset());
    ASSIGN_OR_RETURN(const size_t there, Fill(bytes + kMagicBytes));
    const uint32_t magic = there < bytes + kMagicBytes ? 0 : LoadLittle32(&unread()[bytes]);
    if (there == bytes || magic == kZstdMagic || IsSkippable(magic)) {
      Drop(bytes);
      damage.to_bytes = offset();
      return damage;
    }
  }
  size_t search_from = 1;
  while (true) {
    ASSIGN_OR_RETURN(const size_t there, Fill(search_from + kMagicBytes));
    size_t at = search_from;
    for (; at + kMagicBytes <= there; ++at) {
      const uint32_t magic = LoadLittle32(&unread()[at]);
      if (magic == kZstdMagic || magic == kSeekTableMagic) break;
    }
    if (at + kMagicBytes <= there) {
      Drop(at);
      ASSIGN_OR_RETURN(const Attempt attempt, Try(SearchBytesLeft()));
      if (attempt.good) {
        damage.to_bytes = offset();
        damage.truncated = false;
        found_ = attempt;
        return damage;
      }
      search_bytes_ += attempt.cost_bytes;
      search_from = 1;
    } else if (at_end_) {
      Drop(there);
      damage.to_bytes = offset();
      return damage;
    } else {
      // A magic number may begin in the last three bytes.
      Drop(at);
      search_from = 0;
    }
  }
}

Result<std::optional<FrameReader::RawFrame>> FrameReader::NextRaw() {
  const std::optional<RawFrame> other;
  if (found_) return other;
  ASSIGN_OR_RETURN(const size_t begun, Fill(kMagicBytes));
  if (begun < kMagicBytes || LoadLittle32(unread().data()) != kZstdMagic) return other;
  FrameWalk walk;
  while (true) {
    const FrameWalk::State state = walk.Advance(unread());
    if (state == FrameWalk::State::kComplete) break;
    if (state == FrameWalk::State::kInvalid) return other;
    ASSIGN_OR_RETURN(const size_t there, Fill(walk.frame_bytes()));
    if (there < walk.frame_bytes()) return other;
  }
  const RawFrame raw = {offset(), unread().first(walk.frame_bytes()), walk.content_bytes()};
  digest_.Add(raw.bytes.size(), raw.content_bytes);
  Drop(raw.bytes.size());
  return std::optional(raw);
}

Result<FrameReader::Event> FrameReader::Next() {
  if (found_) {
    const Attempt attempt = *found_;
    found_.reset();
    return Take(attempt);
  }
  while (true) {
    ASSIGN_OR_RETURN(const size_t there, Fill(1));
    const uint64_t from_bytes = offset();
    if (there == 0) return Event{Kind::kEnd, from_bytes, from_bytes, false, {}};
    ASSIGN_OR_RETURN(const Attempt attempt, Try(kNoLimit));
    if (!attempt.good) return FindNextGood(from_bytes, attempt);
    if (!attempt.skip) return Take(attempt);
  }
}

}  // namespace blktape
