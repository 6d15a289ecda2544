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

TEST(ProcessNamesTest, AProcessIsCalledWhatItWasToldLast) {
  ProcessNames names(8);
  names.Learn(7, Comm("sh"));
  names.Learn(7, Comm("cc1plus"));
  EXPECT_EQ(names.Find(7), Comm("cc1plus"));
}

TEST(ProcessNamesTest, AStrangerHasNoName) {
  ProcessNames names(8);
  names.Learn(7, Comm("sh"));
  EXPECT_EQ(names.Find(8), ProcessComm{});
}

TEST(ProcessNamesTest, WhoIsAskedForIsNeverForgotten) {
  ProcessNames names(100);
  names.Learn(1, Comm("postgres"));
  for (uint32_t pid = 2; pid < 5000; ++pid) {
    names.Learn(pid, Comm("cc1"));
    if (pid % 90 == 0) {
      EXPECT_EQ(names.Find(1), Comm("postgres")) << pid;
    }
  }
}

TEST(ProcessNamesTest, AsManyAreKnownAsWasPromised) {
  ProcessNames names(100);
  for (uint32_t pid = 1; pid <= 5000; ++pid) names.Learn(pid, Comm(std::to_string(pid)));
  for (uint32_t pid = 4901; pid <= 5000; ++pid) {
    EXPECT_EQ(names.Find(pid), Comm(std::to_string(pid)));
  }
  EXPECT_EQ(names.Find(4800), ProcessComm{}) << "two hundred are the most it holds";
}

TEST(ProcessNamesTest, AnOldNameDoesNotComeBack) {
  ProcessNames names(2);
  names.Learn(1, Comm("sh"));
  names.Learn(2, Comm("a"));
  names.Learn(3, Comm("b"));
  names.Learn(1, Comm("make"));
  EXPECT_EQ(names.Find(1), Comm("make"));
  names.Learn(4, Comm("c"));
  EXPECT_EQ(names.Find(1), Comm("make"));
}

}  // namespace
}  // namespace blktape
