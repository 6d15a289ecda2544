#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"

namespace blktape {

// The reference drive: a closed-form service-time model with a queue. It is no product; its round
// numbers are those of a plain flash drive of the middle range (12 k random 4 KiB reads a second at
// queue depth 1, 100 k with all channels busy, 2 GB/s read, 1 GB/s written, an fsync of half a
// millisecond). docs/score.md quotes them: changing a constant or a rule makes a new version of the
// score.
//
// A read or write of b bytes
//   1. waits for that of the `channels` channels which becomes free first and holds it for
//      base(op);
//   2. then holds the link for b / bandwidth(op). The link has two directions, one for reads and
//      one for writes, each serving in the order of acceptance;
//   3. a write with FUA then takes fua_ns more.
// Writes without FUA end in a volatile cache. A flush waits for all writes accepted before it and
// for the flush before it, then takes flush_base_ns + d / flush_bandwidth, where d is what was
// written to the cache since the last flush, at most cache_bytes; if nothing was, it takes
// clean_flush_ns. Requests accepted after a flush do not wait for it. A write with PREFLUSH is a
// flush followed at once by its own base, transfer and fua_ns, outside the queues of 1 and 2.
// Discard, write zeroes and secure erase hold a channel for base(op) + b / bandwidth(op).
//
// Other drives than the reference may have a write buffer that fills, as flash drives write one bit
// a cell first and gather three or four later. What a write puts into it moves at write_bandwidth,
// what finds it full at full_write_bandwidth. A drive that has been idle (no request accepted that
// is not complete) for collect_after_ns empties it at collect_bandwidth until the next request.
struct DriveModel {
  uint32_t channels = 8;
  int64_t read_base_ns = 80'000;
  int64_t write_base_ns = 25'000;
  int64_t fua_ns = 400'000;
  int64_t flush_base_ns = 500'000;
  int64_t clean_flush_ns = 20'000;
  int64_t discard_base_ns = 50'000;
  int64_t write_zeroes_base_ns = 50'000;
  int64_t secure_erase_base_ns = 1'000'000;
  // Bytes a second.
  uint64_t read_bandwidth = 2'000'000'000;
  uint64_t write_bandwidth = 1'000'000'000;
  uint64_t flush_bandwidth = 2'000'000'000;
  uint64_t discard_bandwidth = 1'000'000'000'000;
  uint64_t write_zeroes_bandwidth = 4'000'000'000;
  uint64_t secure_erase_bandwidth = 4'000'000'000;
  uint64_t cache_bytes = 64ull << 20;
  // The buffer; 0 bytes: none.
  uint64_t buffer_bytes = 0;
  uint64_t full_write_bandwidth = 1;
  uint64_t collect_bandwidth = 0;
  int64_t collect_after_ns = 0;
};

// "reference", the one above; "nvme-2026", a fast drive of few chips whose buffer fills and is
// emptied in idle time; "sata-2011" and "emmc-2018", drives of their times. They are no products
// either. kInvalidArgument names those there are.
Result<DriveModel> DriveModelNamed(std::string_view name);

// The model's state: a pure function of the sequence of requests, without randomness. A request
// costs O(channels). Not thread-safe.
class DriveSimulator {
 public:
  explicit DriveSimulator(const DriveModel& model);

  // Accepts a request at `submit_ns`, which must not go back from call to call, and returns when
  // it completes. `flags` are those of io_record.h. Zone operations take discard_base_ns.
  int64_t Accept(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns);

 private:
  int64_t Write(uint32_t flags, uint64_t bytes, int64_t submit_ns);
  int64_t Flush(int64_t submit_ns);
  // What the drive has collected since it became idle.
  void Collect(int64_t submit_ns);
  int64_t Serve(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns);
  // How long a write of so many bytes holds the link; fills the buffer.
  int64_t WriteTransferNs(uint64_t bytes);
  // Occupies the channel that becomes free first and returns when it lets go.
  int64_t HoldChannel(int64_t submit_ns, int64_t hold_ns);

  const DriveModel model_;
  std::vector<int64_t> channel_free_ns_;
  int64_t read_link_free_ns_ = 0;
  int64_t write_link_free_ns_ = 0;
  int64_t flush_free_ns_ = 0;
  int64_t writes_complete_ns_ = 0;  // the last of all accepted so far
  uint64_t dirty_bytes_ = 0;
  uint64_t buffered_bytes_ = 0;
  int64_t busy_until_ns_ = 0;
};

}  // namespace blktape
