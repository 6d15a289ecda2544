#pragma once

#include <linux/types.h>

#include <cstdint>

#include "capture/bpf/block_abi.h"
#include "format/io_record.h"

namespace blktape {

// Converts a finished request to a record for CaptureSink::OnFinished, except that `device` is the
// index among the devices that the programs were given. Pure.
IoRecord RecordOf(const blktape_finished& event);
// The same for a request that is still in its slot: issued and not completed.
IoRecord RecordOf(const blktape_slot& slot);

// The errno of a block status: BLK_STS_ of include/linux/blk_types.h as block/blk-core.c translates
// it, or the negative errno of kernels before 5.16. EIO for an unknown status.
uint32_t ErrnoOfStatus(int32_t status);

}  // namespace blktape
