#include "runtime/group_carry.hpp"

#include <algorithm>
#include <utility>

#include "runtime/context.hpp"

namespace farsum {
namespace {

// Beside a team's key: other meetings have a number of ranks there.
constexpr std::uint64_t carried_calls_key = 0x6465697272616321;

}  // namespace

void Carries::add(Carry& carry) {
  const std::lock_guard lock(mutex_);
  all_.push_back(&carry);
}

void Carries::remove(Carry& carry) {
  const std::lock_guard lock(mutex_);
  std::erase(all_, &carry);
}

Carry::Turn Carries::take_turns() noexcept {
  Carry::Turn turn;
  if (under_way_.load(std::memory_order_relaxed) == 0) return turn;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  turn.is_unfinished = !lock.owns_lock();
  if (turn.is_unfinished) return turn;
  for (Carry* const carry : all_) {
    const Carry::Turn of_one = carry->take_turn();
    turn.is_unfinished |= of_one.is_unfinished;
    turn.is_refused |= of_one.is_refused;
  }
  return turn;
}

GroupCarry::GroupCarry(const Parts& parts, std::vector<std::uint32_t> here, const Of& of)
    : parts_(parts), here_(std::move(here)), carry_({of.team, of.my_rank, of.kernels, of.post, of.waiter, *this}) {}

GroupCarry::~GroupCarry() { shut(); }

Status GroupCarry::open() {
  if (Status status = parts_.segment.reach(block_); !status.is_ok()) return status;
  carry_.open(parts_.segment.at(block_.offset));
  parts_.carries.add(carry_);
  is_listed_ = true;
  return {};
}

void GroupCarry::shut() {
  if (is_listed_) parts_.carries.remove(carry_);
}

Status GroupCarry::allocate(std::uint64_t bytes, CarriedExtent& extent) {
  Result<HeapExtent> cut = parts_.segment.allocate(bytes, parts_.id_in_segment);
  if (!cut.is_ok()) return cut.take_status();
  Status status = parts_.segment.reach(cut.value());
  if (status.is_ok())
    extent = {cut.value().offset, cut.value().bytes};
  else
    parts_.segment.release(cut.value(), parts_.id_in_segment);
  return status;
}

void GroupCarry::release(CarriedExtent extent) {
  parts_.segment.release({extent.offset, extent.bytes}, parts_.id_in_segment);
}

std::byte* GroupCarry::reach(CarriedExtent extent) {
  try {
    if (parts_.segment.reach({extent.offset, extent.bytes}).is_ok()) return parts_.segment.at(extent.offset);
  } catch (const std::bad_alloc&) {
    // There is not even memory to say so.
  }
  return nullptr;
}

void GroupCarry::ring(std::uint32_t member_here) { parts_.transport.ring(here_[member_here]); }

void GroupCarry::hand_over() { parts_.network.hand_over(); }

void GroupCarry::count_under_way(int more) { parts_.carries.count_under_way(more); }

// What is carried of a group has a block of its own, which the first call asks for: groups without such calls have
// none.
Result<Carry*> Context::carry_of(Group& group) {
  GroupCarry* carried = group.carried();
  if (carried == nullptr) {
    std::vector<std::uint32_t> here;
    for (const std::uint32_t member : group.places().here)
      here.push_back(membership_.here.place_of(group.ranks()[member]));
    carried = &group.set_carried(std::make_unique<GroupCarry>(
        GroupCarry::Parts{*membership_.segment, id_in_segment(), *transport_, *network_, carries_}, std::move(here),
        GroupCarry::Of{group.team(), group.my_rank(), *kernels_, *exchange_, *waiter_}));
  }
  if (carried->is_open()) return &carried->carry();
  if (Status status = start_agent(); !status.is_ok()) return status;
  const auto here = static_cast<std::uint32_t>(group.places().here.size());
  if (!carried->has_met()) {
    Result<HeapExtent> met = membership_.segment->meet({{group.team().key(), carried_calls_key}}, here,
                                                       CarriedBlock::footprint(here), id_in_segment());
    if (!met.is_ok()) return met.take_status();
    carried->meet_in(met.value());
  }
  if (Status status = carried->open(); !status.is_ok()) return status;
  return &carried->carry();
}

// When no member has a call under way: all have come to the end of the group.
void Context::leave_carried(Group& group) {
  GroupCarry* const carried = group.carried();
  if (carried == nullptr || !carried->has_met()) return;
  carried->shut();
  if (carried->is_open() && carried->carry().depart()) give_back(carried->block());
}

}  // namespace farsum
