#include "host/mount_table.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace blktape {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Line {
  std::string_view id;
  std::string_view parent;  // the mount it is mounted on
  MountEntry entry;
};

std::optional<Line> ParseLine(std::string_view text) {
  // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
  const std::vector<std::string_view> words = Split(text, ' ');
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (dash - words.begin() < 6 || words.end() - dash < 3) return std::nullopt;
  Line line;
  line.id = words[0];
  line.parent = words[1];
  line.entry.device_number = words[2];
  line.entry.mount_point = UnescapeOctal(words[4]);
  line.entry.type = dash[1];
  line.entry.source = UnescapeOctal(dash[2]);
  if (words.end() - dash > 3) line.entry.options = dash[3];
  return line;
}

bool Holds(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return true;
  return path.substr(0, mount_point.size()) == mount_point &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

// The KEY=VALUE among a superblock's options.
std::vector<std::pair<std::string_view, std::string>> Options(std::string_view options) {
  std::vector<std::pair<std::string_view, std::string>> pairs;
  for (const std::string_view option : Split(options, ',')) {
    const size_t equals = option.find('=');
    if (equals == std::string_view::npos) continue;
    pairs.emplace_back(option.substr(0, equals), UnescapeOctal(option.substr(equals + 1)));
  }
  return pairs;
}

}  // namespace

std::string UnescapeOctal(std::string_view text) {
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

std::vector<MountEntry> ParseMounts(std::string_view mountinfo) {
  std::vector<MountEntry> entries;
  for (const std::string_view text : Split(mountinfo, '\n')) {
    std::optional<Line> line = ParseLine(text);
    if (line) entries.push_back(std::move(line->entry));
  }
  return entries;
}

std::optional<MountEntry> FindMount(std::string_view mountinfo, std::string_view path) {
  std::vector<Line> lines;
  for (const std::string_view text : Split(mountinfo, '\n')) {
    std::optional<Line> line = ParseLine(text);
    if (line && Holds(line->entry.mount_point, path)) lines.push_back(*std::move(line));
  }
  // The mount under all others has itself for a parent, or one that this process cannot see.
  const auto is_root = [&](const Line& line) {
    return line.parent == line.id ||
           std::none_of(lines.begin(), lines.end(),
                        [&](const Line& other) { return other.id == line.parent; });
  };
  const Line* at = nullptr;
  for (size_t step = 0; step < lines.size(); ++step) {
    // What is mounted on it nearest to its root; of several at one place the last.
    const Line* next = nullptr;
    for (const Line& line : lines) {
      const bool is_on_it =
          at == nullptr ? is_root(line) : line.parent == at->id && line.id != at->id;
      if (!is_on_it) continue;
      if (next == nullptr || line.entry.mount_point.size() <= next->entry.mount_point.size()) {
        next = &line;
      }
    }
    if (next == nullptr) break;
    at = next;
  }
  if (at == nullptr) return std::nullopt;
  return at->entry;
}

std::vector<std::string> OverlayLayers(std::string_view options) {
  std::vector<std::string> layers;
  for (const auto& [key, value] : Options(options)) {
    if (key != "upperdir" && key != "lowerdir" && key != "lowerdir+" && key != "datadir+") continue;
    // Several by colons. The file system has a backslash before a colon or comma of a name.
    std::string layer;
    for (size_t i = 0; i < value.size(); ++i) {
      if (value[i] == ':' && key == "lowerdir") {
        if (!layer.empty()) layers.push_back(std::exchange(layer, ""));
        continue;
      }
      if (value[i] == '\\' && i + 1 < value.size()) ++i;
      layer += value[i];
    }
    if (!layer.empty()) layers.push_back(layer);
  }
  return layers;
}

std::vector<std::string> XfsDevices(std::string_view options) {
  std::vector<std::string> devices;
  for (const auto& [key, value] : Options(options)) {
    if (key == "logdev" || key == "rtdev") devices.push_back(value);
  }
  return devices;
}

std::vector<std::string> BtrfsMembers(const SystemView& system, const std::string& folder) {
  const std::string all = "/sys/fs/btrfs/";
  for (const std::string& one : system.List(all)) {
    std::vector<std::string> members;
    const std::string devices = all + one + "/devices/";
    for (const std::string& device : system.List(devices)) {
      const Result<std::string> member = system.Resolve(devices + device);
      if (member.ok()) members.push_back(*member);
    }
    std::sort(members.begin(), members.end());
    if (std::find(members.begin(), members.end(), folder) != members.end()) return members;
  }
  return {};
}

}  // namespace blktape
