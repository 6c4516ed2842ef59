// What several targets read their input with, and stand on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "mute_transport.hpp"
#include "targets.hpp"

namespace farsum::fuzz {

// Takes values off the front of the input, zeros when it is used up.
class Reader {
 public:
  explicit Reader(Input input) : rest_(input) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_[0];
    rest_ = rest_.subspan(1);
    return value;
  }
  // Mostly small, sometimes anything: both ends of each range matter.
  std::uint64_t number() {
    const std::uint8_t size = byte();
    std::uint64_t value = 0;
    for (int i = 0; i < (size & 7); ++i) value = value << 8 | byte();
    return (size & 8) != 0 ? ~value : value;
  }
  // Those that are left, at most.
  std::vector<std::byte> bytes(std::size_t most) {
    std::vector<std::byte> taken(std::min(most, rest_.size()));
    if (!taken.empty()) std::memcpy(taken.data(), rest_.data(), taken.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  // Zeros behind those that are left.
  std::vector<std::byte> padded_bytes(std::size_t count) {
    std::vector<std::byte> taken = bytes(count);
    taken.resize(count);
    return taken;
  }

 private:
  Input rest_;
};

}  // namespace farsum::fuzz
