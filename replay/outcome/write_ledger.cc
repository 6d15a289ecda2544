#include "replay/outcome/write_ledger.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace blktape {
namespace {

constexpr uint64_t kEntryBytes = sizeof(uint32_t);
constexpr uint64_t kAtOnce = 4096;  // sectors per system call

Status Failed(const char* what) { return ErrnoStatus(errno, what); }

}  // namespace

Result<WriteLedger> WriteLedger::Create(const std::string& folder, uint32_t targets) {
  WriteLedger ledger;
  for (uint32_t i = 0; i < targets; ++i) {
    std::string path = folder + "/.blktape-verify-XXXXXX";
    UniqueFd file(mkostemp(path.data(), O_CLOEXEC));
    if (!file) return ErrnoStatus(errno, "making the ledger of a verification in " + folder);
    unlink(path.c_str());
    ledger.files_.push_back(std::move(file));
  }
  return ledger;
}

Status WriteLedger::Set(uint32_t target, uint64_t first_sector, uint64_t sectors, uint32_t value) {
  std::array<uint32_t, kAtOnce> values;
  const uint64_t used = std::min(sectors, kAtOnce);
  std::fill_n(values.begin(), used, value);
  while (sectors > 0) {
    const uint64_t now = std::min(sectors, kAtOnce);
    const ssize_t bytes = static_cast<ssize_t>(now * kEntryBytes);
    errno = ENOSPC;  // a short write means this
    if (pwrite(files_[target].get(), values.data(), bytes,
               static_cast<off_t>(first_sector * kEntryBytes)) != bytes) {
      return Failed("writing the ledger of the verification");
    }
    first_sector += now;
    sectors -= now;
  }
  return OkStatus();
}

Status WriteLedger::Get(uint32_t target, uint64_t first_sector, std::span<uint32_t> values) const {
  const ssize_t got = pread(files_[target].get(), values.data(), values.size_bytes(),
                            static_cast<off_t>(first_sector * kEntryBytes));
  if (got < 0) return Failed("reading the ledger of the verification");
  // Nothing was written beyond the file's end.
  std::fill(values.begin() + got / static_cast<ssize_t>(kEntryBytes), values.end(), kNeverWritten);
  return OkStatus();
}

Result<std::optional<WriteLedger::Stretch>> WriteLedger::NextWritten(uint32_t target,
                                                                     uint64_t from) const {
  const int fd = files_[target].get();
  const off_t begin = lseek(fd, static_cast<off_t>(from * kEntryBytes), SEEK_DATA);
  if (begin < 0 && errno == ENXIO) return std::optional<Stretch>();
  const off_t end = begin < 0 ? begin : lseek(fd, begin, SEEK_HOLE);
  if (end < 0) return Failed("reading the ledger of the verification");
  return std::optional(
      Stretch{.first_sector = static_cast<uint64_t>(begin) / kEntryBytes,
              .end_sector = (static_cast<uint64_t>(end) + kEntryBytes - 1) / kEntryBytes});
}

}  // namespace blktape
