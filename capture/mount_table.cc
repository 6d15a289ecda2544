#include "capture/mount_table.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace blktape {
namespace {

namespace fs = std::filesystem;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The kernel writes blank, tab, newline and backslash as three octal digits: "\040".
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::optional<MountEntry> ParseLine(std::string_view line) {
  // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
  const std::vector<std::string_view> words = Split(line, ' ');
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (dash - words.begin() < 6 || words.end() - dash < 4) return std::nullopt;
  MountEntry entry;
  entry.device_number = words[2];
  entry.mount_point = Unescape(words[4]);
  entry.type = dash[1];
  entry.source = Unescape(dash[2]);
  entry.options = Unescape(dash[3]);
  return entry;
}

bool Holds(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return true;
  return path.substr(0, mount_point.size()) == mount_point &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

}  // namespace

std::optional<MountEntry> FindMount(std::string_view mountinfo, std::string_view path) {
  std::optional<MountEntry> best;
  for (const std::string_view line : Split(mountinfo, '\n')) {
    std::optional<MountEntry> entry = ParseLine(line);
    if (!entry || !Holds(entry->mount_point, path)) continue;
    if (!best || entry->mount_point.size() >= best->mount_point.size()) best = std::move(entry);
  }
  return best;
}

std::vector<std::string> OverlayLayers(std::string_view options) {
  std::vector<std::string> layers;
  for (const std::string_view option : Split(options, ',')) {
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = option.substr(0, equals);
    if (key != "upperdir" && key != "lowerdir") continue;
    for (const std::string_view folder : Split(option.substr(equals + 1), ':')) {
      if (!folder.empty() && folder[0] == '/') layers.emplace_back(folder);
    }
  }
  return layers;
}

std::vector<std::string> BtrfsMembers(const std::string& sys_fs_btrfs, const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(sys_fs_btrfs, error), end; !error && it != end;
       it.increment(error)) {
    std::vector<std::string> members;
    std::error_code none;
    for (fs::directory_iterator device(it->path() / "devices", none), last; !none && device != last;
         device.increment(none)) {
      std::error_code unresolved;
      const fs::path member = fs::canonical(device->path(), unresolved);
      if (!unresolved) members.push_back(member.string());
    }
    std::sort(members.begin(), members.end());
    if (std::find(members.begin(), members.end(), folder) != members.end()) return members;
  }
  return {};
}

}  // namespace blktape
