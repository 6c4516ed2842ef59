// What a rank says of a reduction to others, or on one node of a broadcast, in two words, and the sentences that it
// gets where others have called something else. Owner: collectives.
#pragma once

#include <cstdint>
#include <string>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "collectives/reduction_call.hpp"
#include "lockfree/said_of_call.hpp"

namespace farsum {

SaidOfCall said_of(const GroupReduction& asked, ReduceOrder order);
SaidOfCall said_of_broadcast(std::uint64_t bytes, std::uint32_t root);
bool is_broadcast(const SaidOfCall& said);
std::uint32_t root_of(const SaidOfCall& said);
// Says as well, modulo 256, how many calls of another kind the ranks of a node have made before. Who then says another
// number has made the group's calls in another order, whatever else it says.
void say_what_came_before(SaidOfCall& said, std::uint64_t calls);
bool say_the_same_came_before(const SaidOfCall& one, const SaidOfCall& other);
// Whether these are words that said_of() makes of a reduction.
bool makes_sense(const SaidOfCall& said);

// Who gets a sentence, and in which call.
struct RefusedReduction {
  const char* doing;
  std::uint32_t my_rank;
  const SaidOfCall& mine;
};

Status told_otherwise(const RefusedReduction& refused, std::uint32_t rank, const SaidOfCall& other);
// The same, or gone_on(), where ranks wait for one that does not come.
Status for_good(const Status& told);
// As `who` of the next.
std::string name_of_node(std::uint32_t first_rank);
Status no_reduction_by(const RefusedReduction& refused, const std::string& who);
// Of an order by ranks that are scattered so that a letter has no room for an element of each aligned block of them.
Status too_scattered(const RefusedReduction& refused);
// Of ranks that have made other calls before this one.
Status out_of_step(const RefusedReduction& refused, std::uint32_t rank);
// Of a rank that names another root, and does not wait for this one.
Status gone_on(const RefusedReduction& refused, std::uint32_t rank);

}  // namespace farsum
