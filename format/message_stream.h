#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/trace.pb.h"

namespace blktape {

// The newest that this program reads. It writes kFormatVersionOfNeeds where a header names features
// that a reader has to know, else 1, which every reader knows.
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr uint32_t kFormatVersionOfNeeds = 2;

// The largest message that is not a batch. Parsed, a hostile one takes at most some 100 MiB.
inline constexpr size_t kMaxSmallMessageBytes = 8u << 20;
// A frame with more is damaged, so that a few compressed bytes cannot mean hours of work.
inline constexpr uint64_t kMaxFrameMessages = 1u << 20;
inline constexpr int kMaxDevices = 4096;
// What is kept of the text of a loss or a mark.
inline constexpr size_t kMaxDetailBytes = 1024;

// Appends `message`, preceded by its length as a varint (protobuf's writeDelimitedTo).
void AppendDelimited(const proto::Message& message, std::string* to);

// Takes the first message off `from` and fills `message`; false if `from` does not begin with one
// of an allowed size and number of fields (then both are unspecified). None is empty.
[[nodiscard]] bool TakeDelimited(std::string_view* from, proto::Message* message);

// Makes every string in `message` well-formed UTF-8, without which protobuf refuses to parse it.
void MakeStringsUtf8(google::protobuf::Message* message);

}  // namespace blktape
