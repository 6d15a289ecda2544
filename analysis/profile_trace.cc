#include "analysis/profile_trace.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "analysis/plausible.h"
#include "base/saturating.h"
#include "base/task_pool.h"
#include "format/record_columns.h"
#include "format/trace_piece.h"
#include "format/trace_reader.h"

namespace blktape {
namespace {

std::optional<int64_t> LastArrivalNs(const RecordColumns& columns) {
  for (size_t i = columns.count; i-- > 0;) {
    if (columns.Has(i, RecordColumns::kQueue)) return columns.queue_ns[i];
    if (columns.Has(i, RecordColumns::kIssue)) return columns.issue_ns[i];
  }
  return std::nullopt;
}

// Where a window of a trace begins and ends, as far as its summary tells.
class WindowRead {
 public:
  WindowRead(const ProfileOptions& options, const std::optional<proto::Summary>& summary) {
    if (!summary || !summary->has_first_ns() || !summary->has_late_ns_max()) return;
    if (options.from_ns && *options.from_ns > 0) {
      begin_ns_ = SaturatingAdd(summary->first_ns(), *options.from_ns);
    }
    if (options.to_ns) {
      end_ns_ =
          SaturatingAdd(SaturatingAdd(summary->first_ns(), *options.to_ns), summary->late_ns_max());
    }
  }

  // Goes to the beginning.
  void Begin(TraceReader* reader) {
    // Without an index it is read from the start, to the same end.
    if (begin_ns_ > INT64_MIN && reader->SkipTo(begin_ns_).ok()) in_part_ = true;
  }
  // Whether these records, which stand behind those of the calls before, lie behind the end.
  bool IsOver(const RecordColumns& columns) {
    if (over_) {
      in_part_ = true;
      return true;
    }
    const std::optional<int64_t> last_ns = LastArrivalNs(columns);
    // Not before the next time: sizes as queued stand behind the records that they belong to.
    over_ = last_ns && *last_ns >= end_ns_;
    return false;
  }
  bool in_part() const { return in_part_; }
  int64_t end_ns() const { return end_ns_; }

 private:
  // Nothing of the window stands before a record of begin_ns_, or behind one of end_ns_.
  int64_t begin_ns_ = INT64_MIN;
  int64_t end_ns_ = INT64_MAX;
  bool over_ = false;
  bool in_part_ = false;
};

// Whether a window, if there is one, is counted from what the summary says and not from the first
// record that is read.
bool CountsFromSummary(const ProfileOptions& options,
                       const std::optional<proto::Summary>& summary) {
  if (!options.from_ns && !options.to_ns) return true;
  return summary && summary->has_first_ns() && summary->has_last_ns() &&
         IsPlausibleNs(summary->first_ns()) && IsPlausibleNs(summary->last_ns());
}

}  // namespace

Result<Profile> ProfileTrace(const std::string& path, const ProfileOptions& options) {
  // Order of issue, which one thread at a time looks at, takes a quarter of all work.
  constexpr int kMostHelpers = 3;
  TaskPool pool(options.threads ? std::max(0, *options.threads - 1)
                                : std::min(kMostHelpers, TaskPool::HelpersOfMachine()));
  ProfileBuilder builder(options);
  ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path, &builder));
  ProfileOptions::Choice choice;
  if (options.choose != nullptr) {
    ASSIGN_OR_RETURN(choice, options.choose(*reader));
  }
  builder.Filter(std::move(choice.keeps),
                 [&reader](uint32_t id) { return reader->ProcessName(id); });
  if (pool.helpers() > 0) {
    builder.WorkOn(&pool);
    reader->DecodeAhead(&pool);
  }
  builder.Begins(reader->header());
  if (reader->summary()) builder.Expect(*reader->summary());
  if (options.from_ns && reader->summary()) {
    RETURN_IF_ERROR(CheckPieceBegins(*options.from_ns, reader->summary(), {}));
  }
  WindowRead window(options, reader->summary());
  window.Begin(reader.get());
  if (choice.frames != nullptr && CountsFromSummary(options, reader->summary())) {
    // Hours of the day are told by the anchors before them.
    reader->SkipFramesUnless(
        [frames = choice.frames, anchors = options.details](const proto::FrameContents& contents) {
          return (anchors && contents.anchors()) || frames(contents);
        },
        window.end_ns());
  }
  ArrivalSpan met;  // where no summary tells
  const bool has_to_meet = options.from_ns && !reader->summary();
  while (true) {
    ASSIGN_OR_RETURN(std::shared_ptr<RecordColumns> columns,
                     reader->NextColumns(ProfileBuilder::kFields));
    if (columns == nullptr || window.IsOver(*columns)) break;
    for (size_t i = 0; has_to_meet && i < columns->count; ++i) {
      met.Add(columns->Record(i).arrival_ns());
    }
    builder.Add(std::move(columns));
  }
  if (options.from_ns) {
    RETURN_IF_ERROR(CheckPieceBegins(*options.from_ns, reader->summary(), met));
  }
  builder.PassedOver(reader->skipped_records());
  if (window.in_part()) builder.ReadInPart(*reader->summary());
  return builder.Finish(reader->header(), reader->summary(),
                        [&reader](uint32_t id) { return std::string(reader->ProcessName(id)); });
}

}  // namespace blktape
