#include "collectives/node_rounds.hpp"

#include <cstring>

namespace farsum {

NodeRounds::NodeRounds(std::byte* block, NodeTeam& team, Waiter& waiter)
    : block_(block),
      rounds_(reinterpret_cast<NodeRoundsBlock::RankPart*>(block + NodeRoundsBlock::parts_at), team.rank()),
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
  return data_bytes_ <= NodeRoundsBlock::Line::data_bytes ? rounds_.line(member).data : slot(member);
}

Status NodeRounds::begin(const SaidOfCall& said, std::span<const std::byte> data, FunctionRef<void()> by_the_last,
                         const char* doing) {
  if (!broken_.is_ok()) return why_broken();
  choose_form();
  rounds_.begin();
  data_bytes_ = data.size();
  NodeRoundsBlock::Line& mine = rounds_.line(me_);
  mine.said = said;
  if (!data.empty()) std::memcpy(data.size() <= sizeof mine.data ? mine.data : slot(me_), data.data(), data.size());
  // Where members meet, too: who waits for this one in another call sleeps here.
  rounds_.come_and_tell();
  if (form_ == Form::look) return await_others(doing);
  const auto count_first = [&] {
    count_members();
    if (have_all_begun_) by_the_last();
  };
  Status status = team_.barrier_with(count_first, doing);
  have_all_begun_ = status.is_ok() && count().step == rounds_.steps() && count().stranger == 0;
  if (!status.is_ok()) break_off(status);
  return status;
}

void NodeRounds::choose_form() {
  if (form_ == Form::unknown) form_ = ranks_ <= most_that_look && !waiter_.is_crowded() ? Form::look : Form::meet;
}

void NodeRounds::begin_agreed() {
  choose_form();
  rounds_.begin();
  rounds_.skip_step();
  have_all_begun_ = true;
}

// By the last to come: nobody goes on before, so that whose line is of an earlier step has come for something else.
void NodeRounds::count_members() {
  NodeRoundsBlock::Count& all = count();
  all = {rounds_.steps(), 0};
  for (std::uint32_t member = ranks_; member-- > 0;)
    if (!rounds_.has_come(member)) all.stranger = member + 1;
  have_all_begun_ = all.stranger == 0;
}

std::optional<std::uint32_t> NodeRounds::stranger() const {
  if (count().step != rounds_.steps() || count().stranger == 0) return std::nullopt;
  return count().stranger - 1;
}

Status NodeRounds::next_step(const char* doing) {
  if (form_ == Form::meet) {
    rounds_.come();
    Status status = team_.barrier(doing);
    if (!status.is_ok()) break_off(status);
    return status;
  }
  rounds_.come_and_tell();
  return await_others(doing);
}

void NodeRounds::give_up(const Status& why) {
  break_off(why);
  team_.stay_away(why);
  // The others, which see it in their condition, sleep where whomever they wait for would wake them.
  for (std::uint32_t member = 0; member < ranks_; ++member) rounds_.events(member).notify_all();
}

// Looks at all before it says no: the lines come from others' caches, several at a time.
bool NodeRounds::have_all_come() const {
  bool have = true;
  for (std::uint32_t member = 0; member < ranks_; ++member) have = rounds_.has_come(member) && have;
  return have;
}

Status NodeRounds::await_others(const char* doing) {
  for (int look = 0; look < first_looks; ++look) {
    if (have_all_come()) return {};
  }
  for (std::uint32_t member = 0; member < ranks_; ++member) {
    // The condition is on what that member writes alone, who wakes those asleep there.
    Status status = waiter_.wait(
        rounds_.events(member), [&] { return rounds_.has_come(member) || team_.has_one_that_never_comes(); }, doing);
    if (status.is_ok() && !rounds_.has_come(member)) status = team_.who_never_comes(doing);
    if (status.is_ok()) continue;
    broken_ = {status.code(), status.text()};
    return status;
  }
  return {};
}

}  // namespace farsum
