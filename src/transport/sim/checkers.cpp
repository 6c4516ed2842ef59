#include "transport/sim/checkers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

namespace farsum {

namespace {

Verdict violated(std::string why) { return {.outcome = Verdict::Outcome::violated, .why = std::move(why)}; }

std::vector<std::uint64_t> unanswered_operands(const std::vector<HistoryCall>& calls) {
  std::vector<std::uint64_t> operands;
  for (const HistoryCall& call : calls) {
    if (!call.is_answered()) operands.push_back(call.operand);
  }
  return operands;
}

// Whether some of `operands` add up to `sum`. Bounded: beyond `most_sums` different sums anything is taken to be
// possible.
bool some_add_up_to(const std::vector<std::uint64_t>& operands, std::uint64_t sum) {
  constexpr std::size_t most_sums = 1 << 16;
  std::unordered_set<std::uint64_t> sums{0};
  for (const std::uint64_t operand : operands) {
    if (sums.size() > most_sums) return true;
    const std::vector<std::uint64_t> before(sums.begin(), sums.end());
    for (const std::uint64_t other : before) sums.insert(other + operand);
  }
  return sums.contains(sum);
}

}  // namespace

Verdict check_tickets(const std::vector<HistoryCall>& calls, std::uint64_t initial,
                      std::optional<std::uint64_t> final_value) {
  std::vector<HistoryCall> answered;
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(answered),
               [](const HistoryCall& call) { return call.is_answered(); });
  std::sort(answered.begin(), answered.end(),
            [](const HistoryCall& one, const HistoryCall& other) { return one.result < other.result; });
  const std::vector<std::uint64_t> unanswered = unanswered_operands(calls);

  std::uint64_t next = initial;
  std::uint64_t missing = 0;
  const HistoryCall* latest = nullptr;  // of the smaller tickets, the one invoked last
  for (const HistoryCall& call : answered) {
    if (call.result < next) return violated(fmt::format("a ticket below {} was given again: {}", next, call.text()));
    if (call.result > next && !some_add_up_to(unanswered, call.result - next)) {
      return violated(fmt::format("nobody took the tickets from {} to {}: {}", next, call.result, call.text()));
    }
    missing += call.result - next;
    next = call.result + call.operand;
    if (latest != nullptr && call.responded < latest->invoked) {
      return violated(fmt::format("a smaller ticket was given later: {}; before it {}", latest->text(), call.text()));
    }
    if (latest == nullptr || latest->invoked < call.invoked) latest = &call;
  }
  if (final_value) missing += *final_value - next;
  if (!some_add_up_to(unanswered, missing)) {
    return violated(
        fmt::format("answered calls end at {}, the counter at {}, and no unanswered calls explain the {} missing", next,
                    final_value.value_or(next), missing));
  }
  return {};
}

Verdict check_sum(const std::vector<HistoryCall>& calls, std::uint64_t initial, std::uint64_t final_value) {
  std::uint64_t sum = initial;
  for (const HistoryCall& call : calls) {
    if (call.is_answered()) sum += call.operand;
  }
  if (some_add_up_to(unanswered_operands(calls), final_value - sum)) return {};
  return violated(fmt::format("the sum is {} where {} calls make it {}", final_value, calls.size(), sum));
}

namespace {

// One rank's change of what it holds.
struct Grip {
  std::uint64_t moment = 0;
  Rank rank = 0;
  bool is_taken = false;
  bool is_exclusive = false;
  bool is_death = false;
  const HistoryCall* call = nullptr;
};

std::vector<Grip> grips_of(const std::vector<HistoryCall>& calls, const std::vector<HistoryDeath>& deaths) {
  std::vector<Grip> grips;
  for (const HistoryCall& call : calls) {
    const bool is_exclusive =
        call.action == HistoryAction::lock_exclusive || call.action == HistoryAction::unlock_exclusive;
    const bool is_taken = call.action == HistoryAction::lock_exclusive || call.action == HistoryAction::lock_shared;
    if (is_taken && !call.is_answered()) continue;
    grips.push_back({.moment = is_taken ? call.responded : call.invoked,
                     .rank = call.rank,
                     .is_taken = is_taken,
                     .is_exclusive = is_exclusive,
                     .call = &call});
  }
  for (const HistoryDeath& death : deaths)
    grips.push_back({.moment = death.moment, .rank = death.rank, .is_death = true});
  std::sort(grips.begin(), grips.end(), [](const Grip& one, const Grip& other) { return one.moment < other.moment; });
  return grips;
}

}  // namespace

Verdict check_lock(const std::vector<HistoryCall>& calls, const std::vector<HistoryDeath>& deaths) {
  std::multimap<Rank, const HistoryCall*> shared;
  std::multimap<Rank, const HistoryCall*> exclusive;
  for (const Grip& grip : grips_of(calls, deaths)) {
    if (grip.is_death) {
      shared.erase(grip.rank);
      exclusive.erase(grip.rank);
      continue;
    }
    auto& same = grip.is_exclusive ? exclusive : shared;
    if (!grip.is_taken) {
      const auto held = same.find(grip.rank);
      if (held == same.end()) return violated("released without being held: " + grip.call->text());
      same.erase(held);
      continue;
    }
    if (!exclusive.empty()) {
      return violated(fmt::format("two hold it: {} and {}", exclusive.begin()->second->text(), grip.call->text()));
    }
    if (grip.is_exclusive && !shared.empty()) {
      return violated(fmt::format("two hold it: {} and {}", shared.begin()->second->text(), grip.call->text()));
    }
    same.emplace(grip.rank, grip.call);
  }
  return {};
}

namespace {

// What `call` makes of the element, or nothing when its answer cannot come from `value`.
std::optional<std::uint64_t> apply(const HistoryCall& call, std::uint64_t value) {
  const bool answer_fits = !call.is_answered() || call.result == value;
  switch (call.action) {
    case HistoryAction::add:
      return value + call.operand;
    case HistoryAction::write:
      return call.operand;
    case HistoryAction::fetch_add:
      return answer_fits ? std::optional(value + call.operand) : std::nullopt;
    case HistoryAction::read:
      return answer_fits ? std::optional(value) : std::nullopt;
    case HistoryAction::swap:
      return answer_fits ? std::optional(call.operand) : std::nullopt;
    case HistoryAction::compare_and_swap:
      return answer_fits ? std::optional(value == call.compare ? call.operand : value) : std::nullopt;
    case HistoryAction::lock_shared:
    case HistoryAction::lock_exclusive:
    case HistoryAction::unlock_shared:
    case HistoryAction::unlock_exclusive:
      return std::nullopt;
  }
  return std::nullopt;
}

// The search for an order. Invocations and answers form one list by moment. A call can come next when its invocation
// stands before the first answer in the list; taking it removes both of its entries, and meeting an answer first means
// going back.
class Linearization {
 public:
  Linearization(std::vector<HistoryCall> calls, std::uint64_t initial, std::uint64_t most_steps)
      : calls_(std::move(calls)), value_(initial), steps_left_(most_steps), taken_((calls_.size() + 63) / 64, 0) {
    build_list();
  }

  Verdict search();

 private:
  static constexpr std::size_t end = ~std::size_t{0};
  struct Entry {
    std::size_t call;
    bool is_answer;
    std::size_t before;
    std::size_t after;
  };
  struct Taken {
    std::size_t entry;
    std::uint64_t value_before;
  };

  void build_list();
  void remove(std::size_t entry);
  void restore(std::size_t entry);
  void take(std::size_t entry, std::uint64_t value);
  std::size_t take_back();
  bool is_new_configuration(std::size_t call, std::uint64_t value);

  std::vector<HistoryCall> calls_;
  std::uint64_t value_;
  std::uint64_t steps_left_;
  std::vector<std::uint64_t> taken_;  // one bit a call
  std::vector<Entry> entries_;
  std::vector<std::size_t> answer_of_;  // entry of each call's answer; end when it has none
  std::size_t head_ = end;
  std::size_t answers_left_ = 0;
  std::vector<Taken> order_;
  std::unordered_set<std::string> seen_;
};

void Linearization::build_list() {
  for (std::size_t call = 0; call < calls_.size(); ++call) {
    entries_.push_back({.call = call, .is_answer = false, .before = end, .after = end});
    if (calls_[call].is_answered()) entries_.push_back({.call = call, .is_answer = true, .before = end, .after = end});
  }
  const auto moment = [this](const Entry& entry) {
    return entry.is_answer ? calls_[entry.call].responded : calls_[entry.call].invoked;
  };
  std::sort(entries_.begin(), entries_.end(),
            [&](const Entry& one, const Entry& other) { return moment(one) < moment(other); });
  answer_of_.assign(calls_.size(), end);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].before = i == 0 ? end : i - 1;
    entries_[i].after = i + 1 == entries_.size() ? end : i + 1;
    if (!entries_[i].is_answer) continue;
    answer_of_[entries_[i].call] = i;
    ++answers_left_;
  }
  head_ = entries_.empty() ? end : 0;
}

void Linearization::remove(std::size_t entry) {
  const Entry& it = entries_[entry];
  if (it.before == end)
    head_ = it.after;
  else
    entries_[it.before].after = it.after;
  if (it.after != end) entries_[it.after].before = it.before;
}

// Undoes the last remove() that is not undone yet: the neighbours are as they were then.
void Linearization::restore(std::size_t entry) {
  const Entry& it = entries_[entry];
  if (it.before == end)
    head_ = entry;
  else
    entries_[it.before].after = entry;
  if (it.after != end) entries_[it.after].before = entry;
}

void Linearization::take(std::size_t entry, std::uint64_t value) {
  const std::size_t call = entries_[entry].call;
  order_.push_back({.entry = entry, .value_before = value_});
  taken_[call / 64] |= std::uint64_t{1} << (call % 64);
  value_ = value;
  remove(entry);
  if (answer_of_[call] == end) return;
  remove(answer_of_[call]);
  --answers_left_;
}

// Returns the entry taken last, now back in the list.
std::size_t Linearization::take_back() {
  const Taken last = order_.back();
  order_.pop_back();
  const std::size_t call = entries_[last.entry].call;
  if (answer_of_[call] != end) {
    restore(answer_of_[call]);
    ++answers_left_;
  }
  restore(last.entry);
  taken_[call / 64] &= ~(std::uint64_t{1} << (call % 64));
  value_ = last.value_before;
  return last.entry;
}

bool Linearization::is_new_configuration(std::size_t call, std::uint64_t value) {
  std::string key(reinterpret_cast<const char*>(taken_.data()), taken_.size() * sizeof(std::uint64_t));
  key[call / 8] = static_cast<char>(key[call / 8] | (1 << (call % 8)));
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
  return seen_.insert(std::move(key)).second;
}

Verdict Linearization::search() {
  std::size_t deepest = 0;
  const HistoryCall* stuck_at = nullptr;
  std::size_t entry = head_;
  while (answers_left_ > 0) {
    if (steps_left_-- == 0) return {.outcome = Verdict::Outcome::undecided, .why = "the search reached its bound"};
    if (entry != end && !entries_[entry].is_answer) {
      const std::size_t call = entries_[entry].call;
      const std::optional<std::uint64_t> value = apply(calls_[call], value_);
      if (value && is_new_configuration(call, *value)) {
        take(entry, *value);
        entry = head_;
      } else {
        entry = entries_[entry].after;
      }
      continue;
    }
    if (entry != end && order_.size() >= deepest) {
      deepest = order_.size();
      stuck_at = &calls_[entries_[entry].call];
    }
    if (order_.empty()) {
      return violated(
          fmt::format("no order of the {} calls explains their results; {} can be explained, and then not: {}",
                      calls_.size(), deepest, stuck_at == nullptr ? "" : stuck_at->text()));
    }
    entry = entries_[take_back()].after;
  }
  return {};
}

}  // namespace

Verdict check_linearizable(const std::vector<HistoryCall>& calls, std::uint64_t initial,
                           std::optional<std::uint64_t> final_value, std::uint64_t most_steps) {
  std::vector<HistoryCall> all = calls;
  if (final_value) {
    std::uint64_t last = 0;
    for (const HistoryCall& call : calls)
      last = std::max({last, call.invoked, call.is_answered() ? call.responded : 0});
    all.push_back({.action = HistoryAction::read, .result = *final_value, .invoked = last + 1, .responded = last + 2});
  }
  return Linearization(std::move(all), initial, most_steps).search();
}

Verdict check_everything(const History& history) {
  std::map<std::uint64_t, std::vector<HistoryCall>> by_object;
  for (const HistoryCall& call : history.calls()) by_object[call.object].push_back(call);
  for (const auto& [object, calls] : by_object) {
    const bool is_lock = calls.front().action >= HistoryAction::lock_shared;
    Verdict verdict = is_lock ? check_lock(calls, history.deaths()) : check_linearizable(calls, 0, std::nullopt);
    if (verdict.holds()) continue;
    verdict.why = fmt::format("object {}: {}", object, verdict.why);
    return verdict;
  }
  return {};
}

}  // namespace farsum
