// A long collective call of one node's ranks without a place in shared memory: each folds its share of the vector from
// where the others have it, and writes it to where it goes, or moves its share of one that goes to all, by copies of
// the kernel's. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collectives/fold.hpp"
#include "collectives/peer_memory.hpp"

namespace farsum {

// One member's part of it. One thread calls at a time.
class CopiedShares {
 public:
  // What a member tells the others before they begin.
  struct Told {
    std::uint64_t mine;
    std::uint64_t result;  // 0: it gets none
    std::uint32_t place;   // on the node
    std::uint32_t can;     // whether it reaches the others, and the kernel can copy what it has
  };
  struct Missed {
    std::uint32_t member;   // whose memory it was, or should have come to or from
    std::uint64_t address;  // there
    PeerCopy how;
  };
  // Whoever has the share [from, from + bytes) of all vectors writes it `to` bytes behind the start of results.
  struct Share {
    std::size_t from;
    std::size_t bytes;
    std::size_t to;
  };

  // Shorter vectors are sooner copied twice than by a system call. Of more ranks each would make too many of them.
  static constexpr std::size_t least_bytes = 65536;
  static constexpr std::uint32_t most_members = 8;
  static bool is_for(std::uint32_t members, std::size_t bytes) {
    return members <= most_members && bytes >= least_bytes;
  }

  // `peers` may be null: then nobody can.
  explicit CopiedShares(PeerMemory* peers) : peers_(peers) {}

  // The first call allocates what is folded in; where there is no memory for it this member cannot. Until end() this
  // process's memory stays on its pages.
  Told tell(std::span<const std::byte> mine, std::span<std::byte> result);
  void end();
  // Where all can, and all have begun the call: the share of member `me`, which is this one, to its own result and to
  // those of the others that get any, if it is for them. Nobody goes on with what it has or gets before all have
  // returned from here; what was missed leaves results torn.
  std::optional<Missed> fold(const Fold& fold, const Share& share, std::uint32_t me, std::span<const Told> members,
                             bool is_for_others);
  // What this member has of it comes to the results of all others.
  std::optional<Missed> give(const Share& share, std::uint32_t me, std::span<const Told> members);
  // Where that member has folded its share, it comes to the result of this one.
  std::optional<Missed> take(const Share& share, std::uint32_t member, std::uint32_t me, std::span<const Told> members);

 private:
  struct Tile {
    std::size_t from;
    std::size_t bytes;
    std::byte* into;
  };
  // Two of them stay in the processor's own cache, and a system call for each costs little beside it.
  static constexpr std::size_t tile_bytes = 65536;

  bool can_be_copied(std::span<const std::byte> mine, std::span<std::byte> result);
  std::optional<Missed> fold_tile(const Fold& fold, const Tile& tile, std::uint32_t me, std::span<const Told> members);
  std::optional<Missed> write_tile(std::span<const std::byte> sum, std::size_t to, std::uint32_t me,
                                   std::span<const Told> members);

  Missed missed_at(std::uint32_t member, std::uint64_t address, PeerCopy how);

  PeerMemory* peers_;
  bool is_held_ = false;
  bool is_refused_ = false;             // by the kernel, once it was
  std::unique_ptr<std::byte[]> tiles_;  // what is folded, where it cannot be in the result, and what is read
};

}  // namespace farsum
