// How long it takes until nodes have met, one letter after the other: pure arithmetic. Times are in microseconds.
#pragma once

#include <cstdint>

#include "cost/model.hpp"

namespace farsum::cost {

// Each node sends a letter to each other and receives theirs: (P - 1) (o + r) + L.
double flat_meeting_us(const LinkModel& link, std::uint32_t nodes);
// So many rounds, in each of which a node sends one letter and receives one: ceil(log2 P) (o + L + r).
double dissemination_us(const LinkModel& link, std::uint32_t nodes);

// Whether nodes had better meet in one round, by the parameters that docs/MODEL.md has for TCP and by no others, for
// all ranks of a job must answer alike. Of equal times it is one round.
bool meet_at_once(std::uint32_t nodes);

}  // namespace farsum::cost
