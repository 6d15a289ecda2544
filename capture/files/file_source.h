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

// A source that reads another program's recording. Start() reads the input once to find its
// devices; Poll() reads it a second time to deliver it.
class FileSource : public CaptureSource {
 public:
  // The name of the format for messages: "blktrace version 7". Known after Start().
  virtual std::string description() const = 0;
  // When the recording began; absent if the input does not contain it. Known after Start().
  virtual std::optional<proto::ClockAnchor> start() const = 0;
  // The share of the input that Poll has delivered, 0 to 1.
  virtual double progress() const = 0;
  // How the rows were handled; null if the format has no rows. Complete after the last Poll().
  virtual const ImportReport* report() const { return nullptr; }
};

struct FileSourceOptions {
  std::string format;   // a name of FileFormats(); empty: recognised by content
  std::string columns;  // columns of a table without a known format, for ParseColumns
};

// A format that can be imported, for the help.
struct FileFormatName {
  std::string name;
  std::string title;
  std::string lacks;  // what the format does not contain
};
std::vector<FileFormatName> FileFormats();

// The files that `arguments` name. Each argument is a file, a folder, "-" for standard input, or
// the common prefix of a recorder's per-CPU files ("sda" for sda.blktrace.0, sda.blktrace.1, ...).
// kNotFound if there is no such file.
Result<std::vector<std::string>> ResolveInputs(const std::vector<std::string>& arguments);

// Per-CPU files that belong to the same recordings as files in `paths` but are not among them: an
// import without them lacks what the other CPUs did.
std::vector<std::string> MissingPerCpuFiles(const std::vector<std::string>& paths);

// Opens `paths` together as one recording, in the format that `options` names or that is recognised
// by content. Decompresses zstd, gzip, xz and bzip2 files, and reads the files in a folder or a tar
// archive. Input that cannot be read twice is stored in temporary files in `spool_folder`. In a
// folder or an archive, files of unknown format (a summary, a licence) are skipped; any other file
// of unknown format is kFailedPrecondition, with a list of the known formats. kInvalidArgument: no
// such format, or invalid columns.
Result<std::unique_ptr<FileSource>> OpenFileSource(const std::vector<std::string>& paths,
                                                   const std::string& spool_folder,
                                                   const FileSourceOptions& options = {});

}  // namespace blktape
