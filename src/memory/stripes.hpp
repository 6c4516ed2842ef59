// Takes the stripes of a range and gives them back: the locks under which whoever updates memory does so, lock-free
// ones among them. What is done under them is the caller's.
#pragma once

#include <cstdint>

#include "lockfree/lock_free_permit.hpp"
#include "memory/atomicity.hpp"
#include "memory/lock_agent.hpp"

namespace farsum {

enum class Applied : std::uint8_t { done, busy, holder_dead };

inline bool rank_is_dead(const LockAgent& agent, std::uint32_t rank) {
  return agent.liveness != nullptr && agent.liveness->is_dead(rank);
}

// The permits of the other ranks, as they concern `agent`.
inline auto permits_of(const LockAgent& agent) {
  return Permits{static_cast<std::uint32_t>(agent.permits->of_ranks.size()),
                 [&agent](std::uint32_t rank) -> const LockFreePermit& { return *agent.permits->of_ranks[rank]; },
                 [&agent](std::uint32_t rank) { return rank_is_dead(agent, rank); }, agent.may_wait};
}

// Takes a stripe, also one that is lock-free.
Applied take_stripe(StripeLock& lock, const LockAgent& agent);
// Takes the stripes of [offset, offset + bytes), two at most, or says why not and holds none.
Applied take_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes, const LockAgent& agent);
// The same for the first `run` of `left` bytes, for a caller who will come for all of them, one run after the other:
// lock-free stripes among them are revoked together, for one revocation costs what several do.
Applied take_first_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t run, std::uint64_t left,
                           const LockAgent& agent);
void release_stripes(const AtomicDomain& domain, std::uint64_t offset, std::uint64_t bytes);

}  // namespace farsum
