#include "format/trace_identity.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/byte_stream.h"
#include "base/check.h"
#include "base/sha256.h"
#include "format/message_stream.h"

namespace blktape {
namespace {

constexpr size_t kIdBytes = 16;
constexpr size_t kFrameTraceBytes = 8;
constexpr size_t kShownBytes = 64;  // of a name or version that a hostile trace may have chosen

// Names of Header.needs that this version understands: none has been needed so far.
constexpr std::array<std::string_view, 0> kKnownFeatures;

}  // namespace

std::string NewTraceId(const proto::Header& header) {
  const std::string bytes = header.SerializeAsString();
  MemorySource source(bytes);
  const Result<std::string> hex = Sha256Hex(&source);
  BLKTAPE_CHECK(hex.ok());  // memory does not fail to read
  std::string id;
  for (size_t i = 0; i < kIdBytes; ++i) {
    id += static_cast<char>(std::stoi(hex->substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

uint64_t FrameTrace(const proto::Header& header) {
  const std::string& id = header.trace_id();
  if (id.size() != kIdBytes) return 0;
  uint64_t trace = 0;
  for (size_t i = kFrameTraceBytes; i-- > 0;) trace = trace << 8 | static_cast<uint8_t>(id[i]);
  return trace;
}

bool HasHeaderCopy(uint64_t frame_number) {
  return frame_number > 1 && std::has_single_bit(frame_number);
}

Status CheckUnderstood(const proto::Header& header, std::string_view where) {
  const auto refuse = [&](const std::string& what) {
    return Status(StatusCode::kUnimplemented, std::string(where) + ": " + what +
                                                  ", written by blktape " +
                                                  header.tool_version().substr(0, kShownBytes));
  };
  for (const std::string& feature : header.needs()) {
    if (std::ranges::find(kKnownFeatures, std::string_view(feature)) != kKnownFeatures.end()) {
      continue;
    }
    return refuse("needs \"" + feature.substr(0, kShownBytes) +
                  "\", which this version does not know");
  }
  if (header.format_version() > kFormatVersion) {
    return refuse("format version " + std::to_string(header.format_version()) +
                  ", and this one reads up to version " + std::to_string(kFormatVersion));
  }
  return OkStatus();
}

}  // namespace blktape
