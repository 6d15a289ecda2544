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
#include <vector>

#include "format/io_record.h"

namespace blktape {

// Brings rows into order of arrival, as far as they are at most `window` rows out of place; rows
// that arrived at one moment, or of which no time is known, keep the order they came in. Begins of
// I/Os wait here for their ends. Memory: `window` rows. One thread.
class RowSorter {
 public:
  using Leave = std::function<void(const IoRecord&, std::string_view process)>;

  RowSorter(size_t window, Leave leave) : window_(window), leave_(std::move(leave)) {}

  // False: rows that arrived after it have left already; it was not taken.
  bool Add(const IoRecord& record, std::string_view process);
  // The same of one whose End comes later. An older one of this id is closed without an end.
  bool Begin(uint64_t id, const IoRecord& record, std::string_view process);
  // False: no Begin of this id waits.
  bool End(uint64_t id, int64_t complete_ns, uint32_t error);
  // Lets all go.
  void Flush();

  // Rows that came later than one that arrived after them.
  uint64_t sorted() const { return sorted_; }
  // Begins that left without an end.
  uint64_t unended() const { return unended_; }

 private:
  struct Place {
    int64_t arrival_ns;
    uint64_t number;  // in the order added
    uint32_t slot;
    bool operator>(const Place& other) const {
      return std::tie(arrival_ns, number) > std::tie(other.arrival_ns, other.number);
    }
  };
  struct Slot {
    IoRecord record;
    std::string process;
    std::optional<uint64_t> id;  // while its end is awaited
  };

  std::optional<uint32_t> Put(const IoRecord& record, std::string_view process);
  void LeaveOldest();

  size_t window_;
  Leave leave_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> order_;
  std::unordered_map<uint64_t, uint32_t> open_;  // slots by id
  uint64_t number_ = 0;
  int64_t newest_ns_ = std::numeric_limits<int64_t>::min();
  int64_t left_ns_ = std::numeric_limits<int64_t>::min();
  uint64_t sorted_ = 0;
  uint64_t unended_ = 0;
};

}  // namespace blktape
