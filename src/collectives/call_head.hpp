// What the letters of a barrier, an allgather and a broadcast between nodes begin with, so that who made another call
// is found by those whom it tells, and named to all behind them. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"

namespace farsum {

// What a node knows of a call that differs from its own.
struct OtherCall {
  enum class What : std::uint32_t { none, another_length, another_call };

  bool is_none() const { return what == What::none; }

  What what = What::none;
  Rank rank = 0;            // of the job: the first of the node that made it
  std::uint64_t bytes = 0;  // of another length: which
};

// An empty letter is a barrier's whose sender knows of no other call.
struct CallHead {
  enum class Call : std::uint64_t { barrier = 0x6261727269657221, allgather, broadcast };

  Call call;
  std::uint64_t bytes;  // what the sender brings as a member of an allgather, what the root has in a broadcast, or 0
  OtherCall other;      // behind a head that has one there is nothing
};

// What a letter from `sender`, who speaks for its node, says to one that would have sent `mine`. The letter's head is
// the first of its bytes, where it has one.
OtherCall other_call_in(std::span<const std::byte> letter, const CallHead& mine, Rank sender);

// How a call of `bytes` bytes fails because of it; ok for none.
Status differs(const char* doing, const OtherCall& other, std::uint64_t bytes);

}  // namespace farsum
