#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "capture/import/fields.h"
#include "capture/import/import_format.h"
#include "capture/import/row_importer.h"

namespace blktape {
namespace {

// VMware's vscsiStats as published by CloudPhysics (the layouts are those that libCacheSim reads).
// Little endian, no file header.
// 1: u32 number, u32 bytes, u32 segments, u16 command, u16 version, u64 lbn, u64 us: 32 bytes.
// 2: u16 command, u16 version, u32 number, u32 bytes, u32 segments, u64 lbn, u64 us,
//    u64 response us: 40 bytes.
constexpr size_t kBytes1 = 32;
constexpr size_t kBytes2 = 40;

template <typename T>
T Load(std::string_view row, size_t at) {
  T value = 0;
  for (size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(value << 8 | static_cast<uint8_t>(row[at + i]));
  }
  return value;
}

// The high byte of the version field.
int VersionAt(std::string_view bytes, size_t at) { return Load<uint16_t>(bytes, at) >> 8; }

int VersionOf(std::string_view head) {
  const auto all = [&](size_t row, size_t at, int version) {
    if (head.size() < row) return false;
    for (size_t begin = 0; begin + row <= head.size() && begin < 4 * row; begin += row) {
      if (VersionAt(head, begin + at) != version) return false;
    }
    return true;
  };
  // The command of one layout must not pass for the version of the other by chance.
  const auto plausible = [&](size_t command_at) {
    return ScsiOp(Load<uint16_t>(head, command_at) & 0xff).has_value();
  };
  if (all(kBytes2, 2, 2) && plausible(0)) return 2;
  if (all(kBytes1, 14, 1) && plausible(12)) return 1;
  return 0;
}

class Vscsi : public RowImporter {
 public:
  size_t Decode(std::string_view bytes, bool at_end, RowSink* sink) override {
    if (version_ == 0) {
      if (bytes.size() < 2 * kBytes2 && !at_end) return 0;
      version_ = VersionOf(bytes);
      if (version_ == 0) {
        if (!bytes.empty()) {
          sink->At(0);
          sink->Dropped("rows of neither version 1 nor 2");
        }
        return bytes.size();
      }
    }
    const size_t row = version_ == 1 ? kBytes1 : kBytes2;
    size_t done = 0;
    for (; done + row <= bytes.size(); done += row) {
      sink->At(offset_ + done);
      const char* wrong = Row(bytes.substr(done, row), sink);
      if (wrong != nullptr) sink->Dropped(wrong);
    }
    if (at_end && done < bytes.size()) {
      sink->At(offset_ + done);
      sink->Dropped("the file ends inside a row");
      done = bytes.size();
    }
    offset_ += done;
    return done;
  }

 private:
  const char* Row(std::string_view row, RowSink* sink) const {
    const bool first = version_ == 1;
    if (VersionAt(row, first ? 14 : 2) != version_) return "a row of another version";
    const auto op = ScsiOp(Load<uint16_t>(row, first ? 12 : 0) & 0xff);
    if (!op) return "a SCSI command that moves no data";
    IoRecord io;
    io.op = op->op;
    io.bytes = Load<uint32_t>(row, first ? 4 : 8);
    io.lba = Lba(Load<uint64_t>(row, 16));
    const auto ns = [&](size_t at) -> std::optional<int64_t> {
      int64_t value = 0;
      const uint64_t us = Load<uint64_t>(row, at);
      if (__builtin_mul_overflow(us, kNanosPerMicro, &value)) return std::nullopt;
      return value;
    };
    io.issue_ns = ns(24);
    if (!io.issue_ns) return "a time out of range";
    if (!first) {
      const auto response_ns = ns(32);
      int64_t end_ns = 0;
      if (!response_ns || __builtin_add_overflow(*io.issue_ns, *response_ns, &end_ns)) {
        return "a time out of range";
      }
      io.complete_ns = end_ns;
    }
    NormalizeFlushRecord(&io);
    io.device = sink->Device("vscsi");
    sink->Row(io, {});
    return nullptr;
  }

  int version_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace

ImportFormat VscsiFormat() {
  return {.name = "vscsi",
          .title = "VMware vscsiStats version 1 or 2 (CloudPhysics)",
          .lacks = "processes, flags, the wall clock; version 1 also completions",
          .binary = true,
          .looks_like = [](std::string_view head) { return VersionOf(head) != 0; },
          .make = [] { return std::make_unique<Vscsi>(); }};
}

}  // namespace blktape
