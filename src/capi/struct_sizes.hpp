// Public structures begin with their size as the caller knows them. One that has grown since is taken at each size that
// it ever had: what a caller does not know of is zero where it is read, and not written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "farsum_embed.h"

namespace farsum {

// How long it was when first published.
template <class Struct>
inline constexpr std::size_t first_bytes = sizeof(Struct);
template <>
inline constexpr std::size_t first_bytes<farsum_init_options> = offsetof(farsum_init_options, many_threads);
template <>
inline constexpr std::size_t first_bytes<farsum_window_options> = offsetof(farsum_window_options, read_age_ms);
template <>
inline constexpr std::size_t first_bytes<farsum_statistics> = offsetof(farsum_statistics, reads_answered);

template <class Struct>
bool has_known_size(const Struct& given) {
  return given.struct_bytes >= first_bytes<Struct>;
}

// The structure as this build knows it. Only where its size is known.
template <class Struct>
Struct completed(const Struct& given) {
  Struct whole{};
  std::memcpy(&whole, &given, std::min(given.struct_bytes, sizeof whole));
  return whole;
}

// Copies the other way; the caller's size stays.
template <class Struct>
void hand_over(const Struct& whole, Struct& caller) {
  const std::size_t bytes = caller.struct_bytes;
  std::memcpy(&caller, &whole, std::min(bytes, sizeof whole));
  caller.struct_bytes = bytes;
}

}  // namespace farsum
