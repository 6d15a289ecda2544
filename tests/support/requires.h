#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace blktape {

// In CI every facility must be there: what a user's machine may lack is a failure, not a skip.
inline bool SkipsAreFailures() { return std::getenv("CI") != nullptr; }

// Where a file beside the repository lies, as traces/...; empty if it is not here.
inline std::string SharedFile(const std::string& name) {
  const char* folder = std::getenv("BLKTAPE_SHARED");
  if (folder == nullptr) return "";
  std::string path = std::string(folder) + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace blktape

// At the top of a test that needs something of the machine.
#define BLKTAPE_REQUIRE(condition, what)                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      if (::blktape::SkipsAreFailures()) FAIL() << "CI must offer " << what; \
      GTEST_SKIP() << "needs " << what;                                      \
    }                                                                        \
  } while (false)
// For a recording too large or too foreign for the repository: skips in CI too. tools/count.py
// knows the words.
#define BLKTAPE_REQUIRE_SHARED(name)       \
  if (::blktape::SharedFile(name).empty()) \
  GTEST_SKIP() << "not in the repository: shared/" << (name)
#define BLKTAPE_REQUIRE_ROOT() BLKTAPE_REQUIRE(geteuid() == 0, "root")
