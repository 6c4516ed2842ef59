// Where and how much of the node segment's file this process maps. The whole file has a place among the process's
// addresses, but nothing is mapped or reserved there before it is used: limits on address space and on locked memory
// count what is mapped. Owned by NodeSegment; it knows nothing of what lies in the file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "base/units.hpp"

namespace farsum {

// Any thread may call. What is mapped stays so until leave() or the end of the object.
class SegmentMap {
 public:
  // Huge pages can be mapped in it, and limits on locked memory are no smaller than a few of it.
  static constexpr std::uint64_t granule_bytes = huge_page_bytes;
  // What one growth maps where nothing limits the process.
  static constexpr std::uint64_t most_step_bytes = std::uint64_t{64} << 20;

  // Whether this process has a stretch of so many free addresses.
  static bool has_place(std::uint64_t bytes);
  // Finds a place for the file behind `fd`, which stays the caller's, and maps where it begins; no_memory where there
  // is none.
  static Result<std::unique_ptr<SegmentMap>> make(int fd, std::uint64_t bytes);
  ~SegmentMap();
  SegmentMap(const SegmentMap&) = delete;
  SegmentMap& operator=(const SegmentMap&) = delete;

  std::byte* begin() const { return begin_; }

  bool is_reached(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes == 0) return true;
    const std::uint64_t first = offset / granule_bytes;
    const std::uint64_t last = (offset + bytes - 1) / granule_bytes;
    for (std::uint64_t word = first / word_bits; word <= last / word_bits; ++word) {
      const std::uint64_t wanted = bits_of(word, first, last);
      // Acquire pairs with the release in map_run: the granules are mapped.
      if ((reached_[word].load(std::memory_order_acquire) & wanted) != wanted) return false;
    }
    return true;
  }
  // Maps what of [offset, offset + bytes) is not mapped yet. no_memory where the kernel refuses, or where something
  // else is mapped there; what could be mapped stays.
  Status reach(std::uint64_t offset, std::uint64_t bytes) {
    if (is_reached(offset, bytes)) [[likely]]
      return {};
    return map_missing(offset, bytes);
  }
  // Unmaps the granules that lie wholly inside. No thread of the process uses them, or is about to.
  void leave(std::uint64_t offset, std::uint64_t bytes);

  // From now on nothing is mapped that nobody uses: what is mapped is locked, and so made, at once.
  void map_exactly() { maps_exactly_.store(true, std::memory_order_relaxed); }
  bool maps_exactly() const { return maps_exactly_.load(std::memory_order_relaxed); }
  // Whether what is mapped counts against a limit, as far as the last growth has seen, or is made: then what is no
  // longer used is better left.
  bool is_limited() const { return maps_exactly() || is_limited_.load(std::memory_order_relaxed); }
  std::uint64_t mapped_bytes() const;

 private:
  static constexpr std::uint64_t word_bits = 64;
  // Granules in ascending order, the last not among them.
  struct Run {
    std::uint64_t first;
    std::uint64_t end;
    bool is_empty() const { return first >= end; }
  };

  SegmentMap(int fd, std::byte* begin, std::uint64_t bytes);
  // The bits of a word that stand for granules from `first` to `last`.
  static std::uint64_t bits_of(std::uint64_t word, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t from = first > word * word_bits ? first - word * word_bits : 0;
    const std::uint64_t to = last < (word + 1) * word_bits ? last - word * word_bits : word_bits - 1;
    return (~std::uint64_t{0} << from) & (~std::uint64_t{0} >> (word_bits - 1 - to));
  }
  bool has(std::uint64_t granule) const {
    // Relaxed: under the mutex, as all that follow.
    return (reached_[granule / word_bits].load(std::memory_order_relaxed) >> granule % word_bits & 1) != 0;
  }
  std::uint64_t bytes_of(Run run) const;
  std::uint64_t step_bytes();
  Run widened(Run missing, std::uint64_t step) const;
  Status map_missing(std::uint64_t offset, std::uint64_t bytes) FARSUM_EXCLUDES(mutex_);
  Status map_run(Run missing) FARSUM_REQUIRES(mutex_);
  int try_to_map(Run run) FARSUM_REQUIRES(mutex_);
  void unmap(Run run) FARSUM_REQUIRES(mutex_);
  Run next_run(Run within, bool mapped) const;

  const int fd_;
  std::byte* const begin_;
  const std::uint64_t bytes_;
  const std::uint64_t granules_;
  std::atomic<bool> maps_exactly_;                   // relaxed: who maps a little more at that moment does no harm
  std::atomic<bool> is_limited_{false};              // relaxed: a hint
  std::vector<std::atomic<std::uint64_t>> reached_;  // a bit for each granule; written under the mutex
  mutable ThreadMutex mutex_;
};

}  // namespace farsum
