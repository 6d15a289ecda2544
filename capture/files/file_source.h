#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
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
};

// The files that `arguments` name: each a file, "-" for standard input, or the common part of a set
// of per-CPU files ("sda" for sda.blktrace.0, sda.blktrace.1, ...), as a recorder leaves them.
// kNotFound if there is neither.
Result<std::vector<std::string>> ResolveInputs(const std::vector<std::string>& arguments);

// Opens `paths` together as one recording, of the format that their content shows; zstd and gzip
// files are decompressed on the way. What cannot be read twice is kept in a temporary file in
// `spool_folder` meanwhile. kFailedPrecondition, with what is known, if the format is not.
Result<std::unique_ptr<FileSource>> OpenFileSource(const std::vector<std::string>& paths,
                                                   const std::string& spool_folder);

}  // namespace blktape
