#include "cli/mark_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/utf8.h"

namespace blktape {
namespace {

constexpr char kPrefix[] = "mark-";
constexpr char kSuffix[] = ".sock";
constexpr size_t kLongestName = 200;
constexpr int kMostPerTurn = 64;

// One datagram, of and for this machine.
struct Message {
  uint32_t magic;
  uint32_t kind;  // proto::MarkKind
  int64_t at_ns;  // CLOCK_MONOTONIC
  char name[kLongestName];
  uint32_t name_bytes;
};
constexpr uint32_t kMagic = 0x6b72616d;  // "mark"

std::optional<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return std::nullopt;
  path.copy(address.sun_path, path.size());
  return address;
}

}  // namespace

MarkSocket::MarkSocket(const std::string& folder) {
  mkdir(folder.c_str(), 0755);
  const std::string path = folder + "/" + kPrefix + std::to_string(getpid()) + kSuffix;
  const std::optional<sockaddr_un> address = AddressOf(path);
  if (!address) return;
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return;
  unlink(path.c_str());  // of a process of this id that died
  const mode_t mask = umask(0177);
  const bool bound =
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0;
  umask(mask);
  if (!bound) return;
  path_ = path;
  fd_ = std::move(fd);
}

MarkSocket::~MarkSocket() {
  if (!path_.empty()) unlink(path_.c_str());
}

std::vector<proto::Mark> MarkSocket::Receive(int64_t now_ns) {
  std::vector<proto::Mark> marks;
  for (int i = 0; fd_ && i < kMostPerTurn; ++i) {
    Message message;
    if (recv(fd_.get(), &message, sizeof(message), MSG_DONTWAIT) != sizeof(message)) break;
    const bool known = message.kind == proto::PHASE_BEGIN || message.kind == proto::PHASE_END;
    if (message.magic != kMagic || !known || message.name_bytes > kLongestName) continue;
    proto::Mark& mark = marks.emplace_back();
    mark.set_kind(static_cast<proto::MarkKind>(message.kind));
    mark.set_at_ns(std::min(message.at_ns, now_ns));
    mark.set_detail(ToUtf8(std::string_view(message.name, message.name_bytes)));
  }
  return marks;
}

Result<int> SendMark(proto::MarkKind kind, std::string_view name, const std::string& folder) {
  if (name.empty() || name.size() > kLongestName) {
    return Status(StatusCode::kInvalidArgument, "a phase has a name of 1 to 200 bytes");
  }
  Message message{};
  message.magic = kMagic;
  message.kind = kind;
  message.at_ns = Clock::Monotonic()->NowNs();
  name.copy(message.name, name.size());
  message.name_bytes = static_cast<uint32_t>(name.size());

  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, "socket");
  int told = 0;
  Status refused;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
    const std::optional<sockaddr_un> address = AddressOf(entry.path().string());
    if (!address) continue;
    if (sendto(fd.get(), &message, sizeof(message), MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&*address),
               sizeof(*address)) == static_cast<ssize_t>(sizeof(message))) {
      ++told;
    } else if (errno != ECONNREFUSED && errno != ENOENT) {  // those are of a recorder that died
      refused = ErrnoStatus(errno, entry.path().string());
    }
  }
  if (told > 0) return told;
  if (!refused.ok()) return refused;
  return Status(StatusCode::kNotFound, "no recording runs that could be told");
}

}  // namespace blktape
