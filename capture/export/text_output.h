#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string_view>

#include "base/byte_stream.h"
#include "base/status.h"

namespace blktape {

// Collects text and writes it to a sink in large pieces.
class TextOutput {
 public:
  explicit TextOutput(ByteSink* sink) : sink_(sink) {}

  fmt::memory_buffer* text() { return &text_; }
  void Append(std::string_view more) { text_.append(more.data(), more.data() + more.size()); }
  Status FlushIfLarge() { return text_.size() < kFlushBytes ? OkStatus() : Flush(); }
  Status Flush() {
    const Status status =
        sink_->Write(std::as_bytes(std::span<const char>(text_.data(), text_.size())));
    text_.clear();
    return status;
  }

 private:
  static constexpr size_t kFlushBytes = size_t{1} << 18;

  ByteSink* sink_;
  fmt::memory_buffer text_;
};

}  // namespace blktape
