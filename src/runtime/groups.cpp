#include "runtime/groups.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "runtime/group_founding.hpp"

namespace farsum {
namespace {

// The key of the team of a job over nodes; groups' keys are higher, and windows' numbers lower.
constexpr std::uint64_t world_team_key = std::uint64_t{1} << 62;

}  // namespace

Groups::Groups(const Parts& parts) : parts_(parts) { rounds_.keep_room(); }

void Groups::begin_node() {
  // Nobody reduces over it: where the job has its rounds it has none of its own, and each group counts them by itself.
  home_ = group_of_the_node();
  if (parts_.node.is_whole_job()) world_ = group_of_the_node();
}

std::unique_ptr<Group> Groups::group_of_the_node() {
  GroupPlaces places;
  places.here.resize(parts_.node.here().count());
  std::iota(places.here.begin(), places.here.end(), 0u);
  auto group = std::make_unique<Group>(parts_.node.here().ranks(), parts_.node.place());
  Group::Means means = parts_.maker.make(std::move(places), parts_.node.place());
  std::byte* const block = parts_.node.segment().world_team();
  means.team->begin(*reinterpret_cast<NodeTeamBlock*>(block), 0);
  group->begin({}, block, std::move(means));
  return group;
}

Status Groups::begin_job() {
  if (parts_.node.is_whole_job()) return {};
  std::vector<Rank> all(parts_.node.job_size());
  std::iota(all.begin(), all.end(), Rank{0});
  const bool meets =
      std::all_of(all.begin(), all.end(), [this](Rank rank) { return parts_.remote_nodes.reaches(rank); });
  world_ = std::make_unique<Group>(std::move(all), parts_.node.rank());
  if (!meets) return {};
  Group::Means means = parts_.maker.make(parts_.remote_nodes.places_of(world_->ranks()), parts_.node.rank());
  const std::uint32_t here = parts_.node.here().count();
  Result<HeapExtent> met = parts_.node.segment().meet({{world_team_key, here}}, here, GroupBlock::footprint(here),
                                                      parts_.node.id_in_segment());
  if (!met.is_ok()) return met.take_status();
  if (Status status = parts_.node.segment().reach(met.value()); !status.is_ok()) return status;
  means.begin_letters(world_team_key);
  // Who has failed up to here has said so at this meeting of the node's ranks, and nowhere else.
  if (Status status = home_->team().barrier("farsum_init"); !status.is_ok()) return status;
  std::byte* const block = parts_.node.segment().at(met.value().offset);
  means.team->begin(*reinterpret_cast<NodeTeamBlock*>(block), world_team_key);
  world_->begin(met.value(), block, std::move(means));
  if (Status status = world_->team().barrier("farsum_init"); !status.is_ok()) return status;
  world_->open_letters();
  return {};
}

Status Groups::check(ListedRanks& listed) const {
  const std::span<const std::uint32_t> members = listed.members;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    if (members[i] >= listed.parent.size()) {
      return {Code::rank,
              fmt::format("{}: rank {} is not in the parent, whose ranks are 0 to {}", ListedRanks::creating,
                          static_cast<std::int32_t>(members[i]), listed.parent.size() - 1)};
    }
    const auto before = members.first(i);
    if (std::find(before.begin(), before.end(), members[i]) != before.end())
      return {Code::argument, fmt::format("{}: rank {} is listed twice", ListedRanks::creating, members[i])};
    const Rank rank = listed[i];
    if (rank == parts_.node.rank()) listed.my_rank = i;
    if (!parts_.remote_nodes.reaches(rank)) {
      return {Code::unsupported, fmt::format("{}: rank {} of the job is on another node and not known here; "
                                             "farsum_network_introduce makes it known",
                                             ListedRanks::creating, rank)};
    }
  }
  if (listed.my_rank != ~std::uint32_t{0}) return {};
  return {Code::argument, fmt::format("{}: the calling rank is not among the ranks listed; only those listed call",
                                      ListedRanks::creating)};
}

Result<Group*> Groups::create(Group& parent, std::span<const std::uint32_t> members, const Creation& creation) {
  ListedRanks listed{parent, members};
  if (Status status = check(listed); !status.is_ok()) return status;
  const auto forget_it = [this](Group* made) { forget(made); };
  std::unique_ptr<Group, decltype(forget_it)> group(nullptr, forget_it);
  Group::Means means;
  std::exception_ptr thrown;
  std::optional<std::uint64_t> round;
  try {
    if (creation.lacks_memory) throw std::bad_alloc();
    means = parts_.maker.make(parts_.remote_nodes.places_of(listed.ranks()), listed.my_rank);
    auto made = std::make_unique<Group>(listed.ranks(), listed.my_rank);
    const MutexGuard lock(mutex_);
    if (!creation.number) rounds_.keep_room();
    groups_.push_back(std::move(made));
    group.reset(groups_.back().get());
    if (!creation.number) round = rounds_.next(listed.hash(ListHash::of_list, 0));
  } catch (...) {
    thrown = std::current_exception();
    means = {};
  }
  if (creation.number) {
    round = creation.number;
  } else if (!round) {
    round = next_round(listed);
  }
  // So many lists for which there was none at once: the others wait until this one comes again.
  if (!round) std::rethrow_exception(thrown);
  HeapExtent block;
  const GroupFounding::Name name{.number = *round, .is_agreed = creation.number.has_value()};
  Status status = GroupFounding(parts_, listed, name, means).found(block);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (!status.is_ok()) return status;
  group->begin(block, parts_.node.segment().at(block.offset), std::move(means));
  return group.release();
}

std::optional<std::uint64_t> Groups::next_round(const ListedRanks& listed) {
  const std::uint64_t list = listed.hash(ListHash::of_list, 0);
  const MutexGuard lock(mutex_);
  if (!rounds_.has_room_for(list)) return std::nullopt;
  return rounds_.next(list);
}

void Groups::forget(Group* group) {
  const MutexGuard lock(mutex_);
  std::erase_if(groups_, [group](const auto& other) { return other.get() == group; });
}

Status Groups::check_unused(const char* call, const Group& group) const {
  if (&group == world_.get()) return {Code::argument, fmt::format("{}: the group of all ranks is not freed", call)};
  const int users = group.users().load(std::memory_order_relaxed);
  if (users == 0) return {};
  return {Code::pending,
          fmt::format("{}: {} windows, counters or mutexes made over the group live; free them first", call, users)};
}

Status Groups::free(Group* group) {
  if (Status status = check_unused("farsum_group_free", *group); !status.is_ok()) return status;
  if (const std::size_t open = group->open_requests(); open != 0) {
    return {Code::pending, fmt::format("farsum_group_free: nobody has waited for {} of this rank's requests of "
                                       "farsum_collect over the group; pass them to farsum_wait first",
                                       open)};
  }
  if (group->carried() != nullptr) group->carried()->shut();
  if (Status status = group->team().barrier("farsum_group_free"); !status.is_ok()) return status;
  part(group);
  return {};
}

// Others may still wait for each other in the block, which the last to part gives back. All that they need of this rank
// is there: it has ended its calls.
Status Groups::leave(Group* group) {
  constexpr const char* call = "farsum_group_leave";
  if (Status status = check_unused(call, *group); !status.is_ok()) return status;
  if (group->carried() != nullptr) {
    return {Code::unsupported,
            fmt::format("{}: farsum_collect was called over the group, whose ranks part together then, by "
                        "farsum_group_free",
                        call)};
  }
  part(group);
  return {};
}

void Groups::part(Group* group) {
  parts_.carried.leave(*group);
  if (group->team().depart()) parts_.node.segment().release(group->block(), parts_.node.id_in_segment());
  forget(group);
}

Status Groups::find_open_requests() {
  const MutexGuard lock(mutex_);
  std::size_t open = world_->open_requests();
  for (const std::unique_ptr<Group>& group : groups_) open += group->open_requests();
  if (open == 0) return {};
  return {Code::pending, fmt::format("farsum_finalize: nobody has waited for {} of this rank's requests of "
                                     "farsum_collect; pass them to farsum_wait first",
                                     open)};
}

}  // namespace farsum
