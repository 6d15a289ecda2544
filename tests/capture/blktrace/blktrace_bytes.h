#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blktape {

// Writes blktrace's binary records as a kernel of the given version and byte order would
// (include/uapi/linux/blktrace_api.h).
class BlktraceBytes {
 public:
  struct Record {
    uint32_t sequence = 0;
    uint64_t time_ns = 1000;
    uint64_t sector = 0;
    uint64_t action = 0;
    uint32_t bytes = 0;
    uint32_t pid = 1;
    uint32_t device = 8u << 20;
    uint32_t cpu = 0;
    uint16_t error = 0;
    std::string payload = "";
  };

  BlktraceBytes(int version, bool big_endian) : version_(version), big_endian_(big_endian) {}

  void Add(const Record& record) {
    Put(0x65617400 | static_cast<uint64_t>(version_), 4);
    Put(record.sequence, 4);
    Put(record.time_ns, 8);
    Put(record.sector, 8);
    Put(record.bytes, 4);
    if (version_ == 7) {
      Put(record.action, 4);
      Put(record.pid, 4);
    } else {
      Put(record.pid, 4);
      Put(record.action, 8);
    }
    Put(record.device, 4);
    Put(record.cpu, 4);
    Put(record.error, 2);
    Put(record.payload.size(), 2);
    if (version_ == 8) Put(0, 4), Put(0, 8);
    bytes_ += record.payload;
  }
  void AddRaw(const std::string& bytes) { bytes_ += bytes; }

  // Native 32-bit words, as the payload of a timestamp.
  std::string Words(const std::vector<uint32_t>& words) const {
    BlktraceBytes payload(version_, big_endian_);
    for (const uint32_t word : words) payload.Put(word, 4);
    return payload.bytes_;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (big_endian_ ? size - 1 - i : i);
      bytes_ += static_cast<char>(value >> shift);
    }
  }

  int version_;
  bool big_endian_;
  std::string bytes_;
};

}  // namespace blktape
