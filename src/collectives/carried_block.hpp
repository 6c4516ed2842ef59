// Where the ranks of one node carry the collectives of a group that nobody waits for: places in the node segment, in
// each of which one call is under way. Owner: collectives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "collectives/carried_call.hpp"
#include "lockfree/call_place.hpp"
#include "os/event_count.hpp"

namespace farsum {

// A call under way. Its number, from 0, says in which place: modulo most_under_way. A word that is tagged holds
// tag_of() of the call that it is about, so that nobody takes it for another call's.
struct alignas(2 * cache_line_bytes) CarriedPlace {
  static constexpr std::uint64_t most_under_way = 4;
  // Which call of the place it is.
  static std::uint64_t turn_of(std::uint64_t number) { return number / most_under_way; }
  static std::uint64_t tag_of(std::uint64_t number) { return turn_of(number) + 1; }

  CallPlace calls;
  // Not 0: some rank wants the place for a later call.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> wanted;
  // Written by the last to come before it offers slices, and over several nodes by who walks before the call ends.
  CarriedFinding found;
  // Written by who folds: who could not, + 1.
  alignas(cache_line_bytes) std::atomic<std::uint32_t> lacking;
  // Tagged: what this node has is whole, and may go to others.
  std::atomic<std::uint64_t> is_folded;
  alignas(2 * cache_line_bytes) EventCount events;
};

// Of a group's team: by what letters between nodes of calls in that place are told apart from all others of the job.
constexpr std::uint64_t carried_team(std::uint64_t team, std::uint64_t place) {
  // As windows' numbers are low, and the teams' keys are hashes or a single bit.
  return (team ^ (0x9e3779b97f4a7c15 * (place + 1))) | std::uint64_t{1} << 63;
}

// What has broken the group for this node's ranks, who have no further use of it.
class alignas(2 * cache_line_bytes) CarriedBreak {
 public:
  // By who walks, once; before it ends the call in which it was found. Release pairs with the acquire below, as
  // whoever finds the call ended finds this.
  void set(const CarriedFinding& found) {
    word_.store(std::uint64_t{static_cast<std::uint32_t>(found.what)} << 32 | found.rank, std::memory_order_release);
  }
  std::optional<CarriedFinding> found() const {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    if (word == 0) return std::nullopt;
    return CarriedFinding{static_cast<std::uint32_t>(word), static_cast<CarriedFinding::What>(word >> 32), {}, {}};
  }

 private:
  std::atomic<std::uint64_t> word_;
};

// What one rank says and brings; written by it before it comes.
struct alignas(cache_line_bytes) CarriedPart {
  SaidOfCall said;
  std::uint64_t data_at;  // offset in the segment; 0: it lies in the rank's slot
  // Of the first member here, where something is long: the extent that all fetch from, and where in the segment the
  // answer lies.
  std::uint64_t extent_at;
  std::uint64_t extent_bytes;
  std::uint64_t answer_at;
};

// At the start of that extent.
struct alignas(cache_line_bytes) CarriedExtentHead {
  std::atomic<std::uint32_t> fetched;  // by so many ranks; the last gives the extent back
};

// It lies by itself in the node segment; zeroed memory is a valid block. What has broken the group; places; parts of
// each place; answers; slots.
struct CarriedBlock {
  static std::size_t slot_bytes(std::uint32_t ranks) {
    return std::clamp<std::size_t>(slots_bytes / ranks / cache_line_bytes * cache_line_bytes, 256, 1024);
  }
  static constexpr std::size_t answer_bytes = 4096;
  static constexpr std::size_t break_at = 0;
  static constexpr std::size_t places_at = break_at + sizeof(CarriedBreak);
  static constexpr std::size_t parts_at = places_at + CarriedPlace::most_under_way * sizeof(CarriedPlace);
  static std::size_t answers_at(std::uint32_t ranks) {
    return parts_at + CarriedPlace::most_under_way * ranks * sizeof(CarriedPart);
  }
  static std::size_t slots_at(std::uint32_t ranks) {
    return answers_at(ranks) + CarriedPlace::most_under_way * answer_bytes;
  }
  static std::size_t footprint(std::uint32_t ranks) {
    return slots_at(ranks) + CarriedPlace::most_under_way * ranks * slot_bytes(ranks);
  }

 private:
  static constexpr std::size_t slots_bytes = 16 << 10;
};

}  // namespace farsum
