#include "runtime/group_founding.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "collectives/letter_walk.hpp"
#include "cost/meeting_model.hpp"
#include "trees/schedule.hpp"

namespace farsum {
namespace {

// The keys of groups' teams over nodes; those of windows are the windows' numbers, which are lower.
constexpr std::uint64_t group_team_keys = std::uint64_t{1} << 63;

// Nodes tell each other a number, and all end with the largest.
class Largest final : public LetterContent {
 public:
  explicit Largest(std::uint32_t& number) : number_(number) {}
  std::span<const std::byte> held(const trees::Step&) override { return std::as_bytes(std::span(&number_, 1)); }
  Status take(const trees::Step&, std::span<const std::byte> letter) override {
    std::uint32_t theirs = 0;
    if (letter.size() == sizeof theirs) std::memcpy(&theirs, letter.data(), sizeof theirs);
    number_ = std::max(number_, theirs);
    return {};
  }

 private:
  std::uint32_t& number_;
};

}  // namespace

GroupFounding::GroupFounding(const Parts& parts, const ListedRanks& listed, const Name& name, const Group::Means& means)
    : parts_(parts),
      listed_(listed),
      means_(means),
      key_(listed.hash(name.is_agreed ? ListHash::of_numbered_team : ListHash::of_team, name.number) | group_team_keys),
      making_key_(listed.hash(name.is_agreed ? ListHash::of_numbered_making : ListHash::of_making, name.number) |
                  group_team_keys) {}

Status GroupFounding::found(HeapExtent& block) {
  std::uint32_t here = 0, my_place_here = 0;
  for (std::uint32_t member = 0; member < listed_.size(); ++member) {
    if (!parts_.node.here().is_here(listed_[member])) continue;
    if (member == listed_.my_rank) my_place_here = here;
    ++here;
  }
  Result<HeapExtent> met =
      parts_.node.segment().meet({{key_, here}}, here, GroupBlock::footprint(here), parts_.node.id_in_segment());
  Status reached = met.is_ok() ? reach_team(met.value(), my_place_here) : met.take_status();
  if (!reached.is_ok()) {
    if (my_place_here == 0) tell_of_failure();
    return reached;
  }
  block = met.value();
  NodeTeam node(*reinterpret_cast<NodeTeamBlock*>(parts_.node.segment().at(block.offset)), here, my_place_here,
                parts_.waiter);
  std::uint32_t lacking = means_.team == nullptr ? listed_.my_rank + 1 : 0;
  // Who hears first that there is a group may send to it at once.
  means_.begin_letters(key_);
  if (Status status = agree_on_memory(node, lacking); !status.is_ok()) return status;
  if (lacking == 0) {
    means_.team->begin(node.block(), key_);
    means_.open_letters();
    return {};
  }
  if (node.depart()) parts_.node.segment().release(block, parts_.node.id_in_segment());
  return {Code::no_memory,
          fmt::format("{}: rank {} of the group has no memory left", ListedRanks::creating, lacking - 1)};
}

// Maps where the members here meet. One that cannot map it comes to no meeting, which the others learn there.
Status GroupFounding::reach_team(HeapExtent block, std::uint32_t my_place_here) {
  Status status = parts_.node.segment().reach(block);
  if (status.is_ok()) return status;
  parts_.node.segment().write_word(block.offset + NodeTeam::given_up_at, NodeTeam::never_comes(my_place_here));
  return status;
}

// `lacking` is this rank + 1 if it has no memory, else 0; and then the same of the last member that has none.
Status GroupFounding::agree_on_memory(NodeTeam& node, std::uint32_t& lacking) {
  enum Step : std::uint32_t { of_this_node = 1, of_all_nodes };
  if (lacking != 0) node.give_up(of_this_node, lacking);
  if (Status status = node.barrier(ListedRanks::creating); !status.is_ok()) {
    if (node.rank() == 0 && status.code() != Code::peer_failed) tell_of_failure();
    return status;
  }
  const bool is_one_node = node.ranks() == listed_.size();
  if (is_one_node || node.rank() == 0) lacking = node.who_gave_up(of_this_node);
  if (is_one_node) return {};
  if (node.rank() == 0) {
    if (Status status = agree_between_nodes(lacking); !status.is_ok()) {
      node.stay_away(status);
      return status;
    }
    if (lacking != 0) node.give_up(of_all_nodes, lacking);
  }
  if (Status status = node.barrier(ListedRanks::creating); !status.is_ok()) return status;
  lacking = node.who_gave_up(of_all_nodes);
  return {};
}

// Called by the first member of a node whose members cannot meet, so that those of other nodes do not wait for it.
void GroupFounding::tell_of_failure() {
  std::uint32_t lacking = listed_.my_rank + 1;
  (void)agree_between_nodes(lacking);
}

// Called by the first member of each node; `lacking` becomes the last that any of them knows of. A second round follows
// where a group fails: who has come to its end knows that all have taken the letters of the first, and the key could
// come again.
Status GroupFounding::agree_between_nodes(std::uint32_t& lacking) {
  const Nodes nodes = count_nodes();
  std::array<trees::Step, cost::most_steps_of_a_meeting> list;
  std::size_t steps = 0;
  const std::uint32_t degree = cost::meeting_degree(nodes.count);
  trees::for_each_step_of_rounds({.kind = trees::Kind::barrier, .nodes = nodes.count, .degree = degree}, nodes.mine,
                                 [&](const trees::Step& step) { list.at(steps++) = step; });
  const auto first_of = [&](std::uint32_t node) { return first_of_node(nodes, node); };
  Largest largest(lacking);
  for (std::uint64_t number = 1; number == 1 || (number == 2 && lacking != 0); ++number) {
    const LetterRound round = {
        .post = parts_.exchange, .waiter = parts_.waiter, .team = making_key_, .number = number, .first_of = first_of};
    if (Status status = walk_letters(round, std::span(list).first(steps), largest, ListedRanks::creating);
        !status.is_ok())
      return status;
  }
  return {};
}

// Ascending by their first members, as in GroupPlaces, which a rank without memory has not made.
GroupFounding::Nodes GroupFounding::count_nodes() const {
  if (means_.team != nullptr) return {means_.team->places().nodes(), means_.team->places().my_node()};
  Nodes nodes;
  for (std::uint32_t member = 0; member < listed_.size(); ++member) {
    if (!is_first_of_node(member)) continue;
    if (parts_.node.here().is_here(listed_[member])) nodes.mine = nodes.count;
    ++nodes.count;
  }
  return nodes;
}

Rank GroupFounding::first_of_node(const Nodes& nodes, std::uint32_t node) const {
  if (means_.team != nullptr) return means_.team->places().node(node, nodes.mine).first;
  std::uint32_t member = 0;
  for (std::uint32_t before = 0;; ++member) {
    if (is_first_of_node(member) && before++ == node) return listed_[member];
  }
}

bool GroupFounding::is_first_of_node(std::uint32_t member) const {
  const bool is_here = parts_.node.here().is_here(listed_[member]);
  for (std::uint32_t before = 0; before < member; ++before) {
    const bool is_before_here = parts_.node.here().is_here(listed_[before]);
    if (is_here ? is_before_here : !is_before_here && parts_.remote_nodes.share_node(listed_[before], listed_[member]))
      return false;
  }
  return true;
}

}  // namespace farsum
