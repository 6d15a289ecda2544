#include "replay/target/target.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "host/system_view.h"
#include "tests/replay/target/test_devices.h"
#include "tests/support/loop_device.h"
#include "tests/support/requires.h"

namespace blktape {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// On files: needs no rights.
class FileTargetTest : public testing::Test {
 protected:
  std::string Sparse(uint64_t size_bytes = 8 * kMiB) {
    const std::string path = folder_.path() + "/target";
    MakeSparseFile(path, size_bytes);
    return path;
  }
  std::string WithData() {
    const std::string path = Sparse();
    std::fstream(path, std::ios::in | std::ios::out) << "precious";
    return path;
  }
  void ExpectRefused(const std::string& path, const TargetOptions& options,
                     const std::string& reason) {
    const std::string before = Checksum(path);
    const auto target = Target::Open(path, options);
    ASSERT_FALSE(target.ok());
    EXPECT_EQ(target.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(target.status().message(), HasSubstr(reason));
    EXPECT_THAT(target.status().message(), HasSubstr("\n  try:  "));
    EXPECT_EQ(Checksum(path), before);
  }
  ScratchFolder folder_{/*on_disk=*/true};
};

TEST_F(FileTargetTest, ASparseFileIsAScratchFile) {
  const auto target = Target::Open(Sparse(), {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ((*target)->size_bytes(), 8 * kMiB);
  EXPECT_FALSE((*target)->is_block_device());
  EXPECT_TRUE((*target)->description().is_file());
  EXPECT_EQ((*target)->StatSectors(), std::nullopt);
}

TEST_F(FileTargetTest, WhatOfAFileWasNeverWrittenIsKnown) {
  const std::string path = Sparse();
  EXPECT_EQ((*Target::Open(path, {}))->description().unwritten_bytes(), 8 * kMiB);
  std::fstream file(path, std::ios::in | std::ios::out);
  file.seekp(3 * kMiB);
  file << std::string(kMiB, 'x');
  file.close();
  EXPECT_EQ((*Target::Open(path, {.overwrite = true}))->description().unwritten_bytes(), 7 * kMiB);
}

TEST_F(FileTargetTest, FindingOutWhatAFileCanDoChangesNothingOfIt) {
  const std::string path = Sparse(kMiB + 512);
  ASSERT_TRUE(Target::Open(path, {}).ok());
  EXPECT_EQ(std::filesystem::file_size(path), kMiB + 512);
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
}

TEST_F(FileTargetTest, AFileWithDataNeedsOverwrite) {
  const std::string path = WithData();
  ExpectRefused(path, {}, "holds data; replaying writes would destroy it");
  EXPECT_TRUE(Target::Open(path, {.overwrite = true}).ok());
  EXPECT_TRUE(Target::Open(path, {.write = false}).ok());
}

TEST_F(FileTargetTest, AFileOfZeroesIsAScratchFile) {
  const std::string path = Sparse();
  std::ofstream(path) << std::string(100'000, '\0');
  EXPECT_TRUE(Target::Open(path, {}).ok());
}

TEST_F(FileTargetTest, AScratchFileOfOursMayBeUsedAgainThoughItHoldsData) {
  const std::string path = folder_.path() + "/scratch";
  ASSERT_TRUE(CreateScratchFile(path, kMiB).ok());
  EXPECT_EQ(CreateScratchFile(path, kMiB).code(), StatusCode::kAlreadyExists);
  std::fstream(path, std::ios::in | std::ios::out) << "left by the last replay";
  EXPECT_TRUE(Target::Open(path, {}).ok());
}

TEST_F(FileTargetTest, AFileThatHoldsAFileSystemIsNamedSo) {
  const std::string path = Sparse();
  if (Shell("mkfs.ext4 -q -L attic " + path) != 0) GTEST_SKIP() << "no mkfs.ext4";
  ExpectRefused(path, {}, "holds an ext4 file system (label attic)");
}

TEST_F(FileTargetTest, TheTraceIsNoTargetEvenWithOverwrite) {
  const std::string path = WithData();
  ExpectRefused(path, {.overwrite = true, .keep_paths = {path}}, "itself");
}

TEST_F(FileTargetTest, TwoReplaysCannotShareAFile) {
  const std::string path = Sparse();
  const auto first = Target::Open(path, {});
  ASSERT_TRUE(first.ok());
  ExpectRefused(path, {}, "another program has locked it");
}

TEST_F(FileTargetTest, AFileThatTookTheNameOfTheOneThatWasMeantIsRefused) {
  const std::string path = Sparse();
  std::string meant;
  {
    const auto target = Target::Open(path, {});
    ASSERT_TRUE(target.ok());
    meant = (*target)->identity();
  }
  EXPECT_TRUE(Target::Open(path, {.identity = meant}).ok());
  MakeSparseFile(folder_.path() + "/other", 8 * kMiB);
  std::filesystem::rename(folder_.path() + "/other", path);
  ExpectRefused(path, {.identity = meant}, "is not what it was when this began (" + meant + ")");
}

// The machine, on which somebody else works at a given moment of the checks.
class BusyMachine : public SystemView {
 public:
  explicit BusyMachine(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  Result<std::string> Read(const std::string& path) const override {
    if (path == "/proc/self/mountinfo") meanwhile_();
    return MachineView().Read(path);
  }
  std::vector<std::string> List(const std::string& folder) const override {
    return MachineView().List(folder);
  }
  Result<std::string> Resolve(const std::string& path) const override {
    return MachineView().Resolve(path);
  }
  std::optional<FileIdentity> Identify(const std::string& path) const override {
    return MachineView().Identify(path);
  }
  std::optional<FileIdentity> LoopBacking(const std::string& name) const override {
    return MachineView().LoopBacking(name);
  }
  Result<std::string> DeviceMapperTable(const std::string& name) const override {
    return MachineView().DeviceMapperTable(name);
  }

 private:
  const std::function<void()> meanwhile_;
};

// A symbolic link that leads to another file once the checks have begun.
class SwappedLinkTest : public FileTargetTest {
 protected:
  void SetUp() override {
    MakeSparseFile(scratch_, 8 * kMiB);
    MakeSparseFile(precious_, 8 * kMiB);
    std::fstream(precious_, std::ios::in | std::ios::out) << "precious";
  }
  void LeadTo(const std::string& path) const {
    std::filesystem::remove(link_);
    std::filesystem::create_symlink(path, link_);
  }
  Result<std::unique_ptr<Target>> OpenWhileItIsSwapped(const std::string& from,
                                                       const std::string& to) const {
    LeadTo(from);
    const BusyMachine machine([this, to] { LeadTo(to); });
    return Target::Open(link_, {.system = &machine});
  }
  const std::string scratch_ = folder_.path() + "/scratch";
  const std::string precious_ = folder_.path() + "/precious";
  const std::string link_ = folder_.path() + "/link";
};

TEST_F(SwappedLinkTest, WhatWasLookedAtFirstIsOpened) {
  const auto target = OpenWhileItIsSwapped(scratch_, precious_);
  ASSERT_TRUE(target.ok()) << target.status().message();
  struct stat opened{};
  struct stat meant{};
  ASSERT_EQ(fstat((*target)->fd(), &opened), 0);
  ASSERT_EQ(stat(scratch_.c_str(), &meant), 0);
  EXPECT_EQ(opened.st_ino, meant.st_ino);
}

TEST_F(SwappedLinkTest, AndItsContentIsWhatIsJudged) {
  const auto target = OpenWhileItIsSwapped(precious_, scratch_);
  ASSERT_FALSE(target.ok());
  EXPECT_THAT(target.status().message(), HasSubstr("holds data"));
}

// /proc does not tell of this process, which stands for one that we may not look into, and for the
// kernel.
TEST_F(FileTargetTest, AFileThatAnybodyHasOpenForWritingIsRefused) {
  const std::string path = Sparse();
  UniqueFd writer(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct statfs system{};
  ASSERT_EQ(fstatfs(writer.get(), &system), 0);
  if (system.f_type == OVERLAYFS_SUPER_MAGIC) GTEST_SKIP() << "leases here mean nothing";
  ExpectRefused(path, {}, "it is open for writing");
  writer.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(Target::Open(path, {}).ok()) << "a reader is in nobody's way";
}

// QEMU locks bytes of its images so, for reading where it shares them.
TEST_F(FileTargetTest, AFileOfWhichAByteIsLockedIsRefusedAndSoIsWhoComesLater) {
  const std::string path = Sparse();
  UniqueFd other(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct flock byte{};
  byte.l_type = F_RDLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = 100;
  byte.l_len = 1;
  ASSERT_EQ(fcntl(other.get(), F_OFD_SETLK, &byte), 0);
  ExpectRefused(path, {}, "another program has locked it, or a part of it");
  other.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto target = Target::Open(path, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_NE(fcntl(other.get(), F_OFD_SETLK, &byte), 0);
}

TEST_F(FileTargetTest, AnEmptyFileIsNoTarget) { ExpectRefused(Sparse(0), {}, "has no size"); }

TEST_F(FileTargetTest, WhatIsNotThereIsSaidSo) {
  const auto target = Target::Open(folder_.path() + "/absent", {});
  EXPECT_EQ(target.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(target.status().message(), HasSubstr("there is no such device or file"));
}

TEST_F(FileTargetTest, AFolderOrACharacterDeviceIsNoTarget) {
  EXPECT_EQ(Target::Open(folder_.path(), {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Target::Open("/dev/null", {}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(FileTargetTest, DirectIsWhatWasProven) {
  const auto direct = Target::Open(Sparse(), {});
  ASSERT_TRUE(direct.ok());
  EXPECT_THAT((*direct)->access(), HasSubstr((*direct)->direct() ? "O_DIRECT" : "page cache"));
  ScratchFolder memory;
  if (memory.path().rfind("/dev/shm", 0) != 0) GTEST_SKIP() << "no tmpfs";
  // Since Linux 6.6 tmpfs takes O_DIRECT and does not mean it.
  const std::string path = memory.path() + "/target";
  MakeSparseFile(path, kMiB);
  const auto buffered = Target::Open(path, {});
  ASSERT_TRUE(buffered.ok());
  EXPECT_FALSE((*buffered)->direct());
  EXPECT_THAT((*buffered)->access(), HasSubstr("page cache"));
}

// On loop devices of our own: needs root and the loop driver.
class LoopTargetTest : public FileTargetTest {
 protected:
  void SetUp() override {
    BLKTAPE_REQUIRE_ROOT();
    backing_ = folder_.path() + "/backing";
    MakeSparseFile(backing_, 64 * kMiB);
  }
  void MakeLoop(const LoopDeviceOptions& options = {}) {
    auto loop = LoopDevice::Over(backing_, options);
    BLKTAPE_REQUIRE(loop.ok(), "loop devices");
    loop_ = *std::move(loop);
  }
  std::string MountPoint() {
    const std::string point = folder_.path() + "/mnt";
    std::filesystem::create_directory(point);
    return point;
  }
  // A sandbox that was made while the device was mounted (Bazel makes them all the time) keeps a
  // copy of the mount until it ends.
  void WaitUntilFree() {
    for (int i = 0; i < 600; ++i) {
      if (UniqueFd(open(loop_->path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC))) return;
      usleep(100'000);
    }
  }
  // A classic partition table of two: 1 to 31 MiB and 32 to 64 MiB.
  void Partition() {
    char sector[512] = {};
    const auto entry = [&](int index, uint32_t first, uint32_t sectors) {
      char* const at = sector + 446 + 16 * index;
      at[4] = static_cast<char>(0x83);  // Linux
      std::memcpy(at + 8, &first, 4);
      std::memcpy(at + 12, &sectors, 4);
    };
    entry(0, 2048, 61440);
    entry(1, 65536, 65536);
    sector[510] = static_cast<char>(0x55);
    sector[511] = static_cast<char>(0xaa);
    std::fstream(backing_, std::ios::in | std::ios::out).write(sector, sizeof sector);
  }
  std::string backing_;
  std::unique_ptr<LoopDevice> loop_;
};

TEST_F(LoopTargetTest, AnEmptyDeviceNeedsOverwriteAndIsDescribed) {
  MakeLoop();
  ExpectRefused(loop_->path(), {}, "nothing that libblkid recognises");
  const auto target = Target::Open(loop_->path(), {.overwrite = true});
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_EQ((*target)->size_bytes(), 64 * kMiB);
  EXPECT_EQ((*target)->logical_block_bytes(), 512u);
  EXPECT_TRUE((*target)->is_block_device());
  EXPECT_TRUE((*target)->direct()) << (*target)->access();
  EXPECT_EQ((*target)->description().transport(), "loop");
  EXPECT_TRUE((*target)->abilities().discard);
  EXPECT_FALSE((*target)->abilities().secure_erase);
  EXPECT_TRUE((*target)->StatSectors().has_value());
}

TEST_F(LoopTargetTest, ItsStatisticsMoveByWhatIsRead) {
  MakeLoop();
  const auto target = Target::Open(loop_->path(), {.write = false});
  ASSERT_TRUE(target.ok());
  const uint64_t before = (*target)->StatSectors().value();
  alignas(4096) static char buffer[65536];
  ASSERT_EQ(pread((*target)->fd(), buffer, sizeof buffer, 0), 65536);
  EXPECT_EQ((*target)->StatSectors().value() - before, 128u);
}

// Rule 5 asks whether anybody else used the disk, and a neighbour takes its time, too.
TEST_F(LoopTargetTest, ThoseOfAPartitionMoveByWhatIsReadOfItsNeighbour) {
  Partition();
  MakeLoop({.partitions = true});
  const std::string first = loop_->AddPartition(1, kMiB, 30 * kMiB);
  const std::string second = loop_->AddPartition(2, 32 * kMiB, 32 * kMiB);
  const auto target = Target::Open(first, {.write = false});
  ASSERT_TRUE(target.ok()) << target.status().message();
  const UniqueFd neighbour(open(second.c_str(), O_RDONLY | O_DIRECT));
  ASSERT_TRUE(neighbour);
  const uint64_t before = (*target)->StatSectors().value();
  alignas(4096) static char buffer[65536];
  ASSERT_EQ(pread(neighbour.get(), buffer, sizeof buffer, 0), 65536);
  EXPECT_EQ((*target)->StatSectors().value() - before, 128u);
}

// As udev and programs that partition disks do it (systemd.io/BLOCK_DEVICE_LOCKING).
TEST_F(LoopTargetTest, APartitionOfADiskThatAProgramHasLockedIsRefused) {
  Partition();
  MakeLoop({.partitions = true});
  const std::string first = loop_->AddPartition(1, kMiB, 30 * kMiB);
  {
    const UniqueFd other(open(loop_->path().c_str(), O_RDONLY));
    ASSERT_EQ(flock(other.get(), LOCK_EX | LOCK_NB), 0);
    ExpectRefused(first, {.overwrite = true}, "another program has locked it");
  }
  const auto target = Target::Open(first, {.overwrite = true});
  ASSERT_TRUE(target.ok()) << target.status().message();
  const UniqueFd other(open(loop_->path().c_str(), O_RDONLY));
  EXPECT_NE(flock(other.get(), LOCK_EX | LOCK_NB), 0) << "ours keeps others from the disk";
}

TEST_F(LoopTargetTest, BlocksOf4096BytesAreTheTargetsBlocks) {
  MakeLoop({.logical_block_bytes = 4096});
  const auto target = Target::Open(loop_->path(), {.overwrite = true});
  ASSERT_TRUE(target.ok());
  EXPECT_EQ((*target)->logical_block_bytes(), 4096u);
}

TEST_F(LoopTargetTest, AMountedDeviceIsRefusedWhateverIsOverwritten) {
  ASSERT_EQ(Shell("mkfs.ext4 -q " + backing_), 0);
  MakeLoop();
  const std::string point = MountPoint();
  ASSERT_EQ(mount(loop_->path().c_str(), point.c_str(), "ext4", MS_RDONLY, nullptr), 0);
  ExpectRefused(loop_->path(), {.overwrite = true}, "is mounted on " + point);
  EXPECT_TRUE(Target::Open(loop_->path(), {.write = false}).ok());
  ASSERT_EQ(umount(point.c_str()), 0);
  WaitUntilFree();
  ExpectRefused(loop_->path(), {}, "an ext4 file system");
  EXPECT_TRUE(Target::Open(loop_->path(), {.overwrite = true}).ok());
}

TEST_F(LoopTargetTest, ADiskWithAMountedPartitionIsRefusedAndItsNeighbourIsNot) {
  Partition();
  MakeLoop({.partitions = true});
  const std::string first_path = loop_->AddPartition(1, kMiB, 30 * kMiB);
  const std::string second = loop_->AddPartition(2, 32 * kMiB, 32 * kMiB);
  const std::string point = MountPoint();
  ASSERT_EQ(Shell("mkfs.ext4 -q " + second), 0);
  ASSERT_EQ(mount(second.c_str(), point.c_str(), "ext4", MS_RDONLY, nullptr), 0);
  ExpectRefused(loop_->path(), {.overwrite = true},
                "its partition " + loop_->name() + "p2 is mounted on " + point);
  ExpectRefused(second, {.overwrite = true}, "is mounted on " + point);
  const auto first = Target::Open(first_path, {.overwrite = true});
  EXPECT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first.ok() ? (*first)->size_bytes() : 0, 30 * kMiB);
  ASSERT_EQ(umount(point.c_str()), 0);
}

TEST_F(LoopTargetTest, APartitionTableIsASignature) {
  Partition();
  MakeLoop();
  ExpectRefused(loop_->path(), {}, "a dos partition table");
}

TEST_F(LoopTargetTest, AnEncryptedVolumeIsASignature) {
  std::fstream(backing_, std::ios::in | std::ios::out).write("LUKS\xba\xbe\0\x01", 8);
  MakeLoop();
  ExpectRefused(loop_->path(), {}, "a crypto_LUKS");
}

TEST_F(LoopTargetTest, SwapIsRefused) {
  if (Shell("mkswap -q " + backing_ + " && true") != 0) GTEST_SKIP() << "no mkswap";
  MakeLoop();
  if (Shell("swapon " + loop_->path()) != 0) GTEST_SKIP() << "SKIPPED: the kernel has no swap";
  const auto target = Target::Open(loop_->path(), {.overwrite = true});
  Shell("swapoff " + loop_->path());
  EXPECT_EQ(target.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(target.status().message(), HasSubstr("is swap"));
}

TEST_F(LoopTargetTest, AReadOnlyDeviceIsRefusedForWritingOnly) {
  MakeLoop({.read_only = true});
  ExpectRefused(loop_->path(), {.overwrite = true}, "is read-only");
  EXPECT_TRUE(Target::Open(loop_->path(), {.write = false}).ok());
}

TEST_F(LoopTargetTest, ADeviceThatAProgramHoldsExclusivelyIsRefused) {
  MakeLoop();
  const UniqueFd holder(open(loop_->path().c_str(), O_RDONLY | O_EXCL));
  ASSERT_TRUE(holder);
  ExpectRefused(loop_->path(), {.overwrite = true}, "holds it exclusively");
}

// A ZFS pool leaves no holder in sysfs and no descriptor in /proc: it claims the partition that it
// made on the disk (or the disk), as an exclusive open does. The kernel lets nobody claim a disk of
// which a part is claimed, nor a part of one that is.
TEST_F(LoopTargetTest, ADiskOfWhichAPartitionIsHeldExclusivelyIsRefusedAndTheOtherPartitionIsNot) {
  Partition();
  MakeLoop({.partitions = true});
  const std::string first = loop_->AddPartition(1, kMiB, 30 * kMiB);
  const std::string second = loop_->AddPartition(2, 32 * kMiB, 32 * kMiB);
  const UniqueFd pool(open(first.c_str(), O_RDWR | O_EXCL));
  ASSERT_TRUE(pool);
  ExpectRefused(loop_->path(), {.overwrite = true}, "holds it exclusively");
  ExpectRefused(first, {.overwrite = true}, "holds it exclusively");
  const auto other = Target::Open(second, {.overwrite = true});
  EXPECT_TRUE(other.ok()) << other.status().message();
}

TEST_F(LoopTargetTest, APartitionOfADiskThatIsHeldExclusivelyIsRefused) {
  Partition();
  MakeLoop({.partitions = true});
  const std::string first = loop_->AddPartition(1, kMiB, 30 * kMiB);
  const UniqueFd pool(open(loop_->path().c_str(), O_RDWR | O_EXCL));
  ASSERT_TRUE(pool);
  ExpectRefused(first, {.overwrite = true}, "holds it exclusively");
}

TEST_F(LoopTargetTest, WhileItIsOpenNobodyCanMountIt) {
  ASSERT_EQ(Shell("mkfs.ext4 -q " + backing_), 0);
  MakeLoop();
  const auto target = Target::Open(loop_->path(), {.overwrite = true});
  ASSERT_TRUE(target.ok());
  EXPECT_NE(mount(loop_->path().c_str(), MountPoint().c_str(), "ext4", MS_RDONLY, nullptr), 0);
}

TEST_F(LoopTargetTest, TheFileUnderALoopDeviceIsRefused) {
  MakeLoop();
  ExpectRefused(backing_, {.overwrite = true}, "backs " + loop_->path());
}

TEST_F(LoopTargetTest, TheFileUnderALoopDeviceIsRefusedUnderWhateverNameItHas) {
  MakeLoop();
  const std::string other = folder_.path() + "/other";
  std::filesystem::create_hard_link(backing_, other);
  std::filesystem::remove(backing_);
  ExpectRefused(other, {.overwrite = true}, "backs " + loop_->path());
}

TEST_F(LoopTargetTest, AnotherDeviceThanTheOneThatWasMeantIsRefused) {
  MakeLoop();
  std::string meant;
  {
    const auto target = Target::Open(loop_->path(), {.overwrite = true});
    ASSERT_TRUE(target.ok());
    meant = (*target)->identity();
  }
  // What the kernel counts up whenever a device of this name becomes another one.
  std::string sequence;
  std::ifstream("/sys/block/" + loop_->name() + "/diskseq") >> sequence;
  EXPECT_THAT(meant, EndsWith("diskseq " + sequence));
  EXPECT_TRUE(Target::Open(loop_->path(), {.overwrite = true, .identity = meant}).ok());
  ExpectRefused(loop_->path(), {.overwrite = true, .identity = meant + "0"},
                "is not what it was when this began (" + meant + "0), but " + meant);
}

// Set by hand, flushes end in the kernel: between two runs that are compared it must not change.
TEST_F(LoopTargetTest, ADeviceWhoseWriteCacheWasSetOtherwiseMeanwhileIsRefused) {
  MakeLoop();
  const std::string setting = "/sys/block/" + loop_->name() + "/queue/write_cache";
  const auto before = ReadAttribute(setting);
  ASSERT_TRUE(before.ok());
  const std::string other = *before == "write back" ? "write through" : "write back";
  std::string meant;
  {
    const auto target = Target::Open(loop_->path(), {.overwrite = true});
    ASSERT_TRUE(target.ok());
    meant = (*target)->identity();
  }
  ASSERT_TRUE(WriteAttribute(setting, other).ok());
  ExpectRefused(loop_->path(), {.overwrite = true, .identity = meant}, "cache " + other);
  ASSERT_TRUE(WriteAttribute(setting, *before).ok());
  EXPECT_TRUE(Target::Open(loop_->path(), {.overwrite = true, .identity = meant}).ok());
}

TEST_F(LoopTargetTest, ADeviceUnderAnotherLoopDeviceIsRefused) {
  MakeLoop();
  const auto upper = LoopDevice::Over(loop_->path());
  ASSERT_TRUE(upper.ok()) << upper.status().message();
  ExpectRefused(loop_->path(), {.overwrite = true}, "held by " + (*upper)->name());
}

TEST_F(LoopTargetTest, ADeviceOverAMountedLoopDeviceIsRefused) {
  ASSERT_EQ(Shell("mkfs.ext4 -q " + backing_), 0);
  MakeLoop();
  const auto upper = LoopDevice::Over(loop_->path());
  ASSERT_TRUE(upper.ok()) << upper.status().message();
  const std::string point = MountPoint();
  ASSERT_EQ(mount(loop_->path().c_str(), point.c_str(), "ext4", MS_RDONLY, nullptr), 0);
  ExpectRefused((*upper)->path(), {.overwrite = true}, loop_->name() + " below it is mounted on ");
  ASSERT_EQ(umount(point.c_str()), 0);
}

}  // namespace
}  // namespace blktape
