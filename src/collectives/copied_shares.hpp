// A long reduction of one node's ranks without a place in shared memory: each folds its share of the vector from where
// the others have it, and writes it to where it goes, by copies of the kernel's. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/function_ref.hpp"
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
    std::uint32_t member;
    std::uint64_t address;
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

  // The first call allocates what is folded in; where there is no memory for it this member cannot.
  Told tell(std::span<const std::byte> mine, std::span<std::byte> result);
  // Where all can: returns what was missed, which leaves results torn. All have begun the call, and nobody goes on with
  // what it has or gets before all have returned from here.
  std::optional<Missed> run(const Fold& fold, const Share& share, std::span<const Told> members);

 private:
  // Two of them stay in the processor's own cache, and a system call for each costs little beside it.
  static constexpr std::size_t tile_bytes = 65536;

  std::byte* sum() const { return tiles_.get(); }
  std::byte* part() const { return tiles_.get() + tile_bytes; }
  bool can_be_copied(std::span<const std::byte> mine, std::span<std::byte> result);
  void fold_tile(const Fold& fold, std::size_t from, std::size_t bytes, std::span<const Told> members);
  void write_tile(std::size_t to, std::size_t bytes, std::span<const Told> members);
  void miss(std::uint32_t member, std::uint64_t address);

  PeerMemory* peers_;
  std::unique_ptr<std::byte[]> tiles_;
  std::optional<Missed> missed_;
};

}  // namespace farsum
