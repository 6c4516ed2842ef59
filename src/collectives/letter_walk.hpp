// One node's walk through the list of a collective between nodes: its first rank sends and takes the letters, and waits
// where one has not come or has no room to go. What letters hold is their content's. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "collectives/team_post.hpp"
#include "progress/waiter.hpp"
#include "trees/schedule.hpp"

namespace farsum {

class LetterContent {
 public:
  virtual ~LetterContent() = default;
  // What is held of the step's elements, at most TeamPost::most_bytes, which is read until another step is asked about.
  virtual std::span<const std::byte> held(const trees::Step& step) = 0;
  // Where it fails, the walk ends with that.
  virtual Status take(const trees::Step& step, std::span<const std::byte> letter) = 0;
};

struct LetterRound {
  TeamPost& post;
  Waiter& waiter;
  std::uint64_t team;
  std::uint64_t number;
  // Of a node, its member that speaks for it, as a rank of the job.
  FunctionRef<Rank(std::uint32_t node)> first_of;
};

// Allocates nothing. The list has at most one letter from a node to another.
Status walk_letters(const LetterRound& round, std::span<const trees::Step> steps, LetterContent& content,
                    const char* doing);

}  // namespace farsum
