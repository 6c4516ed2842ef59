// Where a request of one sender stands that could not be finished at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "memory/apply.hpp"
#include "transport/transport.hpp"

namespace farsum {

// A buffer for the operand and one for the result of the piece in work.
struct PullSlot {
  std::vector<std::byte> operand;
  std::vector<std::byte> result;
  bool busy = false;
};

struct RequestWork {
  enum class Phase : std::uint8_t { start, pulling, applying, pushing };

  Phase phase = Phase::start;
  bool transfer_under_way = false;
  Transfer transfer_result = Transfer::done;
  PullSlot* slot = nullptr;
  std::uint64_t chunk_start = 0;  // payload bytes before the chunk in work
  std::uint64_t chunk_bytes = 0;
  std::uint64_t applied = 0;  // of the chunk

  bool has_begun() const { return phase != Phase::start || chunk_start != 0 || applied != 0; }
};

// What a step of a request came to.
struct Outcome {
  enum class Step : std::uint8_t { finished, again, failed };

  Step step = Step::finished;
  Code code = Code::ok;

  // A stripe that is busy is tried again; one whose holder died never comes free.
  static Outcome not_taken(Applied taken) {
    return taken == Applied::holder_dead ? Outcome{Step::failed, Code::peer_failed} : Outcome{Step::again};
  }
  // How a transfer that is over is told to the origin.
  static Outcome of(Transfer how) {
    switch (how) {
      case Transfer::done:
        return {};
      case Transfer::started:  // it is not over
        break;
      case Transfer::refused:
      case Transfer::bad_address:
        return {Step::failed, Code::unreachable};
      case Transfer::peer_dead:
        return {Step::failed, Code::peer_failed};
    }
    return {Step::failed, Code::system};
  }
};

}  // namespace farsum
