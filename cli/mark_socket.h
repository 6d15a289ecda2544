#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/trace.pb.h"

namespace blktape {

// The ear of a running recording: a local datagram socket under /run/blktape, mode 0600, by which
// `blktape mark` says that a phase begins or ends. Where the folder cannot be made there is none,
// and everything else works. One thread.
class MarkSocket {
 public:
  explicit MarkSocket(const std::string& folder = "/run/blktape");
  ~MarkSocket();
  MarkSocket(const MarkSocket&) = delete;
  MarkSocket& operator=(const MarkSocket&) = delete;

  // What has been said since the last call, at most so much as fits a turn; never waits. A mark
  // bears the moment at which it was sent, or `now_ns` where that lies after it.
  std::vector<proto::Mark> Receive(int64_t now_ns);

 private:
  std::string path_;
  UniqueFd fd_;
};

// Tells every running recording. Returns how many there are. kNotFound if none runs,
// kPermissionDenied if there is one that may not be told, kInvalidArgument for a name that is empty
// or longer than 200 bytes.
Result<int> SendMark(proto::MarkKind kind, std::string_view name,
                     const std::string& folder = "/run/blktape");

}  // namespace blktape
