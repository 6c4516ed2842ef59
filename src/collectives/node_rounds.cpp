#include "collectives/node_rounds.hpp"

#include <cstring>

namespace farsum {

NodeRounds::NodeRounds(std::byte* block, NodeTeam& team, Waiter& waiter)
    : block_(block),
      slots_(block + NodeRoundsBlock::slots_at(team.ranks())),
      answer_(block + NodeRoundsBlock::answer_at(team.ranks())),
      pieces_(block + NodeRoundsBlock::pieces_at(team.ranks())),
      team_(team),
      waiter_(waiter),
      ranks_(team.ranks()),
      me_(team.rank()),
      slot_bytes_(NodeRoundsBlock::slot_bytes(team.ranks())),
      piece_bytes_(NodeRoundsBlock::piece_bytes(team.ranks())) {}

const std::byte* NodeRounds::data(std::uint32_t member) const {
  return data_bytes_ <= NodeRoundsBlock::Line::data_bytes ? line(member).data : slot(member);
}

Status NodeRounds::begin(const SaidOfCall& said, std::span<const std::byte> data, FunctionRef<void()> by_the_last,
                         const char* doing) {
  if (!broken_.is_ok()) return {broken_.code(), broken_.text()};
  if (form_ == Form::unknown) form_ = ranks_ <= most_that_look && !waiter_.is_crowded() ? Form::look : Form::meet;
  ++call_;
  data_bytes_ = data.size();
  NodeRoundsBlock::Line& mine = line(me_);
  mine.said = said;
  if (!data.empty()) std::memcpy(data.size() <= sizeof mine.data ? mine.data : slot(me_), data.data(), data.size());
  if (form_ == Form::meet) return team_.barrier_with(by_the_last, doing);
  tell_others();
  return await_others(doing);
}

Status NodeRounds::next_step(const char* doing) {
  if (form_ == Form::meet) return team_.barrier(doing);
  tell_others();
  return await_others(doing);
}

void NodeRounds::tell_others() {
  // Release pairs with the acquire in has_come.
  line(me_).step.store(++step_, std::memory_order_release);
  part(me_).events.notify_all();
}

// Looks at all before it says no: the lines come from others' caches, several at a time.
bool NodeRounds::have_all_come() const {
  bool have = true;
  for (std::uint32_t member = 0; member < ranks_; ++member) have = has_come(member) && have;
  return have;
}

Status NodeRounds::await_others(const char* doing) {
  for (int look = 0; look < first_looks; ++look) {
    if (have_all_come()) return {};
  }
  for (std::uint32_t member = 0; member < ranks_; ++member) {
    // The condition is on what that member writes alone, who wakes those asleep there.
    Status status = waiter_.wait(
        part(member).events, [&] { return has_come(member); }, doing);
    if (status.is_ok()) continue;
    broken_ = {status.code(), status.text()};
    return status;
  }
  return {};
}

}  // namespace farsum
