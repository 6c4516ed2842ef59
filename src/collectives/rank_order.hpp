// Brackets that ranks alone decide, wherever the ranks are: each two neighbours become one, then each two of these, and
// so on; what has no right neighbour goes up as it is. So a node folds those of its ranks that are neighbours, and
// nodes tell each other as many vectors as they have aligned blocks of ranks left. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "base/group_places.hpp"
#include "collectives/fold.hpp"
#include "trees/schedule.hpp"

namespace farsum {

// The ranks of an aligned block are first to first + 2^level, as far as there are so many; first is a multiple of
// 2^level.
struct AlignedBlock {
  std::uint32_t first;
  std::uint32_t level;
};

// Which aligned blocks of ranks there are. Two of one level that are the halves of one of the next become that.
class AlignedBlocks {
 public:
  explicit AlignedBlocks(std::uint32_t ranks) : level_at_(ranks, none) {}

  // One that overlaps none of those here. `join` is called for each two that become one, with their first ranks: what
  // belongs to the left one is that of both then.
  void add(AlignedBlock block, FunctionRef<void(std::uint32_t left, std::uint32_t right)> join);
  // A block that begins there, if any, is forgotten.
  void forget(std::uint32_t first);
  std::vector<AlignedBlock> all() const;
  std::size_t count() const { return count_; }

 private:
  static constexpr std::uint8_t none = 0xff;

  std::vector<std::uint8_t> level_at_;  // of the block that begins at a rank
  std::size_t count_ = 0;
};

// What the ranks of a group do to fold in this order, where they are on several nodes: worked out when the group is
// made, from places and list alone. Nothing allocates but the constructor and plan().
class RankOrder {
 public:
  // What belongs to `right` is folded into what belongs to `left`.
  struct Join {
    std::uint32_t left;
    std::uint32_t right;
  };
  struct Limits {
    std::size_t piece_bytes;   // of one rank's elements that go at once
    std::size_t letter_bytes;  // of elements in a letter
  };

  // Degree 0: all nodes tell each other. Else it is an allreduce to node 0 and back down a tree of that degree.
  RankOrder(const GroupPlaces& places, std::uint32_t degree, const Limits& limits);
  // By the rank that speaks for its node, before any of what is called with a step's number. `list` is this node's; of
  // a flat one all that is sent is sent first.
  void plan(const GroupPlaces& places, std::span<const trees::Step> list);

  // How much of each rank goes at once: the same on all nodes. 0 where a letter has no room for so many elements.
  std::size_t piece_bytes(std::size_t element_bytes) const;
  // Of ranks on this node, in this order.
  std::span<const Join> joins_here() const { return joins_here_; }

  // Of a piece of `bytes`: `part(rank)` has what the joins here have left.
  void begin(std::size_t bytes, FunctionRef<const std::byte*(std::uint32_t rank)> part);
  std::size_t letter_bytes(std::size_t step) const { return at_step_[step].rows.size() * bytes_; }
  void pack(std::size_t step, std::byte* letter) const;
  void take(std::size_t step, const std::byte* letter, const Fold& fold);
  // Of all ranks, behind the last step.
  const std::byte* answer() const { return row(0); }

 private:
  // Of the room.
  struct AtStep {
    std::vector<std::uint32_t> rows;  // of what the letter holds
    std::vector<Join> joins;          // of rows, once it is taken
  };

  class Members;

  void plan_here(const Members& members);
  void count_on_all_nodes(const Members& members);
  void plan_steps(const Members& members, std::span<const trees::Step> list);
  void number_rows();
  std::byte* row(std::size_t number) const { return room_.get() + number * stride_; }

  bool is_flat() const { return degree_ == 0; }
  std::uint32_t tree_degree() const { return is_flat() ? 2 : degree_; }

  std::uint32_t degree_;
  std::uint32_t ranks_ = 0;
  std::size_t most_in_a_letter_ = 0;  // blocks, of all letters of all nodes
  std::size_t most_rows_ = 0;         // that a node needs, of all nodes
  std::size_t letter_room_ = 0;
  std::size_t stride_ = 0;
  std::vector<Join> joins_here_;
  std::vector<std::uint32_t> blocks_here_;  // their first ranks
  std::vector<std::uint32_t> rows_here_;
  std::vector<AtStep> at_step_;
  // `stride_` bytes a row: one for each first rank of a block that is ever here, in their order, and rank 0's.
  std::unique_ptr<std::byte[]> room_;
  std::size_t bytes_ = 0;
};

}  // namespace farsum
