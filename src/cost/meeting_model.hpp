// How long it takes until nodes have met, one letter after the other: pure arithmetic. Times are in microseconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cost/model.hpp"

namespace farsum::cost {

// Each node sends a letter to each other and receives theirs: (P - 1) (o + r) + L.
double flat_meeting_us(const LinkModel& link, std::uint32_t nodes);
// So many rounds, in each of which a node sends one letter and receives one: ceil(log2 P) (o + L + r).
double dissemination_us(const LinkModel& link, std::uint32_t nodes);

// Whether nodes had better meet in one round, by the parameters that docs/notes/model.md has for TCP and by no others,
// for all ranks of a job must answer alike. Of equal times it is one round. Never more than most_at_once do, so that
// lists of meetings have a longest one.
bool meet_at_once(std::uint32_t nodes);
constexpr std::uint32_t most_at_once = 32;
// The degree of such a list of rounds (trees::Shape::degree).
std::uint32_t meeting_degree(std::uint32_t nodes);
// What a node sends and receives in a meeting: of all others at once, or in as many rounds as a number has bits.
constexpr std::size_t most_steps_of_a_meeting = 2 * std::size_t{most_at_once};
static_assert(most_at_once >= 32);

}  // namespace farsum::cost
