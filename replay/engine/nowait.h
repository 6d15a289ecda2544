#pragma once

namespace blktape {

// Whether the kernel can issue a direct read on `fd` without blocking. If it cannot (zram, md and
// other bio-based drivers, some file systems), io_uring hands every request to a kernel worker,
// which costs tens of microseconds, while libaio issues it on the calling thread. Tests this with a
// read of one page with RWF_NOWAIT; changes nothing.
bool IssuesWithoutBlocking(int fd);

}  // namespace blktape
