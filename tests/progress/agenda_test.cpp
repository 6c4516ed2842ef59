// The agent's agenda: each entry alone, each two together, and a long course of turns held against a plain account of
// what was asked for. Agendas with a mistake show that the course finds it.
#include "progress/agenda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "sim/seeds.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t entry_count = agenda_entries.size();
constexpr std::uint64_t noon = 1'000'000'000'000;  // some time

// What an entry is to wait for its time, where it has none of its own.
constexpr std::uint64_t time_of(std::size_t place) {
  return agenda_entries[place].after_ns != 0 ? agenda_entries[place].after_ns : 7'000;
}

// Calls call(entry) for each of the table; the entry has its kind and its place.
template <class Call>
void for_each_entry(const Call& call) {
  [&]<std::size_t... Places>(std::index_sequence<Places...>) {
    (call(EntryOf<agenda_entries[Places].lateness>(agenda_entries[Places].name.data())), ...);
  }
  (std::make_index_sequence<entry_count>());
}

// Sets it so that it is due its time from now.
template <class AnAgenda>
void set(AnAgenda& agenda, EachTurnEntry entry, std::uint64_t) {
  agenda.come_back_for(entry, true);
}
template <class AnAgenda>
void set(AnAgenda& agenda, TimedEntry entry, std::uint64_t now_ns) {
  if (agenda_entries[entry.place()].after_ns != 0) return agenda.come_back_for(entry, now_ns);
  agenda.come_back_at(entry, now_ns + time_of(entry.place()));
}
void expect_over(Agenda& agenda, EachTurnEntry entry, std::uint64_t) { agenda.come_back_for(entry, false); }
void expect_over(Agenda& agenda, TimedEntry entry, std::uint64_t due_ns) {
  EXPECT_FALSE(agenda.take_due(entry, due_ns - 1));
  EXPECT_TRUE(agenda.take_due(entry, due_ns));
  EXPECT_FALSE(agenda.take_due(entry, due_ns + 1));
}
constexpr bool keeps_time(EachTurnEntry) { return false; }
constexpr bool keeps_time(TimedEntry) { return true; }

// ---- the table

TEST(AgendaEntries, have_a_name_each_and_a_time_where_each_turn_does_them) {
  for (std::size_t at = 0; at < entry_count; ++at) {
    EXPECT_NE(agenda_entries[at].name, "");
    for (std::size_t other = 0; other < at; ++other) EXPECT_NE(agenda_entries[at].name, agenda_entries[other].name);
    if (agenda_entries[at].lateness == Lateness::allowed) {
      EXPECT_NE(agenda_entries[at].after_ns, 0u) << agenda_entries[at].name;
    }
  }
}

// ---- alone and in pairs

TEST(Agenda, that_is_empty_lets_the_agent_sleep_until_something_happens) {
  const Agenda agenda;
  EXPECT_FALSE(agenda.needs_clock());
  EXPECT_EQ(agenda.sleep_ns(noon), 0u);
}

TEST(Agenda, has_the_agent_come_back_for_each_entry_and_then_no_more) {
  for_each_entry([](auto entry) {
    SCOPED_TRACE(agenda_entries[entry.place()].name);
    const std::uint64_t time = time_of(entry.place());
    Agenda agenda;
    set(agenda, entry, noon);
    EXPECT_EQ(agenda.needs_clock(), keeps_time(entry));
    EXPECT_EQ(agenda.sleep_ns(noon), time);
    expect_over(agenda, entry, noon + time);
    EXPECT_FALSE(agenda.needs_clock());
    EXPECT_EQ(agenda.sleep_ns(noon + time), 0u);
  });
}

TEST(Agenda, has_what_may_be_late_wait_its_time_after_each_turn) {
  for_each_entry([](auto entry) {
    if (keeps_time(entry)) return;
    Agenda agenda;
    set(agenda, entry, noon);
    EXPECT_EQ(agenda.sleep_ns(noon), agenda.sleep_ns(noon + time_of(entry.place()) / 2));
  });
}

TEST(Agenda, keeps_the_time_of_what_may_not_be_late_through_other_turns) {
  for_each_entry([](auto entry) {
    if (!keeps_time(entry)) return;
    const std::uint64_t time = time_of(entry.place());
    Agenda agenda;
    set(agenda, entry, noon);
    EXPECT_EQ(agenda.sleep_ns(noon + time - 1), 1u);
  });
}

TEST(Agenda, has_the_agent_back_at_once_for_what_is_overdue) {
  for_each_entry([](auto entry) {
    if (!keeps_time(entry)) return;
    Agenda agenda;
    set(agenda, entry, noon);
    EXPECT_EQ(agenda.sleep_ns(noon + time_of(entry.place())), 1u);
    EXPECT_EQ(agenda.sleep_ns(2 * noon), 1u);
  });
}

TEST(Agenda, does_not_put_off_what_is_kept_back_when_more_is) {
  Agenda agenda;
  agenda.come_back_for("kept back", noon);
  agenda.come_back_for("kept back", noon + 400'000);
  EXPECT_EQ(agenda.sleep_ns(noon + 400'000), 100'000u);
}

TEST(Agenda, replaces_the_networks_deadline_by_a_later_one_and_by_none) {
  Agenda agenda;
  agenda.come_back_at("network", noon + 10);
  agenda.come_back_at("network", noon + 20);
  EXPECT_FALSE(agenda.take_due("network", noon + 10));
  EXPECT_EQ(agenda.sleep_ns(noon), 20u);
  agenda.come_back_at("network", Agenda::never);
  EXPECT_EQ(agenda.sleep_ns(noon), 0u);
}

TEST(Agenda, of_two_entries_has_the_agent_back_for_the_earlier_and_then_for_the_other) {
  for_each_entry([](auto one) {
    for_each_entry([one](auto other) {
      if (one.place() == other.place()) return;
      const std::uint64_t one_time = time_of(one.place()), other_time = time_of(other.place());
      Agenda agenda;
      set(agenda, one, noon);
      set(agenda, other, noon);
      EXPECT_EQ(agenda.sleep_ns(noon), std::min(one_time, other_time));
      expect_over(agenda, one, noon + one_time);
      EXPECT_EQ(agenda.needs_clock(), keeps_time(other));
      EXPECT_EQ(agenda.sleep_ns(noon), other_time);
    });
  });
}

// ---- a long course of turns

enum class Mistake : std::uint8_t {
  none,
  overlooks_the_network,
  overlooks_unfinished_requests,
  keeps_what_is_over,
  forgets_what_is_not_due,
  puts_off_what_is_set,
  takes_early,
  never_takes,
  comes_back_a_little_late,
  comes_back_a_little_early,
  sleeps_for_ever_on_what_is_overdue,
};

template <Mistake M>
class WrongAgenda : public Agenda {
 public:
  using Agenda::come_back_for;
  void come_back_for(EachTurnEntry entry, bool is_wanted) {
    if (M == Mistake::keeps_what_is_over && !is_wanted) return;
    Agenda::come_back_for(entry, is_wanted);
  }
  void come_back_for(TimedEntry entry, std::uint64_t now_ns) {
    if (M == Mistake::puts_off_what_is_set) strike(entry);
    Agenda::come_back_for(entry, now_ns);
  }
  bool take_due(TimedEntry entry, std::uint64_t now_ns) {
    if (M == Mistake::never_takes) return false;
    const bool is_due = Agenda::take_due(entry, M == Mistake::takes_early ? now_ns + 1 : now_ns);
    if (M == Mistake::forgets_what_is_not_due) strike(entry);
    return is_due;
  }
  std::uint64_t sleep_ns(std::uint64_t now_ns) const {
    Agenda seen = *this;
    if (M == Mistake::overlooks_the_network) seen.come_back_at("network", never);
    if (M == Mistake::overlooks_unfinished_requests) seen.come_back_for("unfinished requests", false);
    const std::uint64_t ns = seen.sleep_ns(now_ns);
    if (M == Mistake::comes_back_a_little_late && ns != 0) return ns + 1;
    if (M == Mistake::comes_back_a_little_early && ns > 1) return ns - 1;
    if (M == Mistake::sleeps_for_ever_on_what_is_overdue && ns == 1) return 0;
    return ns;
  }
};

// An agent that takes turns, at the time that it was told or earlier, and what it is asked to come back for. Each entry
// has an account beside the agenda: when it is due, which the agenda must neither forget nor make up.
template <class AnAgenda>
class Course {
 public:
  explicit Course(std::uint64_t seed) : random_(seed) {}

  std::string failure_in(int turns) {
    for (int turn = 0; turn < turns && failure_.empty(); ++turn) take_turn();
    return failure_;
  }

 private:
  void take_turn() {
    for_each_entry([this](auto entry) { visit(entry); });
    const std::uint64_t sleep_ns = agenda_.sleep_ns(now_ns_);
    std::uint64_t due_ns = Agenda::never;
    for (const auto& [place, at_ns] : due_ns_) due_ns = std::min(due_ns, at_ns);
    const std::uint64_t until_ns = sleep_ns == 0 ? Agenda::never : now_ns_ + sleep_ns;
    // What is overdue is come back for at once, which is a nanosecond.
    const std::uint64_t soonest_ns = std::max(due_ns, now_ns_ + 1);
    if (until_ns > soonest_ns) fail("the agent sleeps past what is due");
    if (until_ns < soonest_ns) fail("the agent is woken for nothing");
    const bool keeps_time = std::any_of(due_ns_.begin(), due_ns_.end(), [](const auto& due) {
      return agenda_entries[due.first].lateness == Lateness::forbidden;
    });
    if (agenda_.needs_clock() != keeps_time) fail("the agent reads the clock for nothing, or does not");
    pass(sleep_ns);
  }

  void visit(EachTurnEntry entry) {
    const bool is_wanted = one_in(3);
    agenda_.come_back_for(entry, is_wanted);
    due_ns_.erase(entry.place());
    if (is_wanted) due_ns_[entry.place()] = now_ns_ + time_of(entry.place());
  }
  void visit(TimedEntry entry) {
    const auto due = due_ns_.find(entry.place());
    const bool is_due = due != due_ns_.end() && due->second <= now_ns_;
    const bool is_taken = agenda_.take_due(entry, now_ns_);
    if (is_taken && !is_due) fail("something is done before its time");
    if (!is_taken && is_due) fail("something that is due is not done");
    if (is_due) due_ns_.erase(due);
    if (agenda_entries[entry.place()].after_ns != 0) {
      visit_with_its_time(entry);
    } else {
      visit_with_a_time(entry);
    }
  }
  // It is there for some turns, one behind the other, or is not.
  void visit_with_its_time(TimedEntry entry) {
    if (one_in(20)) is_there_[entry.place()] = !is_there_[entry.place()];
    if (is_there_[entry.place()]) {
      agenda_.come_back_for(entry, now_ns_);
      due_ns_.try_emplace(entry.place(), now_ns_ + time_of(entry.place()));
    } else {
      agenda_.strike(entry);
      due_ns_.erase(entry.place());
    }
  }
  // The time may have passed already.
  void visit_with_a_time(TimedEntry entry) {
    if (!one_in(5)) return;
    const std::uint64_t at_ns = one_in(4) ? Agenda::never : now_ns_ - 10 + random_() % 1'000'000;
    agenda_.come_back_at(entry, at_ns);
    due_ns_.erase(entry.place());
    if (at_ns != Agenda::never) due_ns_[entry.place()] = at_ns;
  }

  // Until its time is up, or somebody wakes it before.
  void pass(std::uint64_t sleep_ns) {
    const std::uint64_t most_ns = sleep_ns == 0 ? 1'000'000 : sleep_ns;
    now_ns_ += one_in(2) ? most_ns : random_() % most_ns;
  }
  bool one_in(std::uint64_t of) { return random_() % of == 0; }
  void fail(const char* what) {
    if (failure_.empty()) failure_ = what;
  }

  std::mt19937_64 random_;
  AnAgenda agenda_;
  std::uint64_t now_ns_ = noon;
  std::map<std::size_t, std::uint64_t> due_ns_;
  std::array<bool, entry_count> is_there_{};
  std::string failure_;
};

// What is first found of an agenda with a mistake.
template <class AnAgenda>
std::string failure_of() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    if (std::string failure = Course<AnAgenda>(seed).failure_in(2'000); !failure.empty()) return failure;
  }
  return {};
}

TEST(AgendaCourse, never_sleeps_past_what_is_due_and_wakes_for_nothing_else) {
  for_each_seed(20, [](std::uint64_t seed) { EXPECT_EQ(Course<Agenda>(seed).failure_in(2'000), ""); });
}

constexpr const char* sleeps_past = "the agent sleeps past what is due";
constexpr const char* for_nothing = "the agent is woken for nothing";
constexpr const char* not_done = "something that is due is not done";
constexpr const char* too_early = "something is done before its time";

TEST(AgendaCourse, catches_an_agent_that_sleeps_past_what_is_due) {
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::overlooks_the_network>>(), sleeps_past);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::overlooks_unfinished_requests>>(), sleeps_past);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::forgets_what_is_not_due>>(), sleeps_past);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::puts_off_what_is_set>>(), sleeps_past);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::comes_back_a_little_late>>(), sleeps_past);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::sleeps_for_ever_on_what_is_overdue>>(), sleeps_past);
}

TEST(AgendaCourse, catches_an_agent_that_wakes_for_nothing) {
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::keeps_what_is_over>>(), for_nothing);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::comes_back_a_little_early>>(), for_nothing);
}

TEST(AgendaCourse, catches_what_is_done_early_or_not_at_all) {
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::takes_early>>(), too_early);
  EXPECT_EQ(failure_of<WrongAgenda<Mistake::never_takes>>(), not_done);
}

}  // namespace
}  // namespace farsum::test
