// What a run's ranks asked and were answered, and when: the evidence that checkers.hpp judges.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum {

enum class HistoryAction : std::uint8_t {
  fetch_add,  // result: the value before
  add,
  read,  // result: the value
  write,
  swap,              // result: the value before
  compare_and_swap,  // result: the value before; writes operand where that was `compare`
  lock_shared,
  lock_exclusive,
  unlock_shared,
  unlock_exclusive,
};

const char* name_of(HistoryAction action);

// The moment of an answer that never came: the caller died, or the run ended.
inline constexpr std::uint64_t no_moment = ~std::uint64_t{0};

struct HistoryCall {
  Rank rank = 0;
  HistoryAction action = HistoryAction::read;
  std::uint64_t object = 0;  // element or lock, named as the test likes
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  std::uint64_t result = 0;
  // Moments order what happened anywhere in the run; no two are the same.
  std::uint64_t invoked = 0;
  std::uint64_t responded = no_moment;
  SimTime invoked_ns = 0;
  SimTime responded_ns = 0;

  bool is_answered() const { return responded != no_moment; }
  std::string text() const;
};

struct HistoryDeath {
  Rank rank = 0;
  std::uint64_t moment = 0;
};

class History {
 public:
  using CallId = std::size_t;

  // `call` without its moments and result.
  CallId invoke(HistoryCall call, SimTime now_ns);
  void respond(CallId id, std::uint64_t result, SimTime now_ns);
  // Whatever the rank held counts as released from here on.
  void die(Rank rank) { deaths_.push_back({.rank = rank, .moment = ++moment_}); }

  const std::vector<HistoryCall>& calls() const { return calls_; }
  const std::vector<HistoryDeath>& deaths() const { return deaths_; }
  // The calls on one object, in order of invocation.
  std::vector<HistoryCall> calls_on(std::uint64_t object) const;
  // Every object once, ascending.
  std::vector<std::uint64_t> objects() const;

 private:
  std::uint64_t moment_ = 0;
  std::vector<HistoryCall> calls_;
  std::vector<HistoryDeath> deaths_;
};

}  // namespace farsum
