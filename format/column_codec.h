#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// The most records a batch holds; a reader refuses more.
inline constexpr uint32_t kMaxBatchRecords = 262'144;

// Records to columns (message RecordBatch), each as it comes: a few values are what is kept of it.
// Any record whose op is one of Op round-trips exactly, whatever its values. Not thread-safe.
class BatchEncoder {
 public:
  BatchEncoder();
  ~BatchEncoder();

  // At most kMaxBatchRecords between two calls of Finish.
  void Add(const IoRecord& io);
  size_t count() const;
  // What was added since the last time. Keeps its memory.
  void Finish(proto::RecordBatch* batch);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All at once.
void EncodeBatch(std::span<const IoRecord> records, proto::RecordBatch* batch);

// A batch back to records, a handful at a time, so that however many it holds, what is worked on
// stays in the processor's cache. Not thread-safe.
class BatchDecoder {
 public:
  BatchDecoder();
  ~BatchDecoder();

  // `batch` must stay as it is until the last of it is taken. kDataLoss, with the reason, if it
  // contradicts itself or holds values that no record has; then there is nothing to take.
  Status Begin(const proto::RecordBatch& batch);
  // One more than the largest of all its records; 0 if there are none.
  uint64_t devices() const;
  // How many records have an op that only a newer version knows: they are not among those taken.
  uint64_t unknown_ops() const;
  // Replaces `records` by the next ones; by none when all are taken.
  void Take(std::vector<IoRecord>* records);
  // Gives up what has not been taken.
  void Drop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All at once.
Status DecodeBatch(const proto::RecordBatch& batch, std::vector<IoRecord>* records);

// Where each plane ends within the serialized `batch`, in bytes from its begin, ascending. A
// compressor does better with statistics of its own for each; nothing else depends on it.
std::vector<size_t> PlaneEnds(const proto::RecordBatch& batch);

}  // namespace blktape
