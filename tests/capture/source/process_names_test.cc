#include "capture/source/process_names.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "capture/source/block_event.h"

namespace blktape {
namespace {

ProcessComm Comm(const std::string& name) {
  ProcessComm comm{};
  std::memcpy(comm.data(), name.data(), name.size());
  return comm;
}

TEST(ProcessNamesTest, AProcessIsCalledAsItWasThen) {
  ProcessNames names(8);
  names.Learn(7, 0, Comm("sh"));
  names.Learn(7, 200, Comm("cc1plus"));
  names.Learn(7, 300, Comm("sh"));
  EXPECT_EQ(names.Find(7, 1'000), Comm("sh"));
  EXPECT_EQ(names.Find(7, 299), Comm("cc1plus"));
  EXPECT_EQ(names.Find(7, 200), Comm("cc1plus"));
  EXPECT_EQ(names.Find(7, 199), Comm("sh"));
}

TEST(ProcessNamesTest, BeforeItsFirstNameItHadTheSame) {
  ProcessNames names(8);
  names.Learn(7, 200, Comm("sh"));
  EXPECT_EQ(names.Find(7, 100), Comm("sh"));
}

TEST(ProcessNamesTest, TheLastNamesOfAProcessAreKept) {
  ProcessNames names(8);
  for (int64_t name = 0; name < 100; ++name) names.Learn(7, 10 * name, Comm(std::to_string(name)));
  for (int64_t name = 100 - ProcessNames::kPerProcess; name < 100; ++name) {
    EXPECT_EQ(names.Find(7, 10 * name), Comm(std::to_string(name)));
  }
}

TEST(ProcessNamesTest, TheNamesOfAProcessSurviveTogether) {
  ProcessNames names(2);
  names.Learn(1, 0, Comm("sh"));
  names.Learn(2, 0, Comm("a"));
  names.Learn(3, 0, Comm("b"));
  names.Learn(1, 200, Comm("make"));
  names.Learn(4, 0, Comm("c"));
  EXPECT_EQ(names.Find(1, 100), Comm("sh"));
  EXPECT_EQ(names.Find(1, 200), Comm("make"));
}

TEST(ProcessNamesTest, AStrangerHasNoName) {
  ProcessNames names(8);
  names.Learn(7, 0, Comm("sh"));
  EXPECT_EQ(names.Find(8, 1), ProcessComm{});
}

TEST(ProcessNamesTest, WhoIsAskedForIsNeverForgotten) {
  ProcessNames names(100);
  names.Learn(1, 0, Comm("postgres"));
  for (uint32_t pid = 2; pid < 5000; ++pid) {
    names.Learn(pid, 0, Comm("cc1"));
    if (pid % 90 == 0) {
      EXPECT_EQ(names.Find(1, 1), Comm("postgres")) << pid;
    }
  }
}

TEST(ProcessNamesTest, AsManyAreKnownAsWasPromised) {
  ProcessNames names(100);
  for (uint32_t pid = 1; pid <= 5000; ++pid) names.Learn(pid, 0, Comm(std::to_string(pid)));
  for (uint32_t pid = 4901; pid <= 5000; ++pid) {
    EXPECT_EQ(names.Find(pid, 1), Comm(std::to_string(pid)));
  }
  EXPECT_EQ(names.Find(4800, 1), ProcessComm{}) << "two hundred are the most it holds";
}

}  // namespace
}  // namespace blktape
