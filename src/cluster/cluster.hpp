// Runs one collective after the other on a simulated cluster, in virtual time. What each node does is what the library
// would: `trees::advance` walks its real list. Memory is per node and letter; the same machine, lists and seed give the
// same times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/lists.hpp"
#include "cluster/machine.hpp"
#include "trees/walk.hpp"

namespace farsum::cluster {

// Rank 0 of the root's node, which is node 0.
struct Call {
  std::int64_t released_ns;  // the end of the call before, for all at once
  std::int64_t start_ns;     // its own start: when it had its processor
  std::int64_t end_ns;       // its own end: released and with its processor
};

class Cluster final : private trees::Carrier {
 public:
  // `lists` outlives it; node 0 is their root.
  Cluster(const Machine& machine, const Lists& lists);

  Call call();
  // Walked so far: calls that no daemon can disturb are not walked again where all such calls are equal.
  std::uint64_t letters() const { return letters_; }

 private:
  struct Node {
    std::size_t at = 0;
    std::int64_t now_ns = -1;  // below 0: its ranks have not entered
  };

  void make_processors();
  void run(std::int64_t released_ns);
  std::int64_t enter(std::uint32_t node, std::int64_t released_ns);
  void walk(std::uint32_t node);
  bool take(const trees::Step& step) override;
  bool send(const trees::Step& step) override;

  std::int64_t carry(std::uint32_t node, std::int64_t start, std::int64_t length_ns);
  std::int64_t draw(const Range& range, std::uint64_t number) const;
  std::int64_t first_disturbance_after(std::int64_t t);
  Processor& of_rank(std::uint32_t node, std::uint32_t rank) { return ranks_[node * machine_.ranks_a_node + rank]; }

  Machine machine_;
  const Lists& lists_;
  std::vector<std::int64_t> cost_ns_;     // by step: of the letter that it takes
  std::vector<std::int64_t> arrival_ns_;  // by step: of the letter that it takes; below 0: has not been sent
  std::vector<Node> nodes_;
  std::vector<Processor> ranks_;     // by node and rank
  std::vector<Processor> carriers_;  // by node, where carriers have processors of their own
  std::vector<std::uint32_t> ready_;

  std::uint32_t here_ = 0;  // whose list is walked
  std::uint64_t calls_ = 0;
  std::uint64_t letters_ = 0;
  std::int64_t released_ns_ = 0;    // all ranks, the last time
  std::int64_t last_entry_ns_ = 0;  // of a rank into the closing, this call
  std::int64_t root_done_ns_ = 0;

  bool can_repeat_;                  // calls that nothing disturbs are equal
  std::int64_t quiet_call_ns_ = -1;  // how long such a call takes; below 0: none has been seen
  std::int64_t quiet_until_ns_ = 0;
};

}  // namespace farsum::cluster
