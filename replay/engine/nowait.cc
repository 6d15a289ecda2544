#include "replay/engine/nowait.h"

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace blktape {

bool IssuesWithoutBlocking(int fd) {
  constexpr size_t kPageBytes = 4096;
  const std::unique_ptr<void, decltype(&std::free)> page(std::aligned_alloc(kPageBytes, kPageBytes),
                                                         &std::free);
  if (page == nullptr) return true;
  struct iovec vector{page.get(), kPageBytes};
  // EAGAIN means that the kernel can, but not at this moment.
  return preadv2(fd, &vector, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP;
}

}  // namespace blktape
