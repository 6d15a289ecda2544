#pragma once

#include <google/protobuf/message.h>

#include "base/json.h"

namespace blktape {

// The fields of `message` that are set, by their names in trace.proto, in the order of their
// numbers. Numbers stay numbers (protobuf's own JSON makes strings of 64-bit ones).
Json ProtoJson(const google::protobuf::Message& message);

}  // namespace blktape
