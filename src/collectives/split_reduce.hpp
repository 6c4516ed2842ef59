// A piece of a vector that the nodes of a group reduce to node 0 by halves (paper 5, section 5.3): vector and nodes are
// halved as often as it is wanted, each group of nodes reduces what is its own in a tree, and node 0 gathers it. By the
// first rank of each node. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "collectives/fold.hpp"
#include "collectives/group_team.hpp"
#include "trees/schedule.hpp"

namespace farsum {

class SplitReduce {
 public:
  // So many splits, as far as the nodes allow, and trees of that degree. Pieces have `most_bytes` at most.
  SplitReduce(const GroupTeam& team, std::uint32_t splits, std::uint32_t degree, std::size_t most_bytes);

  // Of a piece that all have agreed on what `held` has here becomes, on node 0, that of all; elsewhere it is changed.
  struct Piece {
    const Fold& fold;
    std::span<std::byte> held;
    FunctionRef<Status()> begin_round;
    FunctionRef<Status(std::uint32_t node)> odd;  // has sent what is no part of it
  };
  // Nobody waits for all.
  Status run(GroupTeam& team, const Piece& piece, const char* doing);

  // In how many parts so many nodes reduce a vector; 1: they do not split it.
  static std::uint64_t parts(std::uint32_t nodes, std::uint32_t splits);

 private:
  class Halves;

  std::uint64_t parts_;
  std::vector<std::vector<trees::Step>> stages_;
  std::unique_ptr<std::byte[]> other_;  // what belongs to the left of what is held
};

}  // namespace farsum
