// Writes 4 KiB at sector 0, 8, 16 ... of DEVICE past the page cache, each after the one before has
// completed and 2 ms have passed. Says of each, once it has completed, on one line: "io LBA BEGIN
// END", in ns of CLOCK_MONOTONIC.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/units.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: timed_writes DEVICE COUNT\n");
    return 2;
  }
  constexpr size_t kBytes = 4096;
  alignas(kBytes) static char buffer[kBytes];
  std::fill_n(buffer, kBytes, 'w');
  const int fd = open(argv[1], O_WRONLY | O_DIRECT);
  if (fd < 0) {
    std::perror(argv[1]);
    return 1;
  }
  blktape::Clock* clock = blktape::Clock::Monotonic();
  for (int64_t i = 0; i < std::atoll(argv[2]); ++i) {
    const int64_t begin_ns = clock->NowNs();
    if (pwrite(fd, buffer, kBytes, i * static_cast<int64_t>(kBytes)) != kBytes) {
      std::perror("write");
      return 1;
    }
    std::printf("io %" PRId64 " %" PRId64 " %" PRId64 "\n", i * 8, begin_ns, clock->NowNs());
    std::fflush(stdout);
    clock->SleepUntilNs(clock->NowNs() + 2 * blktape::kNanosPerMilli);
  }
}
