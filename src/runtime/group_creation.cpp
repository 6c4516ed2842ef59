// Making groups: those listed find each other by a key in the memory of their nodes, and learn whether each of them has
// all that it needs. A rank that finds no memory comes all the same and says so; until all know, nothing here allocates
// on its behalf but a letter to another node.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "collectives/letter_walk.hpp"
#include "cost/meeting_model.hpp"
#include "runtime/context.hpp"
#include "runtime/list_hash.hpp"
#include "trees/schedule.hpp"

namespace farsum {
namespace {

constexpr const char* creating = "farsum_group_create";

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

// Nodes with members on them, and which of them this one is.
struct Context::NodesOfList {
  std::uint32_t count = 0;
  std::uint32_t mine = 0;
};

// The ranks of a parent that become a group, and where the calling rank is among them.
struct Context::Listed {
  const Group& parent;
  std::span<const std::uint32_t> members;
  std::uint32_t my_rank = ~std::uint32_t{0};

  Rank operator[](std::size_t member) const { return parent.ranks()[members[member]]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }
  std::vector<Rank> ranks() const {
    std::vector<Rank> all;
    all.reserve(members.size());
    for (std::size_t member = 0; member < members.size(); ++member) all.push_back((*this)[member]);
    return all;
  }
  std::uint64_t hash(ListHash::Purpose purpose, std::uint64_t round) const {
    ListHash hash(purpose);
    for (std::size_t member = 0; member < members.size(); ++member) hash.add((*this)[member]);
    hash.add(round);
    return hash.value();
  }
};

Status Context::check_listed(Listed& listed) const {
  const std::span<const std::uint32_t> members = listed.members;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    if (members[i] >= listed.parent.size()) {
      return {Code::rank, fmt::format("{}: rank {} is not in the parent, whose ranks are 0 to {}", creating,
                                      static_cast<std::int32_t>(members[i]), listed.parent.size() - 1)};
    }
    const auto before = members.first(i);
    if (std::find(before.begin(), before.end(), members[i]) != before.end())
      return {Code::argument, fmt::format("{}: rank {} is listed twice", creating, members[i])};
    const Rank rank = listed[i];
    if (rank == membership_.rank) listed.my_rank = i;
    if (!remote_nodes_->reaches(rank)) {
      return {Code::unsupported, fmt::format("{}: rank {} of the job is on another node and not known here; "
                                             "farsum_network_introduce makes it known",
                                             creating, rank)};
    }
  }
  if (listed.my_rank != ~std::uint32_t{0}) return {};
  return {Code::argument,
          fmt::format("{}: the calling rank is not among the ranks listed; only those listed call", creating)};
}

Result<Group*> Context::create_group(Group& parent, std::span<const std::uint32_t> members, bool lacks_memory) {
  Listed listed{parent, members};
  if (Status status = check_listed(listed); !status.is_ok()) return status;
  const auto forget_it = [this](Group* made) { forget(made); };
  std::unique_ptr<Group, decltype(forget_it)> group(nullptr, forget_it);
  Group::Means means;
  std::exception_ptr thrown;
  std::optional<std::uint64_t> round;
  try {
    if (lacks_memory) throw std::bad_alloc();
    means = make_means(remote_nodes_->places_of(listed.ranks()), listed.my_rank);
    auto made = std::make_unique<Group>(listed.ranks(), listed.my_rank);
    const std::lock_guard lock(mutex_);
    group_rounds_.keep_room();
    groups_.push_back(std::move(made));
    group.reset(groups_.back().get());
    round = group_rounds_.next(listed.hash(ListHash::of_list, 0));
  } catch (...) {
    thrown = std::current_exception();
    means = {};
  }
  if (!round) round = next_round(listed);
  // So many lists for which there was none at once: the others wait until this one comes again.
  if (!round) std::rethrow_exception(thrown);
  HeapExtent block;
  Status status = found_group(listed, *round, means, block);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (!status.is_ok()) return status;
  group->begin(block, membership_.segment->at(block.offset), std::move(means));
  return group.release();
}

std::optional<std::uint64_t> Context::next_round(const Listed& listed) {
  const std::uint64_t list = listed.hash(ListHash::of_list, 0);
  const std::lock_guard lock(mutex_);
  if (!group_rounds_.has_room_for(list)) return std::nullopt;
  return group_rounds_.next(list);
}

// Ends alike on all members, but for deaths. `means` has no team where this rank has found no memory for one; else it
// has begun where all went well.
Status Context::found_group(const Listed& listed, std::uint64_t round, const Group::Means& means, HeapExtent& block) {
  GroupTeam* const team = means.team.get();
  const std::uint64_t key = listed.hash(ListHash::of_team, round) | group_team_keys;
  const std::uint64_t making_key = listed.hash(ListHash::of_making, round) | group_team_keys;
  std::uint32_t here = 0, my_place_here = 0;
  for (std::uint32_t member = 0; member < listed.size(); ++member) {
    if (!membership_.here.is_here(listed[member])) continue;
    if (member == listed.my_rank) my_place_here = here;
    ++here;
  }
  Result<HeapExtent> met =
      membership_.segment->meet({{key, here}}, here, GroupBlock::footprint(here), node_.id_in_segment());
  Status reached = met.is_ok() ? reach_team(met.value(), my_place_here) : met.take_status();
  if (!reached.is_ok()) {
    if (my_place_here == 0) tell_of_failure(listed, making_key, team);
    return reached;
  }
  block = met.value();
  NodeTeam node(*reinterpret_cast<NodeTeamBlock*>(membership_.segment->at(block.offset)), here, my_place_here,
                *waiter_);
  std::uint32_t lacking = team == nullptr ? listed.my_rank + 1 : 0;
  // Who hears first that there is a group may send to it at once.
  means.begin_letters(key);
  if (Status status = agree_on_memory(listed, node, making_key, team, lacking); !status.is_ok()) return status;
  if (lacking == 0) {
    team->begin(node.block(), key);
    means.open_letters();
    return {};
  }
  if (node.depart()) membership_.segment->release(block, node_.id_in_segment());
  return {Code::no_memory, fmt::format("{}: rank {} of the group has no memory left", creating, lacking - 1)};
}

// Maps where the members here meet. One that cannot map it comes to no meeting, which the others learn there.
Status Context::reach_team(HeapExtent block, std::uint32_t my_place_here) {
  Status status = membership_.segment->reach(block);
  if (status.is_ok()) return status;
  membership_.segment->write_word(block.offset + NodeTeam::given_up_at, NodeTeam::never_comes(my_place_here));
  return status;
}

// `lacking` is this rank + 1 if it has no memory, else 0; and then the same of the last member that has none.
Status Context::agree_on_memory(const Listed& listed, NodeTeam& node, std::uint64_t key, const GroupTeam* team,
                                std::uint32_t& lacking) {
  enum Step : std::uint32_t { of_this_node = 1, of_all_nodes };
  if (lacking != 0) node.give_up(of_this_node, lacking);
  if (Status status = node.barrier(creating); !status.is_ok()) {
    if (node.rank() == 0 && status.code() != Code::peer_failed) tell_of_failure(listed, key, team);
    return status;
  }
  const bool is_one_node = node.ranks() == listed.size();
  if (is_one_node || node.rank() == 0) lacking = node.who_gave_up(of_this_node);
  if (is_one_node) return {};
  if (node.rank() == 0) {
    if (Status status = agree_between_nodes(listed, key, team, lacking); !status.is_ok()) {
      node.stay_away(status);
      return status;
    }
    if (lacking != 0) node.give_up(of_all_nodes, lacking);
  }
  if (Status status = node.barrier(creating); !status.is_ok()) return status;
  lacking = node.who_gave_up(of_all_nodes);
  return {};
}

// Called by the first member of a node whose members cannot meet, so that those of other nodes do not wait for it.
void Context::tell_of_failure(const Listed& listed, std::uint64_t key, const GroupTeam* team) {
  std::uint32_t lacking = listed.my_rank + 1;
  (void)agree_between_nodes(listed, key, team, lacking);
}

// Called by the first member of each node; `lacking` becomes the last that any of them knows of. A second round follows
// where a group fails: who has come to its end knows that all have taken the letters of the first, and the key could
// come again.
Status Context::agree_between_nodes(const Listed& listed, std::uint64_t key, const GroupTeam* team,
                                    std::uint32_t& lacking) {
  const NodesOfList nodes = count_nodes(listed, team);
  std::array<trees::Step, cost::most_steps_of_a_meeting> list;
  std::size_t steps = 0;
  const std::uint32_t degree = cost::meeting_degree(nodes.count);
  trees::for_each_step_of_rounds({.kind = trees::Kind::barrier, .nodes = nodes.count, .degree = degree}, nodes.mine,
                                 [&](const trees::Step& step) { list.at(steps++) = step; });
  const auto first_of = [&](std::uint32_t node) { return first_of_node(listed, team, nodes, node); };
  Largest largest(lacking);
  for (std::uint64_t number = 1; number == 1 || (number == 2 && lacking != 0); ++number) {
    const LetterRound round = {
        .post = *exchange_, .waiter = *waiter_, .team = key, .number = number, .first_of = first_of};
    if (Status status = walk_letters(round, std::span(list).first(steps), largest, creating); !status.is_ok())
      return status;
  }
  return {};
}

// Ascending by their first members, as in GroupPlaces, which a rank without memory has not made.
Context::NodesOfList Context::count_nodes(const Listed& listed, const GroupTeam* team) const {
  if (team != nullptr) return {team->places().nodes(), team->places().my_node()};
  NodesOfList nodes;
  for (std::uint32_t member = 0; member < listed.size(); ++member) {
    if (!is_first_of_node(listed, member)) continue;
    if (membership_.here.is_here(listed[member])) nodes.mine = nodes.count;
    ++nodes.count;
  }
  return nodes;
}

Rank Context::first_of_node(const Listed& listed, const GroupTeam* team, const NodesOfList& nodes,
                            std::uint32_t node) const {
  if (team != nullptr) return team->places().node(node, nodes.mine).first;
  std::uint32_t member = 0;
  for (std::uint32_t before = 0;; ++member) {
    if (is_first_of_node(listed, member) && before++ == node) return listed[member];
  }
}

bool Context::is_first_of_node(const Listed& listed, std::uint32_t member) const {
  const bool is_here = membership_.here.is_here(listed[member]);
  for (std::uint32_t before = 0; before < member; ++before) {
    const bool is_before_here = membership_.here.is_here(listed[before]);
    if (is_here ? is_before_here : !is_before_here && remote_nodes_->share_node(listed[before], listed[member]))
      return false;
  }
  return true;
}

void Context::forget(Group* group) {
  const std::lock_guard lock(mutex_);
  std::erase_if(groups_, [group](const auto& other) { return other.get() == group; });
}

Status Context::free_group(Group* group) {
  if (group == world_.get()) return {Code::argument, "farsum_group_free: the group of all ranks is not freed"};
  if (group->users().load(std::memory_order_relaxed) != 0) {
    return {Code::pending,
            fmt::format("farsum_group_free: {} windows, counters or mutexes made over the group live; free them first",
                        group->users().load(std::memory_order_relaxed))};
  }
  if (const std::size_t open = group->open_requests(); open != 0) {
    return {Code::pending, fmt::format("farsum_group_free: nobody has waited for {} of this rank's requests of "
                                       "farsum_collect over the group; pass them to farsum_wait first",
                                       open)};
  }
  if (group->carried() != nullptr) group->carried()->shut();
  if (Status status = group->team().barrier("farsum_group_free"); !status.is_ok()) return status;
  leave_carried(*group);
  if (group->team().depart()) membership_.segment->release(group->block(), node_.id_in_segment());
  forget(group);
  return {};
}

}  // namespace farsum
