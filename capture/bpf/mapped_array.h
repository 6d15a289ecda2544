#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/status.h"

namespace blktape {

// The shared memory of a BPF array map (BPF_F_MMAPABLE). Not bounds-checked: an index must be less
// than the number of mapped entries.
template <typename T>
class MappedArray {
 public:
  MappedArray() = default;
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;
  ~MappedArray() { Unmap(); }

  // `fd` may be closed afterwards. `protection` as in mmap.
  Status Map(int fd, size_t entries, int protection = PROT_READ) {
    Unmap();
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (entries * sizeof(T) + page - 1) / page * page;
    void* memory = mmap(nullptr, bytes_, protection, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return ErrnoStatus(errno, "bpf: mapping an array");
    data_ = static_cast<const T*>(memory);
    return OkStatus();
  }
  void Unmap() {
    if (data_ != nullptr) munmap(const_cast<T*>(data_), bytes_);
    data_ = nullptr;
  }
  const T& operator[](size_t index) const { return data_[index]; }
  // Only for memory mapped with PROT_WRITE.
  T& writable(size_t index) { return const_cast<T*>(data_)[index]; }

 private:
  const T* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace blktape
