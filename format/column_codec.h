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

// Records to columns (message RecordBatch), each as it comes: the values it leaves behind are what
// is kept of it. Any record whose op is one of Op round-trips exactly, whatever its values. Not
// thread-safe.
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

// Replaces `records` by those of `batch`. kDataLoss, with the reason, if the batch contradicts
// itself or holds values that no record has; then `records` is unspecified.
Status DecodeBatch(const proto::RecordBatch& batch, std::vector<IoRecord>* records);

// Where each plane ends within the serialized `batch`, in bytes from its begin, ascending. A
// compressor does better with statistics of its own for each; nothing else depends on it.
std::vector<size_t> PlaneEnds(const proto::RecordBatch& batch);

}  // namespace blktape
