#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace blktape {

// A value of a JSON document (RFC 8259); members stay in the order in which they were set. Reading
// one that is of another kind, or is not there, throws Json::exception.
using Json = nlohmann::ordered_json;

constexpr int kOneLine = -1;

// The document as text, without a newline at its end: ASCII alone, all else escaped, what is no
// UTF-8 as U+FFFD. `indent`: spaces a level, or kOneLine.
std::string JsonText(const Json& json, int indent = 2);

// Of a text that is no document it is_discarded(). Does not throw.
Json ParseJson(std::string_view text);

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace blktape

// By json.cc, once for all.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
