// The calls that a rank has begun and not taken over: those whose place is open are entered there, the others wait in
// the order in which they were begun, and what the rank gets of a call that is over is fetched. Owner: collectives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "collectives/carried_bells.hpp"
#include "collectives/carried_memory.hpp"
#include "collectives/carried_request.hpp"
#include "collectives/carry_help.hpp"

namespace farsum {

// One member's. Any thread may call, and holds the mutex for copies of what is short at most: what became whole by what
// it did it begins behind that.
class CarriedQueue {
 public:
  // Calls to which this rank was the last to come, to be begun by who is told of them.
  struct Whole {
    std::array<std::uint64_t, CarriedMemory::places> numbers{};
    std::uint32_t count = 0;
  };
  enum class Seen : std::uint8_t { under_way, over, of_another_thread };
  struct Look {
    Seen seen;
    Whole whole;
  };

  CarriedQueue(const CarriedMemory& memory, CarriedBells& bells, CarryHelp& help)
      : memory_(memory), bells_(bells), help_(help) {}

  // The request is the next call of this rank. Where it throws the call is not begun, and what has become whole before
  // is told by the next advance().
  Whole add(const std::shared_ptr<CarriedRequest>& request);
  // Enters what has room, and fetches what keeps others from entering theirs.
  Whole advance();
  // The same by the agent, which never waits for a thread of the program: whoever holds the mutex rings it. Nothing
  // where it was held.
  struct Advanced {
    Whole whole;
    bool has_changed;
  };
  std::optional<Advanced> try_to_advance();
  // The same, and fetches this one if it is over. Of a broken group it is given up.
  Look look(CarriedRequest& request);
  // Of threads that have seen one call over, one takes it over.
  Look take_over(CarriedRequest& request);

  // Requests that are not let go. Acquire pairs with the release in let_go(): where there are none, no thread uses
  // this any more for one.
  std::size_t open_requests() const { return open_requests_.load(std::memory_order_acquire); }
  // The last that is done for a request. Release: from here on another thread may free the group.
  void let_go() { open_requests_.fetch_sub(1, std::memory_order_release); }

 private:
  Whole unlock(std::unique_lock<std::mutex> lock);
  // All that follow with the mutex held.
  bool enter_and_fetch();
  bool enter_next();
  void enter(const std::shared_ptr<CarriedRequest>& request);
  bool fetch_wanted();
  void fetch(std::uint64_t of_place);
  void give_up(CarriedRequest& request, const CarriedFinding& found);
  Seen see(CarriedRequest& request);

  const CarriedMemory& memory_;
  CarriedBells& bells_;
  CarryHelp& help_;
  std::atomic<std::size_t> open_requests_{0};
  std::atomic<std::uint32_t> is_turned_away_{0};  // 1: the agent, since the mutex was held
  std::mutex mutex_;                              // guards what follows, and of requests what they say
  Whole whole_;
  std::uint64_t begun_ = 0;                                                     // calls
  std::array<std::shared_ptr<CarriedRequest>, CarriedMemory::places> entered_;  // not fetched, by place
  std::deque<std::shared_ptr<CarriedRequest>> queue_;
};

}  // namespace farsum
