#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/io_record.h"

namespace blktape {

// Sorts rows by arrival, if they are at most `window` rows out of order. Rows with the same arrival
// or without a time keep their input order. Begins of I/Os wait here for their ends. Memory:
// `window` rows. One thread.
class RowSorter {
 public:
  using Leave = std::function<void(const IoRecord&, std::string_view process)>;

  RowSorter(size_t window, Leave leave) : window_(window), leave_(std::move(leave)) {}

  // False: the row was not added, because rows with a later arrival have already left.
  bool Add(const IoRecord& record, std::string_view process);
  // The same for a row whose End comes later. An older row with this id is closed without an end.
  bool Begin(uint64_t id, const IoRecord& record, std::string_view process);
  // False: no Begin with this id is waiting.
  bool End(uint64_t id, int64_t complete_ns, uint32_t error);
  // Releases all rows.
  void Flush();

  // The number of rows that came after a row with a later arrival.
  uint64_t sorted() const { return sorted_; }
  // The number of begins that left without an end.
  uint64_t unended() const { return unended_; }

 private:
  struct Place {
    int64_t arrival_ns;
    uint64_t number;  // counts up in the order added
    uint32_t slot;
    bool operator>(const Place& other) const {
      return std::tie(arrival_ns, number) > std::tie(other.arrival_ns, other.number);
    }
  };
  struct Slot {
    IoRecord record;
    std::string process;
    std::optional<uint64_t> id;  // set while the row waits for its end
  };

  std::optional<uint32_t> Put(const IoRecord& record, std::string_view process);
  void LeaveOldest();

  size_t window_;
  Leave leave_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> order_;
  std::unordered_map<uint64_t, uint32_t> open_;  // slot of each id
  uint64_t number_ = 0;
  int64_t newest_ns_ = std::numeric_limits<int64_t>::min();
  int64_t left_ns_ = std::numeric_limits<int64_t>::min();
  uint64_t sorted_ = 0;
  uint64_t unended_ = 0;
};

}  // namespace blktape
