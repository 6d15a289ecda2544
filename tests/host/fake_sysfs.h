#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/system_view.h"

namespace blktape {

// A machine in a folder that looks like its root: sysfs' devices and its links, proc's mount table.
// The folder is removed with the object.
class FakeSysfs : public SystemView {
 public:
  explicit FakeSysfs(const std::string& folder) : root_(folder) {
    std::filesystem::remove_all(root_);
    for (const char* one : {"/sys/dev/block", "/sys/class/block", "/sys/block", "/proc/self"}) {
      std::filesystem::create_directories(root_ + one);
    }
  }
  ~FakeSysfs() override { std::filesystem::remove_all(root_); }
  FakeSysfs(const FakeSysfs&) = delete;
  FakeSysfs& operator=(const FakeSysfs&) = delete;

  const std::string& root() const { return root_; }

  Result<std::string> Read(const std::string& path) const override {
    return MachineView().Read(root_ + path);
  }
  std::vector<std::string> List(const std::string& folder) const override {
    return MachineView().List(root_ + folder);
  }
  Result<std::string> Resolve(const std::string& path) const override {
    const Result<std::string> real = MachineView().Resolve(root_ + path);
    if (!real.ok()) return Status(real.status().code(), path + ": no such file");
    const std::string inside =
        std::filesystem::path(*real).lexically_relative(std::filesystem::canonical(root_)).string();
    return inside == "." ? "/" : "/" + inside;
  }
  std::optional<FileIdentity> Identify(const std::string& path) const override {
    return MachineView().Identify(root_ + path);
  }
  std::optional<FileIdentity> LoopBacking(const std::string& /*name*/) const override {
    return std::nullopt;
  }
  Result<std::string> DeviceMapperTable(const std::string& name) const override {
    return Status(StatusCode::kNotFound, name + ": no device-mapper device");
  }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }

  // A disk at /sys/devices/`at`, last part its name, numbered "8:0".
  void AddDisk(const std::string& at, const std::string& number) {
    AddDevice(at, number);
    Link("/sys/block/" + Name(at), at);
    Write("/sys/devices/" + at + "/size", "2048");
  }
  void AddPartition(const std::string& disk, const std::string& name, const std::string& number) {
    AddDevice(disk + "/" + name, number);
    Write("/sys/devices/" + disk + "/" + name + "/partition", "1");
  }
  // `upper` is made of `lower` (both relative to /sys/devices).
  void AddSlave(const std::string& upper, const std::string& lower) {
    Link("/sys/devices/" + upper + "/slaves/" + Name(lower), lower);
  }
  void Link(const std::string& path, const std::string& device) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::filesystem::create_directory_symlink(
        std::filesystem::absolute(root_ + "/sys/devices/" + device), root_ + path);
  }

 private:
  static std::string Name(const std::string& at) {
    return std::filesystem::path(at).filename().string();
  }
  void AddDevice(const std::string& at, const std::string& number) {
    Write("/sys/devices/" + at + "/dev", number);
    Link("/sys/dev/block/" + number, at);
    Link("/sys/class/block/" + Name(at), at);
  }

  std::string root_;
};

}  // namespace blktape
