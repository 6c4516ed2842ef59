// Judges of histories. Each takes the calls on one object, in any order, and what the object held before and after; all
// numbers are 64-bit integers that wrap. A call that was never answered may have taken effect at any time after its
// invocation, or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/sim/history.hpp"

namespace farsum {

struct Verdict {
  enum class Outcome : std::uint8_t {
    holds,
    violated,
    undecided,  // the search gave up at its bound: make the history shorter
  };
  Outcome outcome = Outcome::holds;
  std::string why;

  bool holds() const { return outcome == Outcome::holds; }
};

// Fetch-adds of positive amounts on a counter: the intervals [ticket, ticket + amount) are disjoint, begin at
// `initial`, leave only gaps that unanswered calls can have taken, end at `final_value`, and come in an order that real
// time allows. For such a counter this is linearizability, decided in n log n.
Verdict check_tickets(const std::vector<HistoryCall>& calls, std::uint64_t initial,
                      std::optional<std::uint64_t> final_value);

// Adds and fetch-adds whose order does not matter: `final_value` is `initial`, plus all that were answered, plus some
// of the others.
Verdict check_sum(const std::vector<HistoryCall>& calls, std::uint64_t initial, std::uint64_t final_value);

// One lock: never an exclusive holder together with any other, and nobody releases what it does not hold. A rank holds
// from its lock call's answer to its unlock call's invocation, or to its death.
Verdict check_lock(const std::vector<HistoryCall>& calls, const std::vector<HistoryDeath>& deaths);

// One element under any mix of reads, writes, adds, swaps and compare-and-swaps is linearizable: there is an order of
// the calls, each between its invocation and its answer, that explains every result and `final_value`. Searches as Wing
// and Gong (1993) with Lowe's memory of configurations (2017); the work grows with the number of calls that overlap,
// and ends at `most_steps`.
Verdict check_linearizable(const std::vector<HistoryCall>& calls, std::uint64_t initial,
                           std::optional<std::uint64_t> final_value, std::uint64_t most_steps = 20'000'000);

// Every object of the history that lock calls name goes to check_lock, every other one, initially 0, to
// check_linearizable. The first violation.
Verdict check_everything(const History& history);

}  // namespace farsum
