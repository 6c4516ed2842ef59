// Faults that are put into trees, one at a time, where a right node would do a right thing. The library has no such
// place: a post that lies stands before the real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "collectives/letters.hpp"
#include "collectives/team_post.hpp"

namespace farsum {

enum class TreeFault : std::uint8_t {
  none,
  child_counted_twice,  // a letter is combined a second time
  rounds_mixed,         // a letter of one round is taken for that of the next
  credit_lost,          // from a letter on, the node tells one neighbour of no letter that it has consumed
  credit_lost_once,     // the node forgets to say so in one letter: no fault, since the next tells of all
  slot_read_early,      // a letter is taken before its last element was written into the slot
  order_swapped,        // two children are taken for one another
};

// Where it is put in: at that node, in that call, in what it takes from `peer` (and `other_peer`).
struct TreeSabotage {
  TreeFault fault = TreeFault::none;
  std::uint64_t call = 0;
  Rank rank = 0, peer = 0, other_peer = 0;
  bool was_put_in = false;

  bool is(TreeFault which, Rank me) const { return fault == which && rank == me; }
};

// Between a node's team and its real post.
class LyingPost final : public TeamPost {
 public:
  LyingPost(TeamPost& real, TreeSabotage& sabotage, Rank me) : real_(real), sabotage_(sabotage), me_(me) {}

  void begin_call(std::uint64_t call) { call_ = call; }

  bool try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                std::size_t& sent) override {
    const bool has_left = real_.try_send(to, team, round, bytes, sent);
    refused += has_left ? 0 : 1;
    return has_left;
  }
  bool take(Rank from, std::uint64_t team, std::uint64_t round,
            FunctionRef<void(std::span<const std::byte>)> use) override {
    return real_.take(taken_for(from), team, round, [&](std::span<const std::byte> letter) {
      use(what_is_seen(from, letter));
      if (!is_at(TreeFault::child_counted_twice, from)) return;
      sabotage_.was_put_in = true;
      use(letter);
    });
  }
  bool has_failed() const override { return real_.has_failed(); }
  Status failure(const char* doing) const override { return real_.failure(doing); }

  std::uint64_t refused = 0;  // letters

 private:
  bool is_at(TreeFault fault, Rank from) const {
    return sabotage_.is(fault, me_) && call_ == sabotage_.call && from == sabotage_.peer;
  }
  Rank taken_for(Rank from) {
    if (!sabotage_.is(TreeFault::order_swapped, me_) || call_ != sabotage_.call) return from;
    sabotage_.was_put_in = true;
    if (from == sabotage_.peer) return sabotage_.other_peer;
    return from == sabotage_.other_peer ? sabotage_.peer : from;
  }
  std::span<const std::byte> what_is_seen(Rank from, std::span<const std::byte> letter) {
    if (is_at(TreeFault::rounds_mixed, from)) last_.assign(letter.begin(), letter.end());
    const bool is_next = sabotage_.is(TreeFault::rounds_mixed, me_) && call_ == sabotage_.call + 1;
    if (is_next && from == sabotage_.peer) {
      sabotage_.was_put_in = true;
      return last_;
    }
    if (is_at(TreeFault::slot_read_early, from)) {
      sabotage_.was_put_in = true;
      last_.assign(letter.begin(), letter.end());
      std::memset(last_.data() + last_.size() - sizeof(double), 0, sizeof(double));
      return last_;
    }
    return letter;
  }

  TeamPost& real_;
  TreeSabotage& sabotage_;
  Rank me_;
  std::uint64_t call_ = 0;
  std::vector<std::byte> last_;
};

}  // namespace farsum
