#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "capture/assemble/capture_pipeline.h"
#include "capture/session/file_finisher.h"
#include "capture/session/live_figures.h"
#include "capture/session/own_io.h"
#include "capture/session/record_filter.h"
#include "capture/session/recording_file.h"
#include "capture/session/trace_file.h"
#include "capture/source/live_source.h"
#include "capture/source/sink_buffer.h"
#include "format/loss.h"
#include "format/trace.pb.h"
#include "host/block_device.h"
#include "host/machine.h"

namespace blktape {

struct SessionOptions {
  // What a crash may cost at most.
  int64_t crash_window_ns = kNanosPerSecond;
  RecordFilter filter;
  // "recorded", "hashed" or "none".
  std::string process_names = "recorded";
  std::string command;              // run under the recording, for the header
  uint64_t buffer_limit_bytes = 0;  // rings grow up to this when overruns appear
  TraceFileOptions file;
  // Which disks are to be recorded as the machine is now; asked when disks or mounts change. Empty
  // function: those of the source and no others.
  std::function<Result<std::vector<Disk>>()> find_disks;
  // Goes on where no disk is left, until one comes.
  bool waits_for_disks = false;
  // How often disks, losses and the like are looked at. A disk that has come is recorded so long
  // after it was seen: by then sysfs shows all of it, and what one before it under its number has
  // left in the rings has been delivered.
  int64_t check_interval_ns = kNanosPerSecond;
  BlockDevices sysfs;
};

// A recording under way: moves I/O from a live source into a trace until told to end. One thread.
class CaptureSession {
 public:
  // Takes a started source, and what it has told already, if anything. kAlreadyExists,
  // kPermissionDenied ...: the file cannot be made.
  static Result<std::unique_ptr<CaptureSession>> Begin(std::unique_ptr<LiveSource> source,
                                                       const std::string& path,
                                                       const SessionOptions& options,
                                                       const SinkBuffer* told = nullptr);
  // Without Finish: the source is removed, PATH.partial stays.
  ~CaptureSession();

  // Waits at most `timeout_ms` for news and deals with it. False: the recording has come to its
  // end, as all its disks have gone. A failure (the disk of the trace is broken) ends it too;
  // Finish may still save what there is.
  Result<bool> Turn(int timeout_ms);

  // Goes on in a new file, in which the disks that have come have a place. Nothing is lost between
  // the two; the one before is finished meanwhile (TakeNews). A failure: it goes on in the old one.
  Status Rotate(const std::string& next_path);
  // A disk has come that is to be recorded: it will be from the next file on.
  bool WantsNewFile() const;

  // Writes a mark at this place of the trace.
  Status WriteMark(const proto::Mark& mark) { return file_->WriteMark(mark); }

  // Ends the recording: what is in flight and in the rings is delivered, the trace finished.
  Status Finish();

  // `begin_interval`: rate and depth of the next call are counted from this one.
  LiveFigures Figures(bool begin_interval);
  const RecordingFile& file() const { return *file_; }
  const LiveSource& source() const { return *source_; }
  // Those gone included; in the order of the header.
  const std::vector<Disk>& devices() const { return devices_; }
  // Things a person should know, since the last call: a disk vanished, buffers were grown, the disk
  // is full.
  std::vector<std::string> TakeNews();

 private:
  CaptureSession(std::unique_ptr<LiveSource> source, const SessionOptions& options);

  // Hashed process names get a salt that nobody knows; without it a name could be found by hashing
  // a list of names.
  Status DrawSalt();
  // Makes `path` the file that is written; returns the one before.
  Result<std::unique_ptr<RecordingFile>> Open(const std::string& path);
  // What the thread that finishes files has done.
  void TakeFinished();
  void AddToLostBefore(const LossTally& of_file);
  std::optional<SyncInterval> LastSync(int64_t ns) const;
  proto::Header MakeHeader() const;
  // Of this recorder's threads of which I/O may be in flight.
  std::vector<uint32_t> OwnPids() const;
  // Tells source and pipeline where they have changed.
  void SetOwnPids();
  CapturePipelineOptions PipelineOptions();
  std::string RenameProcess(std::string_view name) const;
  Status CheckClocks();
  // Reports disks that vanished, or that the source can tell no more of.
  void CheckDevices();
  // Removes disks that vanished, once what the rings still had of them is read or another disk has
  // the number; all: at once.
  void RemoveGone(bool all);
  // Looks what has changed: notes disks that have come.
  void LookForDisks();
  // Tells source and pipeline what lies on the disks.
  void ShowLayers();
  // Has the source record what has come; the disks that it took.
  std::vector<Disk> AddArrived();
  // Each second: the disks, overruns, a full disk. False: no disk is left.
  bool CheckWorld();
  void CheckOverruns();
  // Which recorded disks hold `path`.
  std::unordered_set<uint32_t> DisksHolding(const std::string& path) const;

  std::unique_ptr<LiveSource> source_;
  SessionOptions options_;
  std::vector<Disk> devices_;
  std::vector<bool> present_;  // by device
  struct Gone {
    Disk disk;
    int64_t noticed_ns;
  };
  std::vector<Gone> gone_;     // not removed yet
  std::vector<Disk> arrived_;  // to be recorded from the next file on
  int64_t arrived_ns_ = 0;
  std::string census_;
  FigureCounter counter_;
  ClockReading start_;
  ClockWatch clocks_;
  std::string name_salt_;                   // hashed process names
  std::unordered_set<uint32_t> own_disks_;  // indexes of devices that hold the trace
  OwnIoJudge judge_;
  std::unique_ptr<RecordingFile> file_;
  FileFinisher finisher_;
  std::vector<uint32_t> own_pids_;
  std::unique_ptr<CapturePipeline> pipeline_;
  std::vector<std::string> news_;
  int64_t next_tick_ns_ = 0;
  int64_t next_anchor_ns_ = 0;
  int64_t next_check_ns_ = 0;
  int64_t devices_checked_ns_ = 0;
  uint64_t kernel_lost_ = 0;
  bool was_paused_ = false;
  uint64_t files_finished_ = 0;
  uint64_t lost_before_ = 0;  // in files already finished
  bool lost_before_is_lower_bound_ = false;
  bool finished_ = false;
};

}  // namespace blktape
