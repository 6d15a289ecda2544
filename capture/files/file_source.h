#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
#include "capture/files/import_report.h"
#include "capture/source/capture_source.h"
#include "format/trace.pb.h"

namespace blktape {

// A source that reads what another program recorded. Start() reads the input once to learn which
// devices it holds, Poll() a second time to deliver it.
class FileSource : public CaptureSource {
 public:
  // What a person calls the format: "blktrace version 7". Known after Start().
  virtual std::string description() const = 0;
  // When the recording began; absent if the input does not tell. Known after Start().
  virtual std::optional<proto::ClockAnchor> start() const = 0;
  // Share of the input that Poll has delivered, 0 to 1.
  virtual double progress() const = 0;
  // What became of the rows; null where the format has none. Whole after the last Poll().
  virtual const ImportReport* report() const { return nullptr; }
};

struct FileSourceOptions {
  std::string format;   // a name of FileFormats(); empty: as the content shows
  std::string columns;  // of a table without a format of its own, as ParseColumns takes it
};

// One that can be imported, for people.
struct FileFormatName {
  std::string name;
  std::string title;
  std::string lacks;  // what it does not tell
};
std::vector<FileFormatName> FileFormats();

// The files that `arguments` name: each a file, a folder, "-" for standard input, or the common
// part of a set of per-CPU files ("sda" for sda.blktrace.0, sda.blktrace.1, ...), as a recorder
// leaves them. kNotFound if there is neither.
Result<std::vector<std::string>> ResolveInputs(const std::vector<std::string>& arguments);

// Opens `paths` together as one recording, of the format that their content shows or `options`
// names; zstd, gzip, xz and bzip2 files are decompressed on the way, and of a folder or a tar
// archive the files in it are read. What cannot be read twice is kept in temporary files in
// `spool_folder` meanwhile. Of a folder or an archive, files of no known format (a summary, a
// licence) are passed over; every other one is kFailedPrecondition, with what is known.
// kInvalidArgument: no such format, or columns that make no sense.
Result<std::unique_ptr<FileSource>> OpenFileSource(const std::vector<std::string>& paths,
                                                   const std::string& spool_folder,
                                                   const FileSourceOptions& options = {});

}  // namespace blktape
