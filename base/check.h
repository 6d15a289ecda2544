#pragma once

#include <cstdio>
#include <cstdlib>

// A broken invariant is a bug in blktape: prints where it is and aborts. Not assert(), because -c
// opt defines NDEBUG.
#define BLKTAPE_CHECK(condition)                                                          \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      std::fprintf(stderr, "blktape: bug: %s:%d: %s does not hold\n", __FILE__, __LINE__, \
                   #condition);                                                           \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
