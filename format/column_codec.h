#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/io_record.h"
#include "format/record_columns.h"
#include "format/trace.pb.h"

namespace blktape {

// The maximum number of records in a batch; a reader refuses more.
inline constexpr uint32_t kMaxBatchRecords = 262'144;

// Encodes records to columns (message RecordBatch) one by one; of each record it keeps only a few
// values. Any record whose op is one of Op round-trips exactly, whatever its values. Not
// thread-safe.
class BatchEncoder {
 public:
  BatchEncoder();
  ~BatchEncoder();

  // Adds a record; at most kMaxBatchRecords between two calls of Finish.
  void Add(const IoRecord& io);
  size_t count() const;
  // Fills `batch` with the records added since the last call. Keeps its memory for reuse.
  void Finish(proto::RecordBatch* batch);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All at once.
void EncodeBatch(std::span<const IoRecord> records, proto::RecordBatch* batch);

// Decodes a batch to records, a few at a time, so that the working set stays in the processor's
// cache however many records the batch has. Not thread-safe.
class BatchDecoder {
 public:
  BatchDecoder();
  ~BatchDecoder();

  // `batch` must stay unchanged until its last record is taken. kDataLoss, with the reason, if the
  // batch contradicts itself or has impossible values; then there are no records to take.
  Status Begin(const proto::RecordBatch& batch);
  // One more than the largest device index of its records; 0 if there are no records.
  uint64_t devices() const;
  // The number of records with an op that only a newer version knows. Take leaves them out.
  uint64_t unknown_ops() const;
  // Replaces `records` with the next ones; with none when all are taken.
  void Take(std::vector<IoRecord>* records);
  // Replaces `columns` with all remaining records, with these fields (RecordColumns::Field) and the
  // fields that they are encoded relative to.
  void TakeAll(uint16_t fields, RecordColumns* columns);
  // Gives up what has not been taken.
  void Drop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// All at once.
Status DecodeBatch(const proto::RecordBatch& batch, std::vector<IoRecord>* records);

// Where each plane ends within the serialized `batch`, in bytes from its start, ascending. A
// compressor does better with separate statistics for each plane; nothing else depends on this.
std::vector<size_t> PlaneEnds(const proto::RecordBatch& batch);

}  // namespace blktape
