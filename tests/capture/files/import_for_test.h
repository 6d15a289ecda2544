#pragma once

#include <string>
#include <vector>

#include "capture/assemble/capture_pipeline.h"
#include "capture/source/capture_source.h"
#include "format/io_record.h"
#include "format/trace.pb.h"

namespace blktape {

// A whole import in memory, read back from the trace it wrote. Any failure is a test failure.
struct ImportedTrace {
  proto::Header header;
  std::vector<IoRecord> records;
  std::vector<std::string> process;  // of records[i]; empty if not known
  std::vector<proto::Loss> losses;
  std::vector<proto::QueuedSizes> queued_sizes;
  proto::Summary summary;
  CaptureCounts counts;
};
ImportedTrace ImportForTest(const std::vector<std::string>& paths);

}  // namespace blktape
