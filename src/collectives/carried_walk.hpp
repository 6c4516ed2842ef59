// What one node does between nodes in the calls of one place of a group's carried collectives: it goes through lists of
// steps as far as letters have come and may leave. It never waits and allocates nothing. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/group_places.hpp"
#include "base/settings.hpp"
#include "collectives/carried_call.hpp"
#include "collectives/fold.hpp"
#include "collectives/group_team.hpp"
#include "collectives/rank_order.hpp"
#include "collectives/team_post.hpp"
#include "ops/kernels.hpp"
#include "trees/schedule.hpp"
#include "trees/walk.hpp"

namespace farsum {

// The lists of a group of several nodes, made by the first rank of each.
class CarriedLists {
 public:
  // `degree` is that of the tree in which reductions go, or 0; `order` the one of all of them.
  CarriedLists(const GroupTeam& team, const ops::KernelSet& kernels, std::uint32_t degree, ReduceOrder order);

  const GroupPlaces& places() const { return team_.places(); }
  std::uint32_t nodes() const { return nodes_; }
  std::uint32_t my_node() const { return my_node_; }
  // Few nodes tell each other all at once.
  bool are_few() const { return are_few_; }
  // Few nodes do so in reductions, too, where these go in no tree.
  bool reductions_are_flat() const { return degree_ == 0; }
  std::uint32_t degree() const { return degree_; }
  ReduceOrder order() const { return order_; }
  std::span<const trees::Step> agreeing() const {
    return are_few_ ? std::span<const trees::Step>(telling_all_) : team_.meeting_list();
  }
  std::span<const trees::Step> gathering() const { return agreeing(); }
  std::span<const trees::Step> reducing() const { return reducing_; }
  std::span<const std::uint32_t> members_of(std::uint32_t node) const { return team_.members_of(node); }
  std::uint32_t node_of(std::uint32_t member) const { return team_.node_of(member); }
  // Of each member in a letter of so much room.
  std::size_t gathered_piece(std::size_t room) const { return room / most_gathered_; }
  // The most members that a letter is about.
  std::size_t most_gathered() const { return most_gathered_; }
  const ops::KernelSet& kernels() const { return kernels_; }

 private:
  const GroupTeam& team_;
  const ops::KernelSet& kernels_;
  std::uint32_t nodes_;
  std::uint32_t my_node_;
  bool are_few_;
  std::uint32_t degree_;  // of reductions' tree; 0: there is none
  ReduceOrder order_;
  std::vector<trees::Step> reducing_;
  std::vector<trees::Step> telling_all_;  // where nodes are few
  std::size_t most_gathered_;
};

// Each call begins with what all nodes say of it, in a list that is the same whatever they call. Few nodes bring the
// first piece of what they have along.
class CarriedWalk final : private trees::Carrier {
 public:
  // `team` tells the places of a job's groups apart.
  CarriedWalk(const CarriedLists& lists, TeamPost& post, std::uint64_t team);

  // A call of which this node's part is whole. `answer` has what the node's ranks have and becomes what all have;
  // `found` what is known of them and becomes what is known of all. Where ranks decide the order, `parts` has by place
  // here what the node's ranks have in the answer's stead, joined as RankOrder::joins_here() says. All are used until
  // go_on() has said that it is over.
  void begin(const SaidOfCall& said, std::uint32_t my_rank, std::uint32_t size, std::byte* answer,
             CarriedFinding& found, std::span<const std::byte* const> parts);
  bool is_over() const { return stage_ == Stage::over; }
  // True when the call is over.
  bool go_on();
  // Whether it stands because a letter had no room, which nobody tells it of.
  bool has_refused() const { return has_refused_; }
  // Whether a letter has left, since this was asked, whose answer somebody has to look for.
  bool take_awaits_answers() { return std::exchange(has_sent_, false) && post_.take_awaits_answers(); }

 private:
  enum class Stage : std::uint8_t { over, agreeing, carrying, meeting };
  struct Head;
  static const std::size_t room_behind_head;  // of a letter
  static std::size_t lines_behind_head();

  bool send(const trees::Step& step) override;
  bool take(const trees::Step& step) override;
  std::span<const std::byte> held(const trees::Step& step);
  void use(const trees::Step& step, std::span<const std::byte> letter);
  void compare(const trees::Step& step, const Head& theirs);
  std::size_t pack(const trees::Step& step, std::byte* into) const;
  std::size_t bytes_from(const trees::Step& step) const;
  void take_piece(const trees::Step& step, const std::byte* from);
  void add(const std::byte* part);
  void add_own();
  void begin_by_ranks();
  void end_list();
  void next_piece();
  void enter(Stage stage);
  std::span<const trees::Step> list() const;
  std::size_t piece_bytes() const;
  bool are_the_same() const { return found_->what == CarriedFinding::What::the_same; }
  bool folds_at_once() const { return call_.reduces() && lists_.reductions_are_flat(); }
  bool has_no_room() const { return call_.reduces_by_ranks() && total_ != 0 && piece_bytes() == 0; }
  std::size_t number_of(const trees::Step& step) const { return static_cast<std::size_t>(&step - list().data()); }
  bool brings_data() const {
    return stage_ == Stage::carrying ||
           (stage_ == Stage::agreeing && (call_.reduces() ? lists_.reductions_are_flat() : lists_.are_few()));
  }
  bool is_root_node() const { return lists_.node_of(call_.root) == lists_.my_node(); }
  std::uint32_t speaker_of(std::uint32_t node) const { return lists_.members_of(node).front(); }
  void find(CarriedFinding::What what, std::uint32_t rank);

  const CarriedLists& lists_;
  TeamPost& post_;
  std::uint64_t team_;
  std::uint64_t round_ = 0;
  std::unique_ptr<std::byte[]> letter_;
  std::unique_ptr<std::byte[]> sum_;
  std::vector<trees::Step> broadcast_;
  std::optional<RankOrder> by_rank_;
  std::span<const std::byte* const> parts_;

  Stage stage_ = Stage::over;
  SaidOfCall said_;
  CarriedCall call_;
  std::uint32_t my_rank_ = 0;
  std::uint32_t size_ = 0;
  std::byte* answer_ = nullptr;
  CarriedFinding* found_ = nullptr;
  std::size_t total_ = 0;  // of what is cut into pieces: the answer, or what each member brings to an allgather
  std::size_t done_ = 0;
  std::size_t piece_ = 0;  // bytes of the current one
  std::uint32_t pieces_since_meeting_ = 0;
  std::size_t at_ = 0;  // in the list
  // The step whose letter has been packed; how long that is, how much of it has left.
  const trees::Step* packed_ = nullptr;
  std::size_t letter_bytes_ = 0;
  std::size_t sent_ = 0;
  bool has_first_ = false;  // in the sum of a piece
  bool has_own_ = false;
  bool has_refused_ = false;
  bool has_sent_ = false;
};

}  // namespace farsum
