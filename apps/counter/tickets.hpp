// Judges the tickets that the ranks drew. Knows nothing of Farsum but the kinds of counter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../common/any_counter.hpp"

namespace counter {

struct Verdict {
  bool right = true;
  std::string text;
};

using Tickets = std::vector<std::vector<std::uint64_t>>;  // by rank, in the order drawn

inline Verdict judge_order(const Tickets& tickets) {
  for (std::size_t r = 0; r < tickets.size(); ++r) {
    const auto fall = std::adjacent_find(tickets[r].begin(), tickets[r].end(), std::greater_equal<>());
    if (fall != tickets[r].end()) {
      return {false, fmt::format("rank {} drew ticket {} and after it {}", r, *fall, *(fall + 1))};
    }
  }
  return {};
}

// The sorted tickets must be 0, 1, 2, ... `count` - 1.
inline Verdict judge_exactly_once(const std::vector<std::pair<std::uint64_t, std::size_t>>& drawn,
                                  std::uint64_t count) {
  for (std::size_t n = 0; n < drawn.size(); ++n) {
    if (n > 0 && drawn[n].first == drawn[n - 1].first) {
      return {false, fmt::format("ticket {} was drawn twice, by ranks {} and {}", drawn[n].first, drawn[n - 1].second,
                                 drawn[n].second)};
    }
    if (drawn[n].first != n) return {false, fmt::format("ticket {} is missing: {} came instead", n, drawn[n].first)};
  }
  if (drawn.size() != count) return {false, fmt::format("{} tickets of {} were drawn", drawn.size(), count)};
  return {true, fmt::format("{} tickets, each exactly once", count)};
}

// Every ticket exactly once, those past the end of the tasks included; a leased counter promises that only below its
// limit. Each rank's tickets grow where the counter is strict.
inline Verdict judge(const Tickets& tickets, std::uint64_t tasks, apps::CounterKind kind) {
  const bool is_leased = kind == apps::CounterKind::leased;
  std::vector<std::pair<std::uint64_t, std::size_t>> drawn;
  std::uint64_t past_the_end = 0;
  for (std::size_t r = 0; r < tickets.size(); ++r) {
    for (const std::uint64_t ticket : tickets[r]) {
      const bool is_past = ticket >= tasks;
      past_the_end += is_past ? 1 : 0;
      if (!is_past || !is_leased) drawn.emplace_back(ticket, r);
    }
  }
  std::sort(drawn.begin(), drawn.end());

  if (kind == apps::CounterKind::strict) {
    if (Verdict order = judge_order(tickets); !order.right) return order;
  }
  Verdict verdict = judge_exactly_once(drawn, is_leased ? tasks : tasks + past_the_end);
  if (verdict.right) verdict.text += fmt::format(" ({} past the end)", past_the_end);
  return verdict;
}

}  // namespace counter
