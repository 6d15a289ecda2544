#include "host/sysfs_device.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/units.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;

template <typename T>
bool Parse(std::string_view text, T* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// The attributes of one machine's sysfs.
class Attributes {
 public:
  explicit Attributes(const SystemView& system) : system_(system) {}

  bool Has(const std::string& path) const { return system_.Read(path).ok(); }
  std::optional<std::string> Text(const std::string& path) const {
    Result<std::string> text = system_.Read(path);
    if (!text.ok() || text->empty()) return std::nullopt;
    return *std::move(text);
  }
  std::optional<uint64_t> Number(const std::string& path) const {
    const std::optional<std::string> text = Text(path);
    uint64_t number = 0;
    if (!text || !Parse(*text, &number)) return std::nullopt;
    return number;
  }

 private:
  const SystemView& system_;
};

// The bus, told from where the kernel hangs the device in its tree.
std::string TransportOf(const std::string& folder, const std::string& name) {
  constexpr std::pair<std::string_view, const char*> kByPath[] = {
      {"/nvme", "nvme"},     {"/usb", "usb"}, {"/ata", "sata"},
      {"/virtio", "virtio"}, {"/mmc", "mmc"}, {"/vbd-", "xen"},
  };
  if (folder.find("/devices/virtual/block/") != std::string::npos) {
    return name.substr(0, name.find_first_of("-0123456789"));
  }
  for (const auto& [part, transport] : kByPath) {
    if (folder.find(part) != std::string::npos) return transport;
  }
  return folder.find("/host") != std::string::npos ? "scsi" : "";
}

// "none [mq-deadline] kyber": the one in brackets; a bare word where there is no choice.
std::string ChosenScheduler(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

// The nearest folder above the disk, within its bus, that has the attribute `name`.
std::optional<fs::path> AboveWith(const Attributes& sysfs, const std::string& folder,
                                  const std::string& name) {
  for (fs::path at = fs::path(folder).parent_path(); at.has_relative_path();
       at = at.parent_path()) {
    if (sysfs.Has(at / name)) return at;
  }
  return std::nullopt;
}

// The link between drive and machine: PCI Express, SATA, USB. Of a drive behind a controller that
// of the drive, where the kernel tells it.
void DescribeLink(const Attributes& sysfs, const std::string& folder, proto::Device* device) {
  if (device->transport() == "nvme") {
    const auto slot = AboveWith(sysfs, folder, "current_link_speed");
    if (!slot) return;
    if (const auto v = sysfs.Text(*slot / "current_link_speed")) device->set_link_speed(*v);
    if (const auto v = sysfs.Number(*slot / "current_link_width")) device->set_link_width(*v);
    if (const auto v = sysfs.Text(*slot / "max_link_speed")) device->set_link_speed_max(*v);
    if (const auto v = sysfs.Number(*slot / "max_link_width")) device->set_link_width_max(*v);
  } else if (device->transport() == "sata") {
    // .../ata3/host2/target2:0:0/2:0:0:0/block/sda and .../ata3/link3/ata_link/link3/sata_spd.
    for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
      const std::string name = at.filename().string();
      if (!name.starts_with("ata")) continue;
      const std::string link = "link" + name.substr(3);
      const fs::path facts = at / link / "ata_link" / link;
      if (const auto v = sysfs.Text(facts / "sata_spd")) device->set_link_speed(*v);
      return;
    }
  } else if (device->transport() == "usb") {
    const auto port = AboveWith(sysfs, folder, "speed");
    if (!port) return;
    if (const auto v = sysfs.Text(*port / "speed")) device->set_link_speed(*v + " Mbps");
  }
}

void DescribeQueue(const Attributes& sysfs, const std::string& queue, proto::Device* device) {
  if (const auto v = sysfs.Number(queue + "/logical_block_size"))
    device->set_logical_block_bytes(*v);
  if (const auto v = sysfs.Number(queue + "/physical_block_size"))
    device->set_physical_block_bytes(*v);
  if (const auto v = sysfs.Number(queue + "/rotational")) device->set_rotational(*v != 0);
  if (const auto v = sysfs.Text(queue + "/scheduler")) device->set_scheduler(ChosenScheduler(*v));
  if (const auto v = sysfs.Text(queue + "/write_cache")) device->set_write_cache(*v);
  if (const auto v = sysfs.Number(queue + "/fua")) device->set_fua(*v != 0);
  if (const auto v = sysfs.Number(queue + "/discard_granularity")) {
    device->set_discard_granularity_bytes(*v);
  }
  if (const auto v = sysfs.Number(queue + "/discard_max_bytes")) device->set_discard_max_bytes(*v);
  if (const auto v = sysfs.Number(queue + "/write_zeroes_max_bytes")) {
    device->set_write_zeroes_max_bytes(*v);
  }
  if (const auto v = sysfs.Number(queue + "/nr_requests")) device->set_nr_requests(*v);
  if (const auto v = sysfs.Number(queue + "/read_ahead_kb")) device->set_read_ahead_kb(*v);
  if (const auto v = sysfs.Number(queue + "/nomerges")) device->set_nomerges(*v);
  if (const auto v = sysfs.Number(queue + "/max_sectors_kb")) device->set_max_sectors_kb(*v);
  if (const auto v = sysfs.Text(queue + "/zoned")) device->set_zoned(*v);
}

}  // namespace

Result<proto::Device> DescribeDisk(const std::string& folder, const SystemView& system) {
  const Attributes sysfs(system);
  const std::optional<std::string> number = sysfs.Text(folder + "/dev");
  const size_t colon = number ? number->find(':') : std::string::npos;
  uint32_t major = 0;
  uint32_t minor = 0;
  if (colon == std::string::npos || !Parse(std::string_view(*number).substr(0, colon), &major) ||
      !Parse(std::string_view(*number).substr(colon + 1), &minor)) {
    return Status(StatusCode::kNotFound, folder + "/dev: no device number");
  }
  proto::Device device;
  device.set_name(fs::path(folder).filename().string());
  device.set_major(major);
  device.set_minor(minor);
  if (const auto v = sysfs.Number(folder + "/size")) device.set_size_bytes(*v * kSectorBytes);
  // SCSI and NVMe call it model, MMC name.
  for (const char* attribute : {"/device/model", "/device/name"}) {
    if (const auto v = sysfs.Text(folder + attribute); v && device.model().empty())
      device.set_model(*v);
  }
  // NVMe, SCSI, MMC.
  for (const char* attribute : {"/device/firmware_rev", "/device/rev", "/device/fwrev"}) {
    if (const auto v = sysfs.Text(folder + attribute); v && device.firmware().empty()) {
      device.set_firmware(*v);
    }
  }
  device.set_transport(TransportOf(folder, device.name()));
  DescribeLink(sysfs, folder, &device);
  DescribeQueue(sysfs, folder + "/queue", &device);
  if (const size_t queues = system.List(folder + "/mq").size(); queues > 0) {
    device.set_hardware_queues(static_cast<uint32_t>(queues));
  }
  return device;
}

}  // namespace blktape
