#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/trace.pb.h"

namespace blktape {

// The newest format version that this program reads. It writes kFormatVersionOfNeeds if the header
// names features that a reader must support, else 1, which every reader supports.
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr uint32_t kFormatVersionOfNeeds = 2;

// The maximum size of a message that is not a batch. Parsing a hostile message of this size takes
// at most about 100 MiB.
inline constexpr size_t kMaxSmallMessageBytes = 8u << 20;
// A frame with more messages counts as damaged, so that a few compressed bytes cannot cause hours
// of work.
inline constexpr uint64_t kMaxFrameMessages = 1u << 20;
inline constexpr int kMaxDevices = 4096;
// The text of a loss or a mark is truncated to this.
inline constexpr size_t kMaxDetailBytes = 1024;

// Appends the length of `message` as a varint and then the message (protobuf's writeDelimitedTo).
void AppendDelimited(const proto::Message& message, std::string* to);

// Removes the first message from `from` and parses it into `message`. False if `from` does not
// begin with a valid message of an allowed size and number of fields; then both are unspecified. An
// empty message is not valid.
[[nodiscard]] bool TakeDelimited(std::string_view* from, proto::Message* message);

// Makes every string in `message` well-formed UTF-8; protobuf refuses to parse other strings.
void MakeStringsUtf8(google::protobuf::Message* message);

}  // namespace blktape
