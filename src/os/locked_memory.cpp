#include "os/locked_memory.hpp"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace farsum::os {

std::uint64_t locked_bytes() {
  static constexpr std::string_view key = "VmLck:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::uint64_t kilobytes = 0;
    if (digits != std::string::npos) std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes);
    return kilobytes << 10;
  }
  return 0;
}

}  // namespace farsum::os
