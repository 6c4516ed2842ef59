// What an owner remembers of memory that origins of other nodes have fetched to compute on (caller-computes over
// messages): a copy, to see later whether the memory is still as it was. A lease keeps nobody out and nobody waits for
// one. Pure bookkeeping in bounded memory; driven by the thread that serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "ops/element_type.hpp"
#include "ops/layout.hpp"

namespace farsum {

// Elements that have not been put back yet, a bit each.
class PendingElements {
 public:
  PendingElements() = default;
  // All of them.
  explicit PendingElements(std::uint64_t count);
  // The pending ones are those of `words`, which may come from elsewhere: bits beyond the last element are not counted.
  PendingElements(std::uint64_t count, std::span<const std::byte> words);

  std::uint64_t size() const { return size_; }
  std::uint64_t count() const { return pending_; }
  bool all() const { return pending_ == size_; }
  bool contains(std::uint64_t element) const { return (words_[element / 64] >> element % 64 & 1) != 0; }
  // How many of [first, first + count) are pending.
  std::uint64_t count_in(std::uint64_t first, std::uint64_t count) const;
  void finish(std::uint64_t element);
  std::span<const std::byte> words() const { return std::as_bytes(std::span(words_)); }
  static constexpr std::uint64_t bytes_for(std::uint64_t count) { return (count + 63) / 64 * 8; }

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t size_ = 0;
  std::uint64_t pending_ = 0;
};

struct Lease {
  WindowId window = 0;
  ops::ElementType type = ops::ElementType::byte;
  std::uint64_t offset = 0;  // base of the layout
  ops::Layout layout;
  std::vector<std::byte> copy;  // packed: of each pending element what the origin knows
  PendingElements pending;
  bool is_in_work = false;  // put back in part: not to be revoked now
};

class LeaseTable {
 public:
  struct Options {
    std::uint64_t pool_bytes = std::uint64_t{4} << 20;
    // Leases as old as that are revoked when the pool is wanted: their holders have stopped, or are very late.
    std::uint64_t revocable_after_ns = 10'000'000;
  };

  explicit LeaseTable(const Options& options) : options_(options) {}

  // Whether there is room for one of that size at that time; revokes what it may.
  bool make_room(std::uint64_t bytes, std::uint64_t now_ns);
  // Called after make_room. Returns what names the lease to its holder.
  std::uint64_t grant(Rank holder, Lease lease, std::uint64_t now_ns);
  // Null for what was never granted to that holder, has ended or was revoked.
  Lease* find(Rank holder, std::uint64_t id);
  void end(Rank holder, std::uint64_t id);
  void forget(Rank dead);

  std::size_t size() const { return leases_.size(); }
  std::uint64_t used_bytes() const { return used_bytes_; }
  // What a lease of so many bytes takes of the pool, its layout apart.
  static std::uint64_t cost_of(std::uint64_t bytes, std::uint64_t elements);

 private:
  struct Granted {
    Lease lease;
    std::uint64_t cost = 0;
    std::uint64_t at_ns = 0;
  };
  using Key = std::pair<std::uint64_t, Rank>;  // by id, so in the order of granting
  using Leases = std::map<Key, Granted>;

  Leases::iterator erase(Leases::iterator at);

  Options options_;
  Leases leases_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t last_id_ = 0;
};

}  // namespace farsum
