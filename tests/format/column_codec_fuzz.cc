// Bytes as a serialized RecordBatch. What decodes must survive being encoded again.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "format/column_codec.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace blktape;  // NOLINT
  proto::RecordBatch batch;
  if (!batch.ParseFromArray(data, static_cast<int>(size))) return 0;
  if (batch.count() > 20'000) batch.set_count(batch.count() % 20'000);
  std::vector<IoRecord> records;
  if (!DecodeBatch(batch, &records).ok()) return 0;
  BLKTAPE_CHECK(records.size() <= batch.count());
  for (const IoRecord& io : records) BLKTAPE_CHECK(static_cast<int>(io.op) < kOpCount);
  proto::RecordBatch again;
  EncodeBatch(records, &again);
  std::vector<IoRecord> decoded;
  const Status status = DecodeBatch(again, &decoded);
  BLKTAPE_CHECK(status.ok());
  BLKTAPE_CHECK(decoded == records);
  return 0;
}
