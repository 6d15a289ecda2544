#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace blktape {

// The names of Linux's kernel workers, threads that do in turn what others have left to them, begin
// with this.
inline constexpr std::string_view kKernelWorker = "kworker/";

// Process names and their ids, which count up from 0. Bounded: after kMaxNames every new name gets
// the same last id, "(other)"; names are truncated to kMaxNameBytes.
class ProcessDictionary {
 public:
  static constexpr uint32_t kMaxNames = 65'536;
  static constexpr size_t kMaxNameBytes = 64;

  uint32_t IdOf(std::string_view name);
  // The names, indexed by id.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<std::string> names_;
};

}  // namespace blktape
