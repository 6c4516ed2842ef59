// What of this process's memory is locked into RAM.
#pragma once

#include <cstdint>

namespace farsum::os {

// Bytes that mlock and mlockall keep in RAM; 0 where none, or where /proc cannot be read.
[[nodiscard]] std::uint64_t locked_bytes();

}  // namespace farsum::os
