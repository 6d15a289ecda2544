#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// A BPF ring (BPF_MAP_TYPE_RINGBUF), its records read where the programs wrote them. One thread.
class Ring {
 public:
  Ring() = default;
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&& other) = delete;
  ~Ring();

  // `bytes` is the size of the ring.
  Status Map(UniqueFd fd, uint64_t bytes);

  // Takes note of what has been written: only that is read until the next call.
  void Look();
  // The oldest record not yet popped, good until Release. Empty if there is none or if it is still
  // being written (see Busy).
  std::span<const std::byte> Front();
  void Pop();
  // Gives the programs the room of what was popped.
  void Release();

  // Whether a record noted by Look has its place in the ring and is not there yet.
  bool Busy();

  int fd() const { return fd_.get(); }

 private:
  const uint32_t* Header() const;

  UniqueFd fd_;
  uint64_t bytes_ = 0;
  size_t page_bytes_ = 0;
  // The kernel's: a page with our position, one with the programs', then the records, mapped twice
  // so that none is cut.
  uint64_t* consumed_ = nullptr;
  std::byte* produced_ = nullptr;
  uint64_t position_ = 0;  // of the front
  uint64_t end_ = 0;       // of what Look saw
};

}  // namespace blktape
