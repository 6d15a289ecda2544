#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"

namespace blktape {

// The reference drive: a closed-form service-time model with a queue. It is not a product; its
// round numbers are those of an ordinary mid-range flash drive (12 k random 4 KiB reads per second
// at queue depth 1, 100 k with all channels busy, 2 GB/s read, 1 GB/s written, half a millisecond
// per fsync). docs/score.md quotes them: changing a constant or a rule makes a new version of the
// score.
//
// A read or write of b bytes
//   1. waits for the first of the `channels` channels that becomes free and holds it for
//      base(op);
//   2. then holds the link for b / bandwidth(op). The link has two directions, one for reads and
//      one for writes; each serves requests in the order of acceptance;
//   3. a write with FUA then takes fua_ns longer.
// Writes without FUA end in a volatile cache. A flush waits for all writes accepted before it and
// for the flush before it, then takes flush_base_ns + d / flush_bandwidth, where d is the number of
// bytes written to the cache since the last flush, at most cache_bytes; if d is 0, it takes
// clean_flush_ns. Requests accepted after a flush do not wait for it. A write with PREFLUSH is a
// flush followed at once by the write's own base, transfer and fua_ns, outside the queues of steps
// 1 and 2. Discard, write zeroes and secure erase hold a channel for base(op) + b / bandwidth(op).
//
// Other drives than the reference may have a write buffer that fills, as flash drives write one bit
// a cell first and gather three or four later. What a write puts into it moves at write_bandwidth,
// what finds it full at full_write_bandwidth. A drive that has been idle (no request accepted that
// is not complete) for collect_after_ns empties it at collect_bandwidth until the next request.
//
// A disk has an arm. A read, and a write with FUA, waits for the arm, moves it by its distance from
// where the last one ended,
//   seek(d) = seek_least_ns + (seek_full_ns - seek_least_ns) * sqrt(d / span_bytes), d > 0,
// and waits until its place comes round: the platter turns once in rotation_ns, a track holds what
// passes in that time at read_bandwidth, and all tracks begin at one angle. Then it transfers b /
// read_bandwidth. A read that begins where the last one ended comes from the track that is read
// ahead: transfer alone. Other writes go to the cache, for write_base_ns and b / write_bandwidth,
// and are owed: seek(distance from the write before), of a write that does not begin where that one
// ended a quarter of a rotation (the drive sorts them), and b / read_bandwidth. What is owed is
// paid while the drive is idle; by a flush, which takes flush_base_ns more if anything is owed and
// clean_flush_ns if not; and by a write that finds the cache full, for as many bytes as it lacks.
// Nothing is reordered but that; channels, flush_bandwidth and fua_ns have no meaning.
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
  // Bytes per second.
  uint64_t read_bandwidth = 2'000'000'000;
  uint64_t write_bandwidth = 1'000'000'000;
  uint64_t flush_bandwidth = 2'000'000'000;
  uint64_t discard_bandwidth = 1'000'000'000'000;
  uint64_t write_zeroes_bandwidth = 4'000'000'000;
  uint64_t secure_erase_bandwidth = 4'000'000'000;
  uint64_t cache_bytes = 64ull << 20;
  // The write buffer; 0 bytes: none.
  uint64_t buffer_bytes = 0;
  uint64_t full_write_bandwidth = 1;
  uint64_t collect_bandwidth = 0;
  int64_t collect_after_ns = 0;
  // The disk; a rotation of 0: none.
  int64_t rotation_ns = 0;
  int64_t seek_least_ns = 0;
  int64_t seek_full_ns = 0;
  uint64_t span_bytes = 1;
};

// "reference", the one above; "nvme-2026", a fast drive of few chips whose buffer fills and is
// emptied in idle time; "sata-2011" and "emmc-2018", drives of their times; "hdd-2013", a disk of
// 7,200 turns a minute. They are no products either; docs/simulated_drives.md says where their
// figures come from. kInvalidArgument names those there are.
Result<DriveModel> DriveModelNamed(std::string_view name);
std::vector<std::string> DriveModelNames();

// The state of a simulated drive: a pure function of the sequence of requests, without randomness.
// A request costs O(channels). Not thread-safe.
class DriveSimulator {
 public:
  explicit DriveSimulator(const DriveModel& model);

  // Accepts a request at `submit_ns`, which must not go back from call to call, and returns when
  // it completes. `flags` are those of io_record.h. Zone operations take discard_base_ns. Only a
  // disk cares for `offset_bytes`.
  int64_t Accept(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns,
                 uint64_t offset_bytes = 0);

 private:
  int64_t Write(uint32_t flags, uint64_t bytes, int64_t submit_ns);
  int64_t Flush(int64_t submit_ns);
  // Empties the buffer by the amount that the drive collected since it became idle.
  void Collect(int64_t submit_ns);
  int64_t Serve(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns);
  // Of a disk.
  int64_t ServeDisk(Op op, uint32_t flags, uint64_t bytes, int64_t submit_ns,
                    uint64_t offset_bytes);
  int64_t SeekNs(uint64_t from_bytes, uint64_t to_bytes) const;
  int64_t MoveArm(uint64_t bytes, int64_t submit_ns, uint64_t offset_bytes, bool may_read_ahead);
  int64_t Cache(uint64_t bytes, int64_t submit_ns, uint64_t offset_bytes);
  void PayOwed(int64_t idle_ns);
  // Returns how long a write of `bytes` holds the link, and fills the buffer.
  int64_t WriteTransferNs(uint64_t bytes);
  // Occupies the channel that becomes free first and returns when that channel is free again.
  int64_t HoldChannel(int64_t submit_ns, int64_t hold_ns);

  const DriveModel model_;
  std::vector<int64_t> channel_free_ns_;
  int64_t read_link_free_ns_ = 0;
  int64_t write_link_free_ns_ = 0;
  int64_t flush_free_ns_ = 0;
  int64_t writes_complete_ns_ = 0;  // the last completion of all accepted writes
  uint64_t dirty_bytes_ = 0;
  uint64_t buffered_bytes_ = 0;
  int64_t busy_until_ns_ = 0;
  // Of a disk: the ends of what was positioned last and of what was cached last, when the arm is
  // free, and what cached writes still take.
  uint64_t arm_bytes_ = 0;
  uint64_t cached_end_bytes_ = 0;
  int64_t arm_free_ns_ = 0;
  int64_t owed_ns_ = 0;
};

}  // namespace blktape
