#include "base/new_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_stream.h"
#include "base/file.h"
#include "base/status.h"

namespace blktape {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NewFileTest : public ::testing::Test {
 protected:
  NewFileTest() {
    std::string name = ::testing::TempDir() + "new_file_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~NewFileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  static void Write(const NewFile& file, std::string_view text) {
    const auto sink = file.Sink();
    ASSERT_TRUE(sink.ok());
    ASSERT_TRUE((*sink)->Write(std::as_bytes(std::span(text))).ok());
  }
  void MakeTheirs(const std::string& name) const { std::ofstream(Path(name)) << "theirs"; }

  std::string folder_;
};

TEST_F(NewFileTest, HasItsNameOnlyWhenItIsWhole) {
  Result<NewFile> file = NewFile::Create(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  Write(*file, "half");
  EXPECT_FALSE(fs::exists(Path("a")));
  Write(*file, " and half");
  ASSERT_TRUE(file->GiveName().ok());
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(*ReadFile(Path("a")), "half and half");
  struct stat info{};
  ASSERT_EQ(stat(Path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(NewFileTest, IsGoneWithoutAName) {
  {
    Result<NewFile> file = NewFile::Create(Path("a"));
    ASSERT_TRUE(file.ok());
    Write(*file, "half");
    const NewFile moved = *std::move(file);
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(NewFileTest, TakesNoNameThatIsTaken) {
  MakeTheirs("file");
  fs::create_directory(Path("folder"));
  fs::create_symlink("/no/such/file", Path("link"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const char* name : {"file", "folder", "link", "fifo"}) {
    EXPECT_EQ(NewFile::Create(Path(name)).status().code(), StatusCode::kAlreadyExists) << name;
    EXPECT_EQ(WriteNewFolder(Path(name), {}).code(), StatusCode::kAlreadyExists) << name;
  }
  EXPECT_EQ(*ReadFile(Path("file")), "theirs");
  EXPECT_EQ(Names().size(), 4u);
}

TEST_F(NewFileTest, ANameThatIsTakenMeanwhileStaysTheirs) {
  {
    Result<NewFile> file = NewFile::Create(Path("a"));
    ASSERT_TRUE(file.ok());
    Write(*file, "ours");
    MakeTheirs("a");
    EXPECT_EQ(file->GiveName().code(), StatusCode::kAlreadyExists);
  }
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(*ReadFile(Path("a")), "theirs");
}

TEST_F(NewFileTest, AMissingFolderIsToldByTheName) {
  const Status missing = NewFile::Create(Path("no/a")).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), ::testing::HasSubstr(Path("no/a")));
  MakeTheirs("file");
  EXPECT_FALSE(NewFile::Create(Path("file/a")).ok());
}

TEST_F(NewFileTest, AVersionReplacesAtOnce) {
  MakeTheirs("a");
  {
    Result<NewFile> file = NewFile::CreateVersionOf(Path("a"));
    ASSERT_TRUE(file.ok());
    Write(*file, "new");
    EXPECT_EQ(*ReadFile(Path("a")), "theirs");
    ASSERT_TRUE(file->Replace().ok());
  }
  EXPECT_THAT(Names(), ElementsAre("a"));
  EXPECT_EQ(*ReadFile(Path("a")), "new");
}

TEST_F(NewFileTest, AFolderIsMadeWithAllItsFilesOrNotAtAll) {
  ASSERT_TRUE(WriteNewFolder(Path("all"), {{"one", "1"}, {"two", "2"}}).ok());
  EXPECT_EQ(*ReadFile(Path("all/one")), "1");
  EXPECT_EQ(*ReadFile(Path("all/two")), "2");
  EXPECT_FALSE(WriteNewFolder(Path("none"), {{"one", "1"}, {"no/two", "2"}}).ok());
  EXPECT_THAT(Names(), ElementsAre("all"));
}

}  // namespace
}  // namespace blktape
