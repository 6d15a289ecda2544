#include "replay/target/signature.h"

#include <blkid/blkid.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/file.h"

namespace blktape {
namespace {

std::string Value(blkid_probe probe, const char* name) {
  const char* data = nullptr;
  if (blkid_probe_lookup_value(probe, name, &data, nullptr) != 0 || data == nullptr) return "";
  return data;
}

std::string WithArticle(const std::string& noun) {
  constexpr std::string_view kVowels = "aeiouAEIOU";
  const bool spelt = noun.starts_with("LVM") || noun.starts_with("xfs");
  return (spelt || kVowels.find(noun[0]) != std::string_view::npos ? "an " : "a ") + noun;
}

// A description of what the probe found last.
std::string Describe(blkid_probe probe) {
  if (const std::string table = Value(probe, "PTTYPE"); !table.empty()) {
    return WithArticle(table + " partition table");
  }
  const std::string type = Value(probe, "TYPE");
  if (type.empty()) return "";
  const std::string usage = Value(probe, "USAGE");
  std::string text = type;
  if (usage == "filesystem") text += " file system";
  if (const std::string label = Value(probe, "LABEL"); !label.empty()) {
    text += " (label " + label + ")";
  }
  return WithArticle(text);
}

}  // namespace

Result<std::optional<std::string>> FindSignature(const std::string& path, const std::string& name) {
  const std::string& as = name.empty() ? path : name;
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, as);
  const std::unique_ptr<blkid_struct_probe, decltype(&blkid_free_probe)> probe(blkid_new_probe(),
                                                                               &blkid_free_probe);
  if (probe == nullptr) return ErrnoStatus(ENOMEM, as + ": libblkid");
  errno = 0;
  if (blkid_probe_set_device(probe.get(), fd.get(), 0, 0) != 0) {
    return ErrnoStatus(errno != 0 ? errno : EIO, as + ": libblkid");
  }
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE |
                                                     BLKID_SUBLKS_LABEL | BLKID_SUBLKS_MAGIC);
  blkid_probe_enable_partitions(probe.get(), 1);
  blkid_probe_set_partitions_flags(probe.get(), BLKID_PARTS_MAGIC);
  std::string found;
  while (true) {
    errno = 0;
    const int outcome = blkid_do_probe(probe.get());
    if (outcome < 0) return ErrnoStatus(errno != 0 ? errno : EIO, as + ": libblkid");
    if (outcome != 0) break;
    const std::string one = Describe(probe.get());
    if (one.empty()) continue;
    found += (found.empty() ? "" : " and ") + one;
  }
  if (found.empty()) return std::optional<std::string>();
  return std::optional<std::string>(found);
}

}  // namespace blktape
