#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace blktape {

// Names of processes and their ids, dense from 0. Bounded: beyond kMaxNames every new name shares
// the last id, called "(other)"; a name is cut at kMaxNameBytes.
class ProcessDictionary {
 public:
  static constexpr uint32_t kMaxNames = 65'536;
  static constexpr size_t kMaxNameBytes = 64;

  uint32_t IdOf(std::string_view name);
  // By id.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<std::string> names_;
};

}  // namespace blktape
