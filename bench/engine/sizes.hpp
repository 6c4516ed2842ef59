// Message sizes as text.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace bench {

inline std::string size_text(std::size_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

}  // namespace bench
