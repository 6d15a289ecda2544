#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file.h"
#include "base/status.h"

namespace blktape {

// A BPF ring (BPF_MAP_TYPE_RINGBUF). Records are read in place. One thread.
class Ring {
 public:
  Ring() = default;
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&& other) = delete;
  ~Ring();

  // `bytes` is the size of the ring.
  Status Map(UniqueFd fd, uint64_t bytes);

  // Notes how much has been written. Only that much is read until the next call.
  void Look();
  // The oldest record that is not yet popped, valid until Release. Empty if there is none or if it
  // is still being written (see Busy).
  std::span<const std::byte> Front();
  void Pop();
  // Returns the space of popped records to the programs.
  void Release();

  // Whether a record seen by Look has reserved its place in the ring but is not yet written.
  bool Busy();

  int fd() const { return fd_.get(); }

 private:
  const uint32_t* Header() const;

  UniqueFd fd_;
  uint64_t bytes_ = 0;
  size_t page_bytes_ = 0;
  // The kernel's layout: a page with the consumer position, a page with the producer position, then
  // the records, mapped twice so that no record is split.
  uint64_t* consumed_ = nullptr;
  std::byte* produced_ = nullptr;
  uint64_t position_ = 0;  // position of the front
  uint64_t end_ = 0;       // end of the data that Look saw
};

}  // namespace blktape
