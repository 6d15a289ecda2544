#include "host/dirty_pages.h"

#include <gtest/gtest.h>

#include <string>

namespace blktape {
namespace {

// As Linux 6.18 writes them, but for the lists of inodes.
constexpr char kCounts[] = R"(BdiWriteback:               16 kB
BdiReclaimable:            112 kB
BdiDirtyThresh:        4630076 kB
DirtyThresh:           4630076 kB
BackgroundThresh:      2312212 kB
BdiDirtied:          366626012 kB
BdiWritten:          320764436 kB
BdiWriteBandwidth:        2208 kBps
)";

std::string Stats(int dirty, int io, int more_io) {
  return std::string(kCounts) + "b_dirty: " + std::to_string(dirty) +
         "\nb_io:                        " + std::to_string(io) +
         "\nb_more_io:                   " + std::to_string(more_io) +
         "\nb_dirty_time:                7\nbdi_list:                    1\nstate:                "
         "       5\n";
}

TEST(DirtyPagesTest, WhatIsDirtyAndWhatIsOnItsWayCount) {
  EXPECT_EQ(DirtyKiB(Stats(1, 0, 0), /*in_flight=*/false), 128u);
  EXPECT_EQ(DirtyKiB(Stats(0, 2, 0), false), 128u);
  EXPECT_EQ(DirtyKiB(Stats(0, 0, 3), false), 128u);
}

TEST(DirtyPagesTest, CountsWithoutAnInodeAreOff) {
  EXPECT_EQ(DirtyKiB(Stats(0, 0, 0), false), 0u);
  // Pages on their way belong to no list.
  EXPECT_EQ(DirtyKiB(Stats(0, 0, 0), /*in_flight=*/true), 128u);
}

TEST(DirtyPagesTest, WithoutListsTheCountsAreAllThereIs) {
  EXPECT_EQ(DirtyKiB(kCounts, false), 128u);
}

}  // namespace
}  // namespace blktape
