#include "collectives/said_in_rounds.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

namespace farsum {

FoundAtRoot compare_said(const RootedRounds& rounds, const GroupPlaces& places, const SaidOfCall& mine,
                         std::uint32_t member) {
  const std::optional<SaidOfCall> said = rounds.said(member);
  if (said == mine) return {};
  const std::uint32_t rank = places.here[member];
  if (!said) return {{}, rank, FoundAtRoot::What::gone_on};
  const bool is_in_step = say_the_same_came_before(*said, mine);
  return {*said, rank, is_in_step ? FoundAtRoot::What::another_reduction : FoundAtRoot::What::out_of_step};
}

bool have_all_said(const NodeRounds& rounds, const SaidOfCall& said) {
  // Who has not begun may be about to write its line.
  if (!rounds.have_all_begun()) return false;
  bool have = true;
  for (std::uint32_t member = 0; member < rounds.ranks(); ++member) have = rounds.said(member) == said && have;
  return have;
}

namespace {

Status give_up(NodeRounds& rounds, Status why) {
  rounds.give_up(why);
  return why;
}

}  // namespace

Status who_said_otherwise(NodeRounds& rounds, const GroupPlaces& places, const RefusedReduction& refused) {
  if (!rounds.have_all_begun()) {
    const std::optional<std::uint32_t> stranger = rounds.stranger();
    const std::string who = stranger ? fmt::format("rank {}", places.here[*stranger]) : "another rank of this node";
    return give_up(rounds, no_reduction_by(refused, who));
  }
  for (std::uint32_t member = 0; member < rounds.ranks(); ++member) {
    if (!say_the_same_came_before(rounds.said(member), refused.mine))
      return give_up(rounds, out_of_step(refused, places.here[member]));
  }
  std::uint32_t member = 0;
  while (rounds.said(member) == refused.mine) ++member;
  return told_otherwise(refused, places.here[member], rounds.said(member));
}

}  // namespace farsum
