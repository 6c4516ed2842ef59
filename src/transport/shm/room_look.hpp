// How long a look at the room that the system has for a node's memory is good for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace farsum {

// A look reads some ten files of /proc and of cgroups, which costs more than a small window, and the more the more
// ranks read them at once. It is repeated where what was promised since could matter beside the room that it found, or
// where others could have filled much of that room meanwhile. Any thread may call it: the numbers are hints, each
// relaxed, and threads that look at once do no harm.
class RoomLook {
 public:
  // How fast a node's memory is assumed to be filled, by all its processors together.
  static constexpr std::uint64_t most_filled_bytes_per_ns = 32;
  // However much was found: a limit may be lowered meanwhile, and large nodes fill their memory faster.
  static constexpr std::uint64_t longest_ns = 200'000'000;

  // `wanted` more bytes are to be promised, beyond the `promised` ones of all ranks.
  bool is_worth_repeating(std::uint64_t wanted, std::uint64_t promised, std::uint64_t now_ns) const {
    const std::uint64_t before = promised_.load(std::memory_order_relaxed);
    const std::uint64_t growth = promised + wanted > before ? promised + wanted - before : 0;
    if (wanted <= most_unlooked_bytes && growth <= most_unlooked_growth) return false;
    const std::uint64_t room = room_.load(std::memory_order_relaxed);
    if (std::max(wanted, growth) > room / least_share_of_room) return true;
    const std::uint64_t lasts_ns = std::min(room / 2 / most_filled_bytes_per_ns, longest_ns);
    return now_ns > at_ns_.load(std::memory_order_relaxed) + lasts_ns;
  }

  // What had been promised, and when it was, before the look began: what was promised meanwhile is growth.
  void has_found(std::uint64_t room, std::uint64_t promised, std::uint64_t now_ns) {
    promised_.store(promised, std::memory_order_relaxed);
    room_.store(room, std::memory_order_relaxed);
    at_ns_.store(now_ns, std::memory_order_relaxed);
  }

 private:
  // Extents up to this are not looked for room one by one, but once for so many bytes of them.
  static constexpr std::uint64_t most_unlooked_bytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t most_unlooked_growth = std::uint64_t{8} << 20;
  static constexpr std::uint64_t least_share_of_room = 128;

  std::atomic<std::uint64_t> promised_{0};  // to all ranks
  std::atomic<std::uint64_t> room_{0};
  std::atomic<std::uint64_t> at_ns_{0};
};

}  // namespace farsum
