#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/task_pool.h"
#include "format/column_shelf.h"
#include "format/frame_index.h"
#include "format/frame_reader.h"
#include "format/record_columns.h"
#include "format/trace.pb.h"

namespace blktape {

// A frame that holds together, decompressed, and taken to pieces if it is of the usual kind.
struct DecodedFrame {
  // A message, or the records of a batch.
  struct Part {
    proto::Message message;
    std::shared_ptr<RecordColumns> columns;  // null: a message
    uint64_t devices = 0;                    // of the records: one more than the largest
  };
  uint64_t from_bytes = 0;  // in the file
  uint64_t to_bytes = 0;
  std::optional<FrameSkip> skip;  // what was passed over before it
  // True: its first message is `start`, and `parts` are all others. False: it is of a kind that is
  // to be looked at message by message, in `content`.
  bool decoded = false;
  proto::FrameStart start;
  std::vector<Part> parts;
  std::string content;
};

// Decompresses and decodes frames on the threads of a pool before they are asked for. Gives the
// frames of a FrameReader in their order as long as all is well; where it is not, the FrameReader
// stands where it would have stood, and its next event is the one that comes. Not thread-safe.
class FramesAhead {
 public:
  // What to pass over from this offset in the file on; asked on the thread that calls Next.
  using Skip = std::function<std::optional<FrameSkip>(uint64_t)>;

  // All three must outlive it, but for tasks of `pool` that are under way.
  FramesAhead(FrameReader* frames, TaskPool* pool, ColumnShelf* shelf, Skip skip);
  ~FramesAhead();

  // The next frame with columns of `fields`; null: ask `frames` what comes next, after asking what
  // to pass over. Fails as the source does.
  Result<std::unique_ptr<DecodedFrame>> Next(uint16_t fields);
  // Forgets what was read ahead; the FrameReader stands behind it.
  void Drop();

 private:
  struct Job;
  class Benches;

  Status ReadAhead(uint16_t fields);

  FrameReader* frames_;
  TaskPool* pool_;
  ColumnShelf shelf_;
  Skip skip_;
  std::shared_ptr<Benches> benches_;
  std::deque<std::shared_ptr<Job>> ahead_;
  uint64_t ahead_bytes_ = 0;  // of content
  Status failure_;            // of the source, behind what was read ahead
};

}  // namespace blktape
