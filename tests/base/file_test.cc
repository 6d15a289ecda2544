#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/sha256.h"
#include "base/status.h"

namespace blktape {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class FileTest : public ::testing::Test {
 protected:
  // A fresh path in the test's own folder.
  std::string Path(const std::string& name) {
    const std::filesystem::path folder =
        std::filesystem::path(::testing::TempDir()) /
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder);
    return (folder / name).string();
  }

  void Put(const std::string& path, std::string_view text) {
    auto sink = CreateFile(path);
    ASSERT_TRUE(sink.ok()) << sink.status().message();
    ASSERT_TRUE((*sink)->Write(AsBytes(text)).ok());
    ASSERT_TRUE((*sink)->Sync().ok());
  }
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  const std::string path = Path("a");
  Put(path, "forty-two");
  EXPECT_EQ(ReadFile(path).value(), "forty-two");
}

TEST_F(FileTest, NewFilesAreTheOwnersAlone) {
  const std::string path = Path("a");
  Put(path, "x");
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileTest, AnExistingFileIsNeverOverwritten) {
  const std::string path = Path("a");
  Put(path, "precious");
  EXPECT_EQ(CreateFile(path).status().code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(path).value(), "precious");
}

TEST_F(FileTest, RenamingNeverReplaces) {
  const std::string from = Path("from");
  const std::string to = Path("to");
  Put(from, "new");
  Put(to, "precious");
  EXPECT_EQ(RenameDurably(from, to).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadFile(to).value(), "precious");
  EXPECT_EQ(ReadFile(from).value(), "new");
  const std::string free = Path("free");
  EXPECT_TRUE(RenameDurably(from, free).ok());
  EXPECT_EQ(ReadFile(free).value(), "new");
}

TEST_F(FileTest, ReplacingTouchesNobodyElsesFile) {
  const std::string path = Path("journal");
  const std::string other = Path("precious");
  Put(other, "precious");
  // Names that a program with a fixed name for what is not yet finished would write to.
  std::filesystem::create_symlink(other, path + ".new");
  std::filesystem::create_symlink(other, path);
  ASSERT_TRUE(ReplaceFile(path, "one").ok());
  EXPECT_EQ(ReadFile(path).value(), "one");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  ASSERT_TRUE(ReplaceFile(path, "two").ok());
  EXPECT_EQ(ReadFile(path).value(), "two");
  EXPECT_EQ(ReadFile(other).value(), "precious");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(FileTest, AReplacementThatFailsLeavesNothing) {
  const std::string folder = Path("folder");
  std::filesystem::create_directories(folder + "/journal/inside");
  EXPECT_FALSE(ReplaceFile(folder + "/journal", "x").ok());
  const std::filesystem::directory_iterator left(folder);
  EXPECT_EQ(std::distance(begin(left), end(left)), 1);
}

TEST_F(FileTest, AMissingFileIsNamed) {
  const std::string path = Path("missing");
  const auto source = OpenForReading(path);
  EXPECT_EQ(source.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(source.status().message(), HasSubstr(path));
}

TEST_F(FileTest, AFolderIsNoFile) { EXPECT_FALSE(OpenForReading("/").ok()); }

TEST_F(FileTest, SeekingContinuesFromThere) {
  const std::string path = Path("a");
  Put(path, "0123456789");
  auto source = OpenForReading(path);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->size_bytes(), 10u);
  ASSERT_TRUE((*source)->Seek(7).ok());
  std::byte buffer[8];
  ASSERT_EQ((*source)->Read(buffer).value(), 3u);
  EXPECT_EQ(buffer[0], std::byte{'7'});
  EXPECT_EQ((*source)->Read(buffer).value(), 0u);
}

TEST_F(FileTest, AFullDiskIsSaidSo) {
  const Status status = WriteAttribute("/dev/full", "x");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("/dev/full"));
}

TEST(MemoryStreamTest, SourceEndsAndSeeks) {
  MemorySource source("abc");
  std::byte buffer[2];
  EXPECT_EQ(source.Read(buffer).value(), 2u);
  EXPECT_EQ(source.Read(buffer).value(), 1u);
  EXPECT_EQ(source.Read(buffer).value(), 0u);
  EXPECT_TRUE(source.Seek(1).ok());
  EXPECT_EQ(source.Read(buffer).value(), 2u);
  EXPECT_FALSE(source.Seek(4).ok());
}

// FIPS 180-2, appendix B: "abc" and one million times "a"; the empty string as `sha256sum
// /dev/null` prints it.
TEST(Sha256Test, AgreesWithThePublishedVectors) {
  MemorySource abc("abc");
  EXPECT_EQ(Sha256Hex(&abc).value(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  MemorySource many(million);
  EXPECT_EQ(Sha256Hex(&many).value(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  MemorySource none("");
  EXPECT_EQ(Sha256Hex(&none).value(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace blktape
