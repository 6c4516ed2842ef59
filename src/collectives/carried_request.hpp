// A call that this rank has begun and nobody waits for. Owner: collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/carried_call.hpp"
#include "collectives/carry_help.hpp"

namespace farsum {

struct CarriedRequest {
  // Taken over by the thread that makes it its program's result.
  enum class State : std::uint8_t { queued, entered, fetched, taken_over };

  // By who asks for it.
  CarriedCall call;
  const std::byte* mine = nullptr;  // until it has begun
  std::byte* result = nullptr;

  // By the carry from here on.
  SaidOfCall said;
  CarriedExtent own;                    // what this rank brings, where that is long
  std::unique_ptr<std::byte[]> answer;  // what this rank gets, where that is short, once it is fetched
  std::uint64_t number = 0;             // written when it is queued, and never after
  // Guarded by the queue's mutex.
  State state = State::queued;
  std::unique_ptr<std::byte[]> staged;  // what this rank brings of a queued call, where that is short
  // Once it is fetched.
  CarriedFinding found;
  CarriedExtent all;  // the extent with the answer, where something is long
  std::uint64_t answer_at = 0;
};

}  // namespace farsum
