#include "cli/temp_folder.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace blktape {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TempFolderTest : public ::testing::Test {
 protected:
  TempFolderTest() : place_(::testing::TempDir() + "/place") {
    std::filesystem::remove_all(place_);
    std::filesystem::create_directories(place_);
  }

  std::string place_;
};

TEST_F(TempFolderTest, ItLiesInTheFirstPlaceThatTakesItAndIsRemoved) {
  std::string path;
  {
    const Result<TempFolder> made = TempFolder::Create({"", place_ + "/absent", place_, "/"}, 1);
    ASSERT_TRUE(made.ok()) << made.status().message();
    path = made->path();
    EXPECT_THAT(path, StartsWith(place_ + "/.blktape-"));
    EXPECT_TRUE(std::filesystem::is_directory(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(TempFolderTest, WhereTooLittleIsFreeItIsRefusedWithThePlaceAndLeavesNothing) {
  const Result<TempFolder> made = TempFolder::Create({place_}, UINT64_MAX);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), StartsWith(place_ + ": "));
  EXPECT_THAT(made.status().message(), HasSubstr("try:  -o FILE"));
  EXPECT_TRUE(std::filesystem::is_empty(place_));
}

TEST_F(TempFolderTest, WithoutAnyPlaceTheLastErrorIsTold) {
  const Result<TempFolder> made = TempFolder::Create({place_ + "/absent"}, 1);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.status().message(), HasSubstr(place_ + "/absent"));
}

TEST_F(TempFolderTest, AResultLiesWhereTheUserSaysElseBesideTheTraceButNotInTmp) {
  setenv("TMPDIR", "/a", 1);
  setenv("XDG_CACHE_HOME", "/b", 1);
  EXPECT_THAT(PlacesForResultOf("/data/day.tape"), ElementsAre("/a", "/b", "/data", "/var/tmp"));
  unsetenv("TMPDIR");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_THAT(PlacesForResultOf("day.tape"), ElementsAre("", "", ".", "/var/tmp"));
}

}  // namespace
}  // namespace blktape
