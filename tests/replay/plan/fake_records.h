#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"
#include "replay/plan/record_stream.h"

namespace blktape {

// An I/O that arrived and was issued at `arrival_ns`. Addresses in bytes.
inline IoRecord Io(Op op, int64_t arrival_ns, std::optional<int64_t> complete_ns,
                   uint64_t begin_bytes, uint64_t bytes) {
  IoRecord io;
  io.op = op;
  io.queue_ns = arrival_ns;
  io.issue_ns = arrival_ns;
  io.complete_ns = complete_ns;
  if (op != Op::kFlush) io.lba = Lba(begin_bytes / kSectorBytes);
  io.bytes = bytes;
  return io;
}
inline IoRecord Read(int64_t arrival_ns, std::optional<int64_t> complete_ns,
                     uint64_t begin_bytes = 0, uint64_t bytes = 4096) {
  return Io(Op::kRead, arrival_ns, complete_ns, begin_bytes, bytes);
}
inline IoRecord Write(int64_t arrival_ns, std::optional<int64_t> complete_ns,
                      uint64_t begin_bytes = 0, uint64_t bytes = 4096) {
  return Io(Op::kWrite, arrival_ns, complete_ns, begin_bytes, bytes);
}

// Records from memory, of devices called sda, sdb ...
class FakeRecords : public RecordStream {
 public:
  explicit FakeRecords(std::vector<IoRecord> records, int devices = 1)
      : records_(std::move(records)) {
    for (int i = 0; i < devices; ++i) {
      header_.add_devices()->set_name(std::string("sd") + static_cast<char>('a' + i));
    }
  }
  Result<bool> Next(IoRecord* record, uint64_t* ordinal) override {
    if (next_ == records_.size()) return false;
    *ordinal = next_;
    *record = records_[next_++];
    return true;
  }
  const proto::Header& header() const override { return header_; }

 private:
  const std::vector<IoRecord> records_;
  proto::Header header_;
  size_t next_ = 0;
};

}  // namespace blktape
