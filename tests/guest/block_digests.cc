// Reads lines "DISK OP LBA" and writes each once more, followed by the SHA-256 of the 64 KiB that
// lie there on the disk, read past the page cache.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/sha256.h"

int main() {
  constexpr size_t kBytes = 65536;
  constexpr int64_t kSectorBytes = 512;
  alignas(4096) static char buffer[kBytes];
  std::string disk, op;
  int64_t lba = 0;
  while (std::cin >> disk >> op >> lba) {
    const std::string path = "/dev/" + disk;
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0 || pread(fd, buffer, kBytes, lba * kSectorBytes) != kBytes) {
      std::perror(path.c_str());
      return 1;
    }
    close(fd);
    blktape::MemorySource block(std::string_view(buffer, kBytes));
    std::cout << disk << ' ' << op << ' ' << lba << ' ' << *blktape::Sha256Hex(&block) << '\n';
  }
}
