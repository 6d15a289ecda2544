#pragma once

#include <concepts>
#include <limits>

namespace blktape {

// Sums and differences of numbers read from a file: a result that does not fit becomes the type's
// minimum or maximum.
template <std::integral T>
constexpr T SaturatingAdd(T a, T b) {
  T sum{};
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < T{} ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <std::integral T>
constexpr T SaturatingSubtract(T a, T b) {
  T difference{};
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < T{} ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
}

}  // namespace blktape
