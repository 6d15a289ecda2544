#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <vector>

#include "format/trace.pb.h"

namespace blktape {

// What a reader must know of a target before believing how fast it was, in sentences without a full
// stop. `replay`, `score`, `bench` and `compare` all say it in these words.

// Empty, unless the kernel was told to send no flushes though the drive has a cache that needs
// them.
std::string LostFlushesNote(const proto::Device& target);

// Of all targets of a run, in their order. `state`: what the target was prepared to, as the plan
// names it. `reads`: whether the run reads; what was never written is read without any work of the
// medium. `sampled`: it replays a sample, and so may read what only the whole writes.
std::vector<std::string> TargetNotes(
    const google::protobuf::RepeatedPtrField<proto::Device>& targets, const std::string& state,
    bool reads, bool sampled = false);

}  // namespace blktape
