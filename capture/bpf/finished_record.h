#pragma once

#include <linux/types.h>

#include <cstdint>

#include "capture/bpf/block_abi.h"
#include "format/io_record.h"

namespace blktape {

// What the programs tell of a request, as CaptureSink::OnFinished wants it but for `device`, which
// is the place among the devices that the programs were given. Pure.
IoRecord RecordOf(const blktape_finished& event);
// Of one that is still in its slot: issued and not completed.
IoRecord RecordOf(const blktape_slot& slot);

// The errno of a block status: BLK_STS_ of include/linux/blk_types.h as block/blk-core.c translates
// it, or the negative errno of kernels before 5.16. EIO for one that is not known.
uint32_t ErrnoOfStatus(int32_t status);

}  // namespace blktape
