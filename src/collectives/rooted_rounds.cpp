#include "collectives/rooted_rounds.hpp"

#include <cstring>

#include <fmt/format.h>

namespace farsum {

RootedRounds::RootedRounds(std::byte* block, NodeTeam& team, NodeRounds& rounds, Waiter& waiter)
    : team_(team),
      rounds_(rounds),
      waiter_(waiter),
      handover_(reinterpret_cast<HandoverPart*>(block + NodeRoundsBlock::handover_at(team.ranks())),
                block + NodeRoundsBlock::handover_slots_at(team.ranks()), NodeRoundsBlock::slot_bytes(team.ranks()),
                team.ranks(), team.rank(), rounds.events(team.rank())) {}

// The next call, as far as this member may write into its place.
Status RootedRounds::begin(const char* doing) {
  if (Status status = rounds_.why_broken(); !status.is_ok()) return status;
  handover_.begin();
  return handover_.slow_reader() ? await_slow_readers(doing) : Status();
}

Status RootedRounds::leave(const SaidOfCall& said, std::span<const std::byte> data, std::uint32_t root,
                           const char* doing) {
  if (Status status = begin(doing); !status.is_ok()) return status;
  handover_.read_nothing();
  handover_.leave(said, data, root);
  return {};
}

Status RootedRounds::leave_and_hear(const SaidOfCall& said, std::span<const std::byte> data, std::uint32_t root,
                                    std::span<std::byte> heard, bool& has_said_the_same, const char* doing) {
  if (Status status = begin(doing); !status.is_ok()) return status;
  handover_.leave(said, data, root);
  // Who says something else may be no root that would say more.
  const auto has_answered = [&] {
    return handover_.has_come(root) && (handover_.has_said_more(root) || handover_.said(root) != said);
  };
  Status status = await(root, has_answered, doing);
  has_said_the_same = status.is_ok() && handover_.said(root) == said;
  if (has_said_the_same) std::memcpy(heard.data(), handover_.data(root, heard.size()), heard.size());
  handover_.finish();
  return status;
}

Status RootedRounds::leave_for_all(const SaidOfCall& said, std::span<const std::byte> data, const char* doing) {
  if (Status status = begin(doing); !status.is_ok()) return status;
  handover_.read_nothing();
  handover_.leave(said, data, Handover::all_others, team_.woken_at_once());
  return {};
}

// Its word is for whoever takes itself for the root of another call.
Status RootedRounds::hear_root(const SaidOfCall& said, std::uint32_t root, const char* doing) {
  if (Status status = begin(doing); !status.is_ok()) return status;
  handover_.leave(said, {}, Handover::nobody);
  return await(
      root, [&] { return handover_.has_come(root); }, doing);
}

Status RootedRounds::gather(const SaidOfCall& said, std::span<const std::byte> mine, const char* doing) {
  if (Status status = begin(doing); !status.is_ok()) return status;
  handover_.leave(said, mine, Handover::nobody);
  return await_all(doing);
}

Status RootedRounds::await_all(const char* doing) {
  // In a crowded node a look would keep the processor from those for whom this rank waits.
  const int looks = waiter_.is_crowded() ? 0 : NodeRounds::first_looks;
  for (int look = 0; look < looks; ++look) {
    if (have_all_come()) return {};
  }
  for (std::uint32_t member = 0; member < team_.ranks(); ++member) {
    Status status = await(
        member, [&] { return handover_.has_come(member); }, doing);
    if (!status.is_ok()) return status;
  }
  return {};
}

// Looks at all before it says no: the lines come from others' caches, several at a time.
bool RootedRounds::have_all_come() const {
  bool have = true;
  for (std::uint32_t member = 0; member < team_.ranks(); ++member) have = handover_.has_come(member) && have;
  return have;
}

Status RootedRounds::await_slow_readers(const char* doing) {
  while (const std::optional<std::uint32_t> reader = handover_.slow_reader()) {
    Status status = await(
        *reader, [&] { return handover_.has_read(*reader); }, doing);
    if (!status.is_ok()) return status;
  }
  return {};
}

// `done` asks what that member alone writes, who wakes those asleep there.
Status RootedRounds::await(std::uint32_t member, FunctionRef<bool()> done, const char* doing) {
  Awaited found = Awaited::not_yet;
  const auto is_over = [&] {
    found = rounds_.look_for(member, done);
    return found != Awaited::not_yet || team_.has_one_that_never_comes();
  };
  Status status = waiter_.wait(rounds_.events(member), is_over, doing);
  if (status.is_ok() && done()) return {};
  if (status.is_ok()) status = found == Awaited::astray ? told_astray(member, doing) : team_.who_never_comes(doing);
  rounds_.break_off(status);
  return status;
}

// The others cannot know, and are told.
Status RootedRounds::told_astray(std::uint32_t member, const char* doing) {
  Status status{
      Code::argument,
      fmt::format("{}: the one in place {} of those on this node has made another call than this rank; all "
                  "ranks must make the same calls in the same order, and the group cannot be used any further",
                  doing, member)};
  rounds_.give_up(status);
  return status;
}

}  // namespace farsum
