// Extents of the heap that were given back and wait, zeroed, for the next of their length: with their pages, which need
// not be faulted in again. In the node segment; the heap's lock guards it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/shm/heap_extent.hpp"

namespace farsum {

// Zeroed memory is a valid one, which keeps nothing before most_bytes is set. A crash leaves it as the heap.
class KeptExtents {
 public:
  struct Kept {
    HeapExtent extent;
    std::uint64_t resident = 0;  // bytes of it that have pages
  };

  // How many bytes of pages may wait where the node had so much room when the segment was made.
  static std::uint64_t most_bytes_beside(std::uint64_t room) { return std::min(most_kept_bytes, room / share_of_room); }
  // Says how many bytes of pages may wait here, before anybody else sees it.
  void set_most_bytes(std::uint64_t bytes) { most_bytes_ = bytes; }
  std::uint64_t most_bytes() const { return most_bytes_; }
  // Read without the lock, for what the node has left: relaxed.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::span<const Kept> all() const { return {kept_, count_}; }

  // Keeps an extent where there is room; else the oldest has to go first.
  bool add(const Kept& kept) {
    if (count_ == most || kept.resident > most_bytes_ || bytes() > most_bytes_ - kept.resident) return false;
    kept_[count_++] = kept;
    bytes_.fetch_add(kept.resident, std::memory_order_relaxed);
    return true;
  }
  // The latest of exactly so many bytes, at a multiple of `alignment`; its pages are the likeliest to be near.
  std::optional<Kept> take(std::uint64_t bytes, std::uint64_t alignment) {
    for (std::uint32_t i = count_; i-- != 0;) {
      if (kept_[i].extent.bytes == bytes && kept_[i].extent.offset % alignment == 0) return remove(i);
    }
    return std::nullopt;
  }
  std::optional<Kept> take_oldest() { return count_ == 0 ? std::nullopt : std::optional(remove(0)); }

 private:
  static constexpr std::uint32_t most = 64;
  static constexpr std::uint64_t most_kept_bytes = std::uint64_t{192} << 20;
  static constexpr std::uint64_t share_of_room = 32;

  Kept remove(std::uint32_t at) {
    const Kept taken = kept_[at];
    std::copy(kept_ + at + 1, kept_ + count_, kept_ + at);
    --count_;
    bytes_.fetch_sub(taken.resident, std::memory_order_relaxed);
    return taken;
  }

  std::atomic<std::uint64_t> bytes_;
  std::uint64_t most_bytes_;
  std::uint32_t count_;
  Kept kept_[most];
};

}  // namespace farsum
