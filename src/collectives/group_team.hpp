// A group of ranks that meet, wherever they are: those of a node in shared memory, and the first of each node's for
// them with the first of each other node's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "base/group_places.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "collectives/call_head.hpp"
#include "collectives/letter_walk.hpp"
#include "collectives/node_team.hpp"
#include "collectives/team_post.hpp"
#include "progress/waiter.hpp"
#include "trees/schedule.hpp"
#include "window/team.hpp"

namespace farsum {

// One member's view. One thread of a rank calls at a time. No call needs memory here, so that no member that has none
// leaves the others waiting; what a letter between nodes needs is the post's.
class GroupTeam : public Team {
 public:
  // `post` may be null for a rank that speaks for no node of several.
  GroupTeam(GroupPlaces places, std::uint32_t my_rank, TeamPost* post, Waiter& waiter);
  // Says where the members of this node meet, and what tells the teams of a job apart; called before anything else but
  // places().
  void begin(NodeTeamBlock& block, std::uint64_t key) noexcept;

  Status barrier(const char* doing) override;
  // `all` is as long as `mine` times the members, by rank of the group. Where nodes bring different lengths all members
  // fail.
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all, const char* doing);
  // Between nodes nobody waits but for what it is told, except that all meet now and then. Where the root's buffer has
  // another length than a node's, that node's members fail and the others do not.
  Status broadcast(std::span<std::byte> buffer, std::uint32_t root, const char* doing);

  // The caller's last use of the node's block; true for the last member here, who may give it back.
  bool depart() { return node_->depart(); }
  // The members on this node only.
  NodeTeam& node() { return *node_; }
  const GroupPlaces& places() const { return places_; }
  bool is_first_here() const { return places_.here.front() == my_rank_; }

  std::uint32_t size() const;

  std::uint64_t key() const { return key_; }
  std::span<const std::uint32_t> members_of(std::uint32_t node) const {
    return node == my_node_ ? std::span(places_.here) : std::span(places_.node(node, my_node_).members);
  }
  std::uint32_t node_of(std::uint32_t member) const;
  // On the first rank of each of several nodes: what it does for all to meet, and in an allgather; and of how many
  // members a letter of that list is at most.
  std::span<const trees::Step> meeting_list() const { return meeting_; }
  std::size_t most_members_of_a_letter() const;

  // The first members of the nodes alone call these, and all in the same order. They begin a round, in which each walks
  // lists; a node may be some rounds ahead of another. `other` is a call of another kind that one has made instead:
  // then no round begins.
  Status begin_round(OtherCall& other, const char* doing);
  Status walk_on(std::span<const trees::Step> steps, LetterContent& content, const char* doing);
  // No node has ended the lists of the last round before all had begun theirs, as all nodes know.
  void note_all_met() { rounds_ahead_ = 0; }
  // Those of earlier rounds that this node has not taken.
  void drop_letters_of(std::uint32_t node);

 private:
  class Meeting;
  class GatheredPiece;
  class BroadcastPiece;

  // What the first rank of a node tells the others.
  struct Telling {
    std::size_t bytes;
    FunctionRef<void(std::size_t done, std::span<std::byte> packed)> fill;
    FunctionRef<void(std::size_t done, std::span<const std::byte> packed)> take;
  };

  // Of a node other than this one.
  Rank first_of(std::uint32_t node) const { return places_.node(node, my_node_).first; }
  void make_lists();
  Status walk_together(std::span<const trees::Step> steps, LetterContent& content, const char* doing);
  Status meet_between_nodes(OtherCall& other, const char* doing);
  Status give_up(Status why);
  Status tell_here(const OtherCall& known, std::size_t bytes, const Telling& telling, const char* doing);
  Status broadcast_between_nodes(std::span<std::byte> buffer, std::uint32_t root, OtherCall& other, const char* doing);
  Status gather_piece(std::span<const std::byte> piece, std::span<std::byte> all, std::size_t stride,
                      const char* doing);

  GroupPlaces places_;
  std::uint32_t my_rank_;
  std::uint32_t my_node_;
  std::uint64_t key_ = 0;
  TeamPost* post_;
  Waiter& waiter_;
  std::optional<NodeTeam> node_;
  // Of what a member brings to an allgather between nodes, so much goes in a round.
  std::size_t piece_bytes_ = 0;
  // On the first rank of each of several nodes: what it does for all to meet, and for the last broadcast; room for a
  // letter; rounds between nodes so far, and since all have last met.
  std::vector<trees::Step> meeting_;
  std::vector<trees::Step> broadcast_;
  std::unique_ptr<std::byte[]> letter_;
  std::uint64_t round_ = 0;
  std::size_t rounds_ahead_ = 0;
};

}  // namespace farsum
