// A place in which calls of a group are under way, one after the other: who comes to a call and goes from it, and who
// folds which slice of what its members bring.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "os/futex.hpp"

namespace farsum {

// The calls of a place have numbers from 0. A word that others act upon is tagged with number + 1 of the call that it
// is of. Who may call: members, each once for a call that is said to be so; any thread of theirs the rest. A call:
//
//   is_open(), come() by each member; offer() by the last to come
//   take_slice() and, when the slice is folded, end_slice(), by any; end() by whoever ended the last, or where there
//   are none
//   has_ended(), go() by each member; open_next() by the last to go
//
// Zeroed memory is a place without calls. A crash: the call does not end.
template <class Policy>
class BasicCallPlace {
 public:
  struct Slice {
    std::uint64_t call;
    std::uint64_t index;
  };
  static constexpr unsigned slice_bits = 24;

  // Acquire: the place is as the last to go from the call before has left it; pairs with the release in open_next().
  bool is_open(std::uint64_t call) const { return opened_.load(std::memory_order_acquire) == call; }
  // True for the last of so many. Release: what the member brings is there for the last; acquire: that one sees all.
  bool come(std::uint32_t members) { return come_.fetch_add(1, std::memory_order_acq_rel) + 1 == members; }

  void offer(std::uint64_t call, std::uint64_t slices) {
    // Relaxed: published by `left_`. Nobody has a slice of an older call, as that has ended.
    unfolded_.store(slices, std::memory_order_relaxed);
    // Release pairs with the acquire in take_slice().
    left_.store((call + 1) << slice_bits | slices, std::memory_order_release);
  }
  // Of the call whose slices were offered last, whichever it is. Who has taken a slice keeps its call from ending, and
  // so reads nothing that is written anew meanwhile.
  std::optional<Slice> take_slice() {
    return take_if([](std::uint64_t) { return true; });
  }
  std::optional<Slice> take_slice(std::uint64_t of_call) {
    return take_if([of_call](std::uint64_t call) { return call == of_call; });
  }
  // True where all are folded. Release: the slice is there for who ends the call; acquire: that one sees all.
  bool end_slice() { return unfolded_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  void end(std::uint64_t call) { ended_.store(call + 1, std::memory_order_release); }
  // Acquire pairs with the release in end().
  bool has_ended(std::uint64_t call) const { return ended_.load(std::memory_order_acquire) == call + 1; }

  // True for the last. Release: the member has read all that it needs; acquire: the last comes after the others.
  bool go(std::uint32_t members) { return gone_.fetch_add(1, std::memory_order_acq_rel) + 1 == members; }
  void open_next() {
    // Relaxed: published by `opened_`, behind which alone others come.
    come_.store(0, std::memory_order_relaxed);
    gone_.store(0, std::memory_order_relaxed);
    // Relaxed load: who has opened it before has come to this call since.
    opened_.store(opened_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  // One word says which call it is and how many slices are left: one that says so of an older call has none left.
  template <class Suits>
  std::optional<Slice> take_if(const Suits& suits) {
    constexpr std::uint64_t of_slice = (std::uint64_t{1} << slice_bits) - 1;
    std::uint64_t seen = left_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint64_t left = seen & of_slice;
      if (left == 0 || !suits((seen >> slice_bits) - 1)) return std::nullopt;
      if (left_.compare_exchange_strong(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        return Slice{(seen >> slice_bits) - 1, left - 1};
    }
  }

  // Written by who comes and goes.
  alignas(cache_line_bytes) typename Policy::template Atomic<std::uint64_t> opened_{};
  typename Policy::template Atomic<std::uint32_t> come_{};
  typename Policy::template Atomic<std::uint32_t> gone_{};
  typename Policy::template Atomic<std::uint64_t> ended_{};
  // Written by who folds: the tag, and below it how many slices nobody has taken; how many are not folded.
  alignas(cache_line_bytes) typename Policy::template Atomic<std::uint64_t> left_{};
  typename Policy::template Atomic<std::uint64_t> unfolded_{};
};

using CallPlace = BasicCallPlace<SystemAtomics>;

}  // namespace farsum
