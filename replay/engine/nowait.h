#pragma once

namespace blktape {

// Whether the kernel can issue a direct read on `fd` without blocking. Where it cannot (zram, md
// and other drivers that take bios themselves, some file systems), io_uring hands every request to
// a kernel worker, which costs tens of microseconds, while libaio issues it on the calling thread.
// Asks by a read of one page with RWF_NOWAIT: changes nothing.
bool IssuesWithoutBlocking(int fd);

}  // namespace blktape
