#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "replay/replayer.h"

namespace blktape {

// Files that were made for a run, and go again where it does not come to that.
class MadeFiles {
 public:
  MadeFiles() = default;
  ~MadeFiles();
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;

  void Add(std::string path) { paths_.push_back(std::move(path)); }
  // The run begins: they stay.
  void Keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

// Makes a target file of this size; its blocks are not there until they are written, which it says
// on stderr unless what is read will be (`prepared`). kNotFound if the name is that of a device,
// and fails as CreateScratchFile() does.
Status CreateScratchTarget(const std::string& path, uint64_t size_bytes, bool prepared,
                           MadeFiles* made);

// Makes those target files of `options` that do not exist, as large as the trace wants. kNotFound
// if one does not exist and `create` was not asked for.
Status CreateScratchTargets(const ReplayOptions& options, bool create, bool prepared,
                            const std::atomic<bool>& stop, MadeFiles* made);

// Warns on stderr of recorded devices that share the addresses of a target: what one wrote the
// other reads, and they conflict where the recording had no conflict. `way_out` may be empty.
void TellShared(const ReplayPreview& preview, const std::string& way_out);

// Warns on stderr of targets to which the kernel sends no flushes though they need them.
void TellLostFlushes(const ReplayPreview& preview);

// Whether the replay will change the content of a block device.
bool ChangesDevices(const ReplayOptions& options, const ReplayPreview& preview);

// Names the targets and asks on the terminal. kCancelled: the answer was not "yes", or `stop`
// became true; kInvalidArgument: there is no terminal to ask on.
Status ConfirmOverwrite(const ReplayPreview& preview, const std::atomic<bool>& stop);

}  // namespace blktape
