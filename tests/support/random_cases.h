#pragma once

namespace blktape {

// How many of `count` random cases a test tries: under the thread sanitizer, which takes twenty
// times as long for each and looks for races, of which one case has as many as another, a quarter.
constexpr int RandomCases(int count) {
#ifdef _GLIBCXX_TSAN  // by .bazelrc's tsan
  return (count + 3) / 4;
#else
  return count;
#endif
}

}  // namespace blktape
