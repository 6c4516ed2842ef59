// Who takes in what the first ranks of nodes send each other when a team meets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"

namespace farsum {

class TeamMail {
 public:
  virtual ~TeamMail() = default;
  // What a rank sends for a round comes in one message or more, in order. Called by whoever serves; copies the bytes.
  virtual Code on_team_message(Rank from, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                               bool is_last) = 0;
};

}  // namespace farsum
