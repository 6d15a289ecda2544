#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace blktape {

// In CI every facility must be there: what a user's machine may lack is a failure, not a skip.
inline bool SkipsAreFailures() { return std::getenv("CI") != nullptr; }

}  // namespace blktape

// At the top of a test that needs something of the machine.
#define BLKTAPE_REQUIRE(condition, what)                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      if (::blktape::SkipsAreFailures()) FAIL() << "CI must offer " << what; \
      GTEST_SKIP() << "needs " << what;                                      \
    }                                                                        \
  } while (false)
#define BLKTAPE_REQUIRE_ROOT() BLKTAPE_REQUIRE(geteuid() == 0, "root")
