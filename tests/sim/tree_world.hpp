// A group whose nodes have one rank each, over a simulated network: real teams, letters and desks, which make one
// collective after the other while letters are late, nodes stand still, links are cut and healed, and maybe a rank
// dies. One seed is one course of events. What goes wrong is a sentence, so that a test can ask for it, too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "transport/sim/sim_world.hpp"
#include "tree_faults.hpp"

namespace farsum {

struct TreeCall {
  enum class Kind : std::uint8_t { barrier, broadcast, allgather, allreduce, reduce, reduce_scatter_block };
  static constexpr std::uint64_t kinds = 6;

  Kind kind = Kind::barrier;
  std::uint32_t root = 0;  // of a broadcast and a reduce
  std::size_t count = 0;   // of doubles; of a barrier 0
};

class TreeRank;

class TreeWorld {
 public:
  explicit TreeWorld(std::uint64_t seed, TreeFault fault = TreeFault::none);
  ~TreeWorld();
  TreeWorld(const TreeWorld&) = delete;
  TreeWorld& operator=(const TreeWorld&) = delete;

  // Runs all calls of all ranks and returns what was wrong first; empty where all is as it should be.
  std::string run();

  // ---- what happened
  bool was_put_in() const { return sabotage_.was_put_in; }
  std::uint64_t told_of_death() const { return told_of_death_; }  // so many ranks
  std::uint64_t held_back() const;                                // letters, by a link that was cut
  std::uint64_t without_room() const;                             // so often a road had none for a letter
  std::uint64_t without_slot() const;                             // so often the neighbour had none
  std::uint64_t trace_hash() const { return world_.trace_hash(); }

 private:
  friend class TreeRank;
  using BoxKey = std::tuple<Rank, Rank, std::uint64_t>;  // to, from, round

  void draw_calls();
  void draw_sabotage(TreeFault fault);
  void draw_disturbances();
  void cut(Rank one, Rank other, SimTime after_ns, SimTime for_ns);
  void judge_end();
  void complain(const std::string& what);

  double value_of(std::uint64_t call, Rank rank, std::size_t i) const;
  double sum_of(std::uint64_t call, std::size_t i) const;

  std::uint64_t seed_;
  SimRandom random_;
  SimWorld world_;
  std::vector<TreeCall> calls_;
  std::vector<Rank> entered_;  // by call: so many ranks
  TreeSabotage sabotage_;
  bool has_death_ = false;
  Rank victim_ = 0;
  std::uint64_t last_call_of_victim_ = 0;
  std::uint64_t told_of_death_ = 0;
  std::map<BoxKey, std::vector<std::byte>> boxes_;  // what is too long for a letter
  std::vector<std::unique_ptr<TreeRank>> ranks_;
  std::string complaint_;
};

}  // namespace farsum
