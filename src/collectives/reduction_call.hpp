// A reduction of a group that a rank asks for, what it reduces with, and what follows from both. Owner: collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/settings.hpp"
#include "collectives/fold.hpp"
#include "collectives/peer_memory.hpp"
#include "collectives/team_post.hpp"
#include "cost/tree_rule.hpp"
#include "lockfree/said_of_call.hpp"
#include "ops/kernels.hpp"

namespace farsum {

struct GroupReduction {
  enum class Kind : std::uint8_t { allreduce, reduce, reduce_scatter_block };

  Kind kind = Kind::allreduce;
  ops::ElementType type{};  // with op a pair that can be folded
  ops::Operator op{};
  std::uint32_t root = 0;  // of a reduce; else 0
  std::uint64_t count = 0;
  // `count` elements; of a reduce-scatter so many for each rank, by rank.
  const std::byte* mine = nullptr;
  // `count` elements; null where this rank gets none. At the start of `mine`, or apart from it.
  std::byte* result = nullptr;
};

// What a rank reduces with.
struct ReductionMeans {
  const ops::KernelSet& kernels;
  ReduceOrder order = ReduceOrder::nodes;           // ranks that take different ones are told as of different operators
  PeerMemory* peers = nullptr;                      // null: no other rank's memory is copied
  std::size_t letter_bytes = TeamPost::most_bytes;  // of a letter between nodes at most: the same on all ranks
  std::uint32_t degree = 0;  // of the tree between nodes, 0: by their number alone; the same on all ranks
  // How often a reduce over nodes halves vector and nodes first, as far as it can; the same on all ranks.
  std::uint32_t splits = 0;
  // By what pieces behind the first, of long vectors that all get, take a tree of their own, unless the order is that
  // of ranks; null: they do not. The same on all ranks, and read while this is handed over.
  const cost::TreeRule* pieces = nullptr;
};

struct ReductionCall {
  const GroupReduction& asked;
  Fold fold;
  SaidOfCall said;
  const char* doing;
  bool gets_result;
  std::size_t result_bytes;
  // Of what is reduced, in which what this rank gets begins there.
  std::size_t bytes;
  std::size_t own_from;

  // What of the answer this rank gets, of which `piece` has those bytes that begin `done` bytes into it.
  void keep(const std::byte* piece, std::size_t done, std::size_t piece_bytes) const;
};

// Either may be null where there are no bytes.
inline void copy_reduced(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

inline void ReductionCall::keep(const std::byte* piece, std::size_t done, std::size_t piece_bytes) const {
  if (!gets_result) return;
  const std::size_t from = std::max(done, own_from);
  const std::size_t until = std::min(done + piece_bytes, own_from + result_bytes);
  if (from < until) copy_reduced(asked.result + (from - own_from), piece + (from - done), until - from);
}

}  // namespace farsum
