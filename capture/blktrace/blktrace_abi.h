#pragma once

#include <linux/blktrace_api.h>
#include <linux/fs.h>
#include <linux/ioctl.h>

#include <cstdint>

namespace blktape {

// The kernel's second blktrace interface (Linux 6.19), missing in the distribution's headers:
// include/uapi/linux/blktrace_api.h, block/ioctl.c.
struct BlktraceSetup2 {
  char name[64];  // out: the folder in debugfs/block
  uint64_t act_mask;
  uint32_t buf_size;
  uint32_t buf_nr;
  uint64_t start_lba;
  uint64_t end_lba;
  uint32_t pid;
  uint32_t flags;
  uint64_t reserved[11];
};
static_assert(sizeof(BlktraceSetup2) == 192);

inline constexpr unsigned long kBlktraceSetup2 = _IOWR(0x12, 142, BlktraceSetup2);
inline constexpr unsigned long kBlktraceSetup = BLKTRACESETUP;
inline constexpr unsigned long kBlktraceStart = BLKTRACESTART;
inline constexpr unsigned long kBlktraceStop = BLKTRACESTOP;
inline constexpr unsigned long kBlktraceTeardown = BLKTRACETEARDOWN;

}  // namespace blktape
