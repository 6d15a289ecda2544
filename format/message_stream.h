#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/trace.pb.h"

namespace blktape {

inline constexpr uint32_t kFormatVersion = 1;

// The largest message that is not a batch. Parsed, a hostile one may take twenty times as much.
inline constexpr size_t kMaxSmallMessageBytes = 8u << 20;

// Appends `message`, preceded by its length as a varint (protobuf's writeDelimitedTo).
void AppendDelimited(const proto::Message& message, std::string* to);

// Takes the first message off `from` and fills `message`; false if `from` does not begin with one
// of an allowed size (then both are unspecified).
[[nodiscard]] bool TakeDelimited(std::string_view* from, proto::Message* message);

// Makes every string in `message` well-formed UTF-8, without which protobuf refuses to parse it.
void MakeStringsUtf8(google::protobuf::Message* message);

}  // namespace blktape
