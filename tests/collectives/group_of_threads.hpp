// A group of ranks for tests: threads over blocks of memory, one a node, whose first ranks tell each other through
// mailboxes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/reductions.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {

using Nodes = std::vector<std::uint32_t>;  // by rank, the node it is on

// Has no processor to look on, or so it says.
class CrowdedWaiter : public SleepingWaiter {
 public:
  bool is_crowded() const override { return true; }
};

// Goes to its first wait only when it is let go.
class HeldWaiter : public CrowdedWaiter {
 public:
  void let_go() {
    is_free_ = true;
    is_free_.notify_all();
  }
  Status wait(EventCount& where, FunctionRef<bool()> done, const char* doing) override {
    is_free_.wait(false);
    return CrowdedWaiter::wait(where, done, doing);
  }

 private:
  std::atomic<bool> is_free_ = false;
};

struct Member {
  GroupTeam& team;
  GroupReductions& reductions;
  std::uint32_t rank;

  Status run(const GroupReduction& reduction) { return reductions.run(reduction, "reduction"); }
};

class GroupOfThreads {
 public:
  // What the ranks compute with, in which order each folds, whose memory it may copy, how long their letters are,
  // of which degree the tree between nodes is, and by what further pieces of a long vector take theirs.
  struct Means {
    const ops::KernelSet& kernels = ops::kernels_for_this_machine();
    std::function<ReduceOrder(std::uint32_t rank)> order = [](std::uint32_t) { return ReduceOrder::nodes; };
    std::function<PeerMemory*(std::uint32_t rank)> peers = [](std::uint32_t) { return nullptr; };
    std::function<Waiter*(std::uint32_t rank)> waiter = [](std::uint32_t) { return nullptr; };  // null: a usual one
    std::size_t letter_bytes = TeamPost::most_bytes;
    std::uint32_t degree = 0;
    const cost::TreeRule* pieces = nullptr;
    std::uint32_t splits = 0;
  };

  explicit GroupOfThreads(Nodes node_of, bool is_crowded = false)
      : GroupOfThreads(std::move(node_of), is_crowded, {}) {}
  GroupOfThreads(Nodes node_of, bool is_crowded, Means means)
      : node_of_(std::move(node_of)), is_crowded_(is_crowded), means_(std::move(means)) {
    for (const std::uint32_t node : node_of_) {
      const auto members = static_cast<std::uint32_t>(std::count(node_of_.begin(), node_of_.end(), node));
      blocks_[node].resize(GroupBlock::footprint(members) / 8 + 32);
    }
  }
  std::size_t letters() const { return boxes_.sent(); }
  std::size_t letters_of(std::uint32_t rank) const { return boxes_.sent_by(rank); }
  int most_waiting_of_a_sender() const { return boxes_.most_waiting_of_a_sender(); }
  // From now on nodes do not reach each other.
  void cut() { boxes_.cut(); }
  // The first rank waits as it is told.
  void run(const std::function<void(Member)>& body, Waiter* of_first = nullptr) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < node_of_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        SleepingWaiter looking;
        CrowdedWaiter crowded;
        Waiter& own = is_crowded_ ? crowded : looking;
        Waiter* const given = rank == 0 && of_first != nullptr ? of_first : means_.waiter(rank);
        be(rank, given != nullptr ? *given : own, body);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // The second rank and the first, of two on one node.
  template <class OfWaiter>
  void be_one_after_the_other(const std::function<void(Member, Member)>& body) {
    OfWaiter waiter;
    be(1, waiter, [&](Member second) { be(0, waiter, [&](Member first) { body(second, first); }); });
  }

 private:
  void be(std::uint32_t rank, Waiter& waiter, const std::function<void(Member)>& body) {
    const auto start = reinterpret_cast<std::uintptr_t>(blocks_.at(node_of_[rank]).data());
    auto* block = reinterpret_cast<std::byte*>(round_up(start, 2 * cache_line_bytes));
    Post post(boxes_, rank, waiter);
    GroupTeam team(places_of(node_of_, node_of_[rank]), rank, &post, waiter);
    const ReductionMeans means = {.kernels = means_.kernels,
                                  .order = means_.order(rank),
                                  .peers = means_.peers(rank),
                                  .letter_bytes = means_.letter_bytes,
                                  .degree = means_.degree,
                                  .splits = means_.splits,
                                  .pieces = means_.pieces};
    GroupReductions reductions(team, rank, means, waiter);
    team.begin(*reinterpret_cast<NodeTeamBlock*>(block), 7);
    reductions.begin(block);
    body({team, reductions, rank});
  }

  Nodes node_of_;
  bool is_crowded_;
  Means means_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> blocks_;
  Mailboxes boxes_;
};

// Says of whatever has not come that a rank is dead.
class DisappointedWaiter : public SleepingWaiter {
 public:
  Status wait(EventCount&, FunctionRef<bool()> done, const char*) override {
    return done() ? Status() : Status{Code::peer_failed, "a rank is dead"};
  }
};

// A rank's part in a broadcast whose bytes tell of the call and of their place.
inline void broadcast_and_compare(Member member, std::uint32_t root, std::uint64_t call, std::size_t bytes) {
  const auto at = [&](std::size_t i) { return static_cast<std::byte>(call * 31 + i * 7 + i / 256); };
  std::vector<std::byte> buffer(bytes);
  for (std::size_t i = 0; i < bytes && member.rank == root; ++i) buffer[i] = at(i);
  const Status status = member.reductions.broadcast(buffer, root, "broadcast");
  ASSERT_TRUE(status.is_ok()) << status.text();
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(buffer[i], at(i)) << "byte " << i << " of " << bytes;
}

}  // namespace farsum
