// What carries the letters that the first ranks of a group's nodes send each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "base/units.hpp"

namespace farsum {

// Rounds of a team are counted from 1. In a round a rank sends another one letter at most.
class TeamPost {
 public:
  virtual ~TeamPost() = default;
  // Copies the bytes, at most most_bytes of them. False: there is no room for all of them now, and `sent`, which is 0
  // first, says how many have left; it is called again with the same bytes.
  virtual bool try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                        std::size_t& sent) = 0;
  // False: what `from` sends in that round has not come. Else `use` has been called with it, and it is gone.
  virtual bool take(Rank from, std::uint64_t team, std::uint64_t round,
                    FunctionRef<void(std::span<const std::byte>)> use) = 0;
  // Whether something has left, since this was asked last, whose answer somebody has to look for.
  virtual bool take_awaits_answers() { return true; }
  // Whether some rank has refused a letter for which it waits, so that a round may never end.
  virtual bool has_failed() const = 0;
  // How a call then fails.
  virtual Status failure(const char* doing) const = 0;

  static constexpr std::size_t most_bytes = 32768;
  // Behind one in which no rank waits for all others, so many rounds like it may follow before one in which all do.
  static constexpr std::size_t most_rounds_ahead = 8;
  // So many letters of a team and sender wait at most: of a round in which all wait and those since the one before,
  // where the receiver waited for none of them, and as many again, since the sender goes on from there when it has
  // heard of the receiver, which has not looked for its letter yet.
  static constexpr std::size_t most_waiting_of_a_sender = 2 * (most_rounds_ahead + 1) + 1;
};

}  // namespace farsum
