#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/profile.h"
#include "analysis/profile_batch.h"

namespace blktape {

// The figures of a profile that do not depend on the order of the records: counts, sizes,
// latencies, alignment, rows by device and process. So each thread has counts of its own, which are
// added up at the end. Memory: at most some 45 MiB for a trace that hits every bound, typically 2.
// One thread at a time.
class ProfileCounts {
 public:
  ProfileCounts();
  ~ProfileCounts();
  ProfileCounts(const ProfileCounts&) = delete;
  ProfileCounts& operator=(const ProfileCounts&) = delete;

  // Takes times that are not plausible (analysis/plausible.h) out of `columns`, and counts them.
  void RemoveImplausible(RecordColumns* columns);
  // Fills batch->kinds and batch->odd_sizes. Sizes that are odd are not counted.
  void Add(ProfileBatch* batch);
  void Merge(const ProfileCounts& other);
  // Call once, last: sets all in `profile` that comes of these counts, but for the names of rows.
  // `sizes_only_odd` of reads, writes, discards in `profile` are added to.
  void MoveInto(Profile* profile);

  // Rows by index in the header (the last lumps the rest) and by process id, `seen` where one is.
  static constexpr size_t kMaxDevices = 512;
  static constexpr size_t kMaxProcesses = 65'536;
  std::vector<Profile::DeviceRow>& devices() { return devices_; }
  std::vector<Profile::ProcessRow>& processes() { return processes_; }
  const Profile::ProcessRow& no_process() const { return no_process_; }

 private:
  // By class of wait, so that "foreground" and "all" are sums.
  struct OpLatencies {
    Profile::Latencies waited, background;
  };
  struct Scratch;

  // A part of a batch.
  struct Rows {
    size_t begin = 0;
    size_t end = 0;
    bool one_device = false;  // all records of the batch are of the same
  };
  void AddKinds(const Rows& rows, ProfileBatch* batch);
  void AddSums(const ProfileBatch& batch, const Rows& rows);
  void AddProcesses(const RecordColumns& columns, const Rows& rows);
  void AddSizes(const Rows& rows, ProfileBatch* batch);
  void AddAddresses(const ProfileBatch& batch, const Rows& rows);
  void AddTimes(const ProfileBatch& batch, const Rows& rows);
  void AddLateness(const RecordColumns& columns, size_t index);
  Profile::DeviceRow& Device(uint32_t index);

  // Those that MoveInto copies are summed in a profile.
  Profile sums_;
  std::array<OpLatencies, kOpCount> latencies_;
  std::vector<Profile::DeviceRow> devices_;
  std::vector<Profile::ProcessRow> processes_;
  Profile::ProcessRow no_process_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace blktape
