// Every interleaving of members of a group that mix calls in which all wait for all with calls in which a member leaves
// something for another and goes on: everybody reads what belongs to the call, nobody sleeps on, no place is written to
// while it is read.
#include "lockfree/handover.hpp"

#include <array>
#include <vector>

#include "lockfree/rounds.hpp"
#include "model_atomics.hpp"
#include "model_check.hpp"

namespace farsum::model {
namespace {

constexpr std::uint32_t most_members = 3;

// Notifies nobody while it is silent.
template <class Policy>
struct Events : BasicEventCount<Policy> {
  bool is_silent = false;

  bool notify_all() { return !is_silent && BasicEventCount<Policy>::notify_all(); }
};

template <class Policy>
struct Shared {
  BasicRoundPart<Policy, Events<Policy>> rounds[most_members];
  BasicHandoverPart<Policy> handover[most_members];
  std::uint64_t pieces[most_members];
};

enum class Kind : std::uint8_t {
  to_root,    // the others leave something for the root
  from_root,  // the root leaves something for all others
  agreed,     // to_root, whose root then tells all others; they go on in a round if all have said the same
  of_all,     // all wait for all
};

struct Call {
  Kind kind;
  std::uint32_t root = 0;
  bool is_empty = false;
};

constexpr Call to(std::uint32_t root) { return {Kind::to_root, root}; }
constexpr Call from(std::uint32_t root) { return {Kind::from_root, root}; }
constexpr Call agreed_by(std::uint32_t root) { return {Kind::agreed, root}; }
constexpr Call nothing_to(std::uint32_t root) { return {Kind::to_root, root, true}; }
constexpr Call of_all() { return {Kind::of_all}; }
constexpr Call of_all_without_data() { return {Kind::of_all, 0, true}; }

// What a member does otherwise than it should.
enum class Fault : std::uint8_t {
  none,
  says_that_it_has_read_before_it_reads,
  waits_for_nobody_before_it_writes,
  waits_for_who_is_to_read_instead_of_who_was,
  wakes_nobody_when_it_has_read,
  wakes_nobody_when_it_leaves_something,
  wakes_nobody_when_it_leaves_something_for_all,
  waits_for_one_of_all_before_it_writes,
  says_nothing_where_it_reads_from_the_root,
  does_not_say_that_it_reads_nothing_where_it_tells_all,
  sleeps_where_another_member_wakes,
  counts_a_call_without_data_and_does_not_wait,
  reads_what_was_left_for_another,
  looks_last_whether_another_has_gone_to_a_round,
};

struct Plan {
  std::vector<Call> calls{};
  std::uint32_t members = 2;
  Fault fault = Fault::none;
  std::size_t killable = no_thread;
  // Where members make other calls than `calls`.
  std::vector<std::vector<Call>> by_member{};
};

template <class Policy>
class Member {
 public:
  Member(Shared<Policy>& shared, std::uint32_t me, const Plan& plan)
      : shared_(shared),
        plan_(plan),
        me_(me),
        rounds_(shared.rounds, me),
        handover_(shared.handover, nullptr, 0, plan.members, me, shared.rounds[me].events) {}

  void run() {
    calls_ = plan_.by_member.empty() ? plan_.calls : plan_.by_member[me_];
    for (const Call& call : calls_) {
      // What it has left where, and how often it has come, follows from how many calls it has made.
      forget_all_but({std::uint64_t{me_}, rounds_.calls(), rounds_.steps(), handover_.calls()});
      if (!(call.kind == Kind::of_all ? meet(call) : hand_over(call))) return;
    }
  }

 private:
  static std::uint64_t value(std::uint32_t member, std::uint64_t call) { return call * 16 + member + 1; }
  static SaidOfCall said_of(const Call& call) { return {static_cast<std::uint64_t>(call.kind), call.root}; }
  bool has(Fault fault) const { return plan_.fault == fault; }

  // False where somebody is dead for whom it waits.
  template <class Done>
  bool await(std::uint32_t member, const Done& done) {
    const bool may_die = plan_.killable != no_thread;
    const std::uint32_t sleeps_at =
        has(Fault::sleeps_where_another_member_wakes) ? (member + 1) % plan_.members : member;
    Events<Policy>& events = shared_.rounds[sleeps_at].events;
    while (!done()) {
      if (may_die && Explorer::current->is_dead(plan_.killable)) return done();
      const std::uint32_t key = events.prepare();
      if (done())
        events.cancel();
      else
        events.wait(key, may_die ? 1 : 0);
    }
    return true;
  }

  // The same outside of rounds, and where that member has gone to one.
  template <class Done>
  bool await_before_its_round(std::uint32_t member, const Done& done) {
    Awaited found = Awaited::not_yet;
    const auto is_over = [&] {
      found = look_for(member, done);
      return found != Awaited::not_yet;
    };
    if (!await(member, is_over)) return false;
    require(found == Awaited::done || !plan_.by_member.empty(), "who has done all is taken for astray");
    return found == Awaited::done;
  }

  template <class Done>
  Awaited look_for(std::uint32_t member, const Done& done) {
    if (!has(Fault::looks_last_whether_another_has_gone_to_a_round)) return rounds_.look_for(member, done);
    if (done()) return Awaited::done;
    return rounds_.has_begun_more(member) ? Awaited::astray : Awaited::not_yet;
  }

  bool meet(const Call& call) {
    rounds_.begin();
    auto& line = rounds_.line(me_);
    if (!call.is_empty) {
      const std::uint64_t mine = value(me_, rounds_.calls());
      Policy::writes(line.data, sizeof mine);
      std::memcpy(line.data, &mine, sizeof mine);
    }
    rounds_.come_and_tell();
    if (call.is_empty && has(Fault::counts_a_call_without_data_and_does_not_wait)) return true;
    for (std::uint32_t member = 0; member < plan_.members; ++member)
      if (!await(member, [&] { return rounds_.has_come(member); })) return false;
    for (std::uint32_t member = 0; member < plan_.members && !call.is_empty; ++member) {
      const std::byte* const data = rounds_.line(member).data;
      Policy::reads(data, sizeof(std::uint64_t));
      expect(data, value(member, rounds_.calls()));
    }
    return true;
  }

  bool hand_over(const Call& call) {
    handover_.begin();
    if (call.kind == Kind::from_root)
      return call.root == me_ ? leave(call, Handover::all_others) : read_from_root(call);
    if (call.kind == Kind::agreed) {
      Policy::writes(&shared_.pieces[me_], 8);
      shared_.pieces[me_] = value(me_, handover_.calls());
    }
    if (call.root != me_) return leave(call, call.root) && (call.kind != Kind::agreed || hear(call));
    return leave(call, Handover::nobody) && read_all(call);
  }

  bool wait_for_room(std::uint32_t reader) {
    if (has(Fault::waits_for_nobody_before_it_writes)) return true;
    if (has(Fault::waits_for_who_is_to_read_instead_of_who_was))
      return reader >= plan_.members || await_before_its_round(reader, [&] { return handover_.has_read(reader); });
    if (has(Fault::waits_for_one_of_all_before_it_writes)) {
      const std::uint32_t one = me_ == 0 ? 1 : 0;
      return await_before_its_round(one, [&] { return handover_.has_read(one); });
    }
    while (const std::optional<std::uint32_t> slow = handover_.slow_reader())
      if (!await_before_its_round(*slow, [&] { return handover_.has_read(*slow); })) return false;
    return true;
  }

  bool leave(const Call& call, std::uint32_t reader) {
    if (!wait_for_room(reader)) return false;
    const std::uint64_t mine = value(me_, handover_.calls());
    const auto data = std::as_bytes(std::span(&mine, call.is_empty || reader == Handover::nobody ? 0 : 1));
    if (reader == call.root && call.kind == Kind::to_root) handover_.read_nothing();
    if (reader == Handover::all_others && !has(Fault::does_not_say_that_it_reads_nothing_where_it_tells_all))
      handover_.read_nothing();
    Events<Policy>& events = shared_.rounds[me_].events;
    events.is_silent = has(Fault::wakes_nobody_when_it_leaves_something) ||
                       (reader == Handover::all_others && has(Fault::wakes_nobody_when_it_leaves_something_for_all));
    handover_.leave(said_of(call), data, reader);
    events.is_silent = false;
    return true;
  }

  void finish() {
    Events<Policy>& events = shared_.rounds[me_].events;
    events.is_silent = has(Fault::wakes_nobody_when_it_has_read);
    handover_.finish();
    events.is_silent = false;
  }

  // Reads what the members have left, if all have said what this one has.
  bool read_all(const Call& call) {
    bool is_agreed = true;
    for (std::uint32_t member = 0; member < plan_.members; ++member) {
      if (!await_before_its_round(member, [&] { return handover_.has_come(member); })) return false;
      const bool same = handover_.said(member) == said_of(call) || has(Fault::reads_what_was_left_for_another);
      require(same || !plan_.by_member.empty(), "who has said the same is taken for another");
      is_agreed = is_agreed && same;
    }
    if (has(Fault::says_that_it_has_read_before_it_reads)) finish();
    for (std::uint32_t member = 0; member < plan_.members && is_agreed && !call.is_empty; ++member)
      if (member != me_) expect(handover_.data(member, 8), value(member, handover_.calls()));
    if (call.kind == Kind::agreed) say_whether(is_agreed);
    if (!has(Fault::says_that_it_has_read_before_it_reads)) finish();
    return call.kind != Kind::agreed || !is_agreed || go_on_in_a_round();
  }

  // All read one another's pieces, and none writes its own again before.
  bool go_on_in_a_round() {
    rounds_.begin();
    rounds_.skip_step();
    for (std::uint32_t member = 0; member < plan_.members; ++member) {
      Policy::reads(&shared_.pieces[member], 8);
      require(shared_.pieces[member] == value(member, handover_.calls()), "it reads what belongs to another call");
    }
    rounds_.come_and_tell();
    for (std::uint32_t member = 0; member < plan_.members; ++member)
      if (!await(member, [&] { return rounds_.has_come(member); })) return false;
    return true;
  }

  void say_whether(bool is_agreed) {
    const std::uint64_t word = is_agreed ? 1 : 2;
    handover_.say_more(std::as_bytes(std::span(&word, 1)));
  }

  bool hear(const Call& call) {
    const auto has_answer = [&] {
      if (!handover_.has_come(call.root)) return false;
      return handover_.said(call.root) != said_of(call) || handover_.has_said_more(call.root);
    };
    if (!await_before_its_round(call.root, has_answer)) return false;
    bool is_agreed = handover_.said(call.root) == said_of(call);
    if (is_agreed) {
      std::uint64_t word = 0;
      std::memcpy(&word, handover_.data(call.root, 8), 8);
      require(word == (plan_.by_member.empty() ? 1U : 2U), "it was told something else than the root has seen");
      is_agreed = word == 1;
    }
    finish();
    return !is_agreed || go_on_in_a_round();
  }

  bool read_from_root(const Call& call) {
    if (!has(Fault::says_nothing_where_it_reads_from_the_root) && !leave(call, Handover::nobody)) return false;
    if (!await_before_its_round(call.root, [&] { return handover_.has_come(call.root); })) return false;
    const bool same = handover_.said(call.root) == said_of(call) || has(Fault::reads_what_was_left_for_another);
    require(same || !plan_.by_member.empty(), "the root has gone on before it was read");
    if (has(Fault::says_that_it_has_read_before_it_reads)) finish();
    if (same) expect(handover_.data(call.root, 8), value(call.root, handover_.calls()));
    if (!has(Fault::says_that_it_has_read_before_it_reads)) finish();
    return true;
  }

  void expect(const std::byte* data, std::uint64_t expected) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    require(word == expected, "it reads what belongs to another call");
  }

  using Handover = BasicHandover<Policy, Events<Policy>>;

  Shared<Policy>& shared_;
  const Plan& plan_;
  std::uint32_t me_;
  BasicRounds<Policy, Events<Policy>> rounds_;
  Handover handover_;
  std::vector<Call> calls_;
};

template <Mutation M = Mutation::none>
Outcome all_call(const Plan& plan, Options options = {}) {
  using Policy = ModelAtomics<M>;
  using State = Shared<Policy>;
  options.killable = plan.killable;
  std::vector<std::function<void(State&)>> members;
  for (std::uint32_t me = 0; me < plan.members; ++me)
    members.push_back([me, &plan](State& state) { Member<Policy>(state, me, plan).run(); });
  return explore<State>(options, members, [](State&) {});
}

// Of three members most is seen with so few switches, and all that is wrong below.
constexpr Options of_three = {.max_preemptions = 1};
// For more calls of three members, which switch where they wait, and whose stores come later.
constexpr Options where_they_wait = {.max_preemptions = 0};

// In make test-all: 125 plans, each explored whole.
TEST(HandoverModel, of_two_members_holds_for_every_three_calls) {
  const std::array<Call, 5> kinds = {to(0), to(1), from(0), agreed_by(1), of_all()};
  for (std::size_t which = 0; which < 125; ++which) {
    const Plan plan = {.calls = {kinds[which % 5], kinds[which / 5 % 5], kinds[which / 25]}};
    const Outcome outcome = all_call(plan, {.max_preemptions = 1});
    ASSERT_EQ(outcome.failure, "") << which << "\n" << outcome.schedule;
  }
}

// Takes seconds: the explorer goes through all its states.
TEST(HandoverModel, lets_a_leaf_go_two_calls_ahead) {
  expect_holds(all_call({.calls = {to(0), to(0), to(0), to(0)}}, {.max_preemptions = 2}));
}

// In make test-all: the explorer goes through all its states.
TEST(HandoverModel, lets_a_root_go_two_calls_ahead_of_those_that_it_tells) {
  expect_holds(all_call({.calls = {from(0), from(0), from(0), from(0)}}, {.max_preemptions = 2}));
  expect_holds(all_call({.calls = {from(0), to(0), from(0), to(1)}}, {.max_preemptions = 2}));
}

TEST(HandoverModel, of_three_members_holds_for_roots_in_turn) {
  expect_holds(all_call({.calls = {to(0), to(1)}, .members = 3}, of_three));
  for (const std::vector<Call>& calls : {std::vector{to(0), to(1), to(2)},
                                         {to(0), from(1), of_all()},
                                         {of_all(), from(2), to(1)},
                                         {from(0), from(1), from(0)},
                                         {from(0), from(0), from(0)},
                                         {agreed_by(1), nothing_to(0)}})
    expect_holds(all_call({.calls = calls, .members = 3}, where_they_wait));
}

// Rank 1 takes the wrong one for the root, which neither reads what it left nor lets it write too early.
TEST(HandoverModel, takes_nothing_that_was_left_for_another) {
  const Plan plan = {.members = 3, .by_member = {{to(0), to(0), to(0)}, {to(2), to(0), to(0)}, {to(0), to(0), to(0)}}};
  expect_holds(all_call(plan, where_they_wait));
  Plan faulty = plan;
  faulty.fault = Fault::reads_what_was_left_for_another;
  expect_caught(all_call(faulty, of_three), "race");
}

TEST(HandoverModel, tells_all_that_one_has_said_something_else) {
  expect_holds(all_call({.members = 3, .by_member = {{agreed_by(0), to(0)}, {agreed_by(0), to(0)}, {to(0), to(0)}}},
                        where_they_wait));
  expect_holds(all_call({.members = 3, .by_member = {{to(0), to(0)}, {agreed_by(0), to(0)}, {agreed_by(1), to(0)}}},
                        where_they_wait));
}

// What the root has called is no broadcast, or comes from another.
TEST(HandoverModel, takes_nothing_from_a_root_that_has_called_something_else) {
  Plan plan{.members = 3, .by_member = {{to(1), from(0)}, {to(1), from(0)}, {from(0), from(0)}}};
  expect_holds(all_call(plan, where_they_wait));
  plan.fault = Fault::reads_what_was_left_for_another;
  expect_caught(all_call(plan, of_three), "another call");
}

// Member 0 takes itself for the root of a reduce, and waits for who reads from it and goes on to nothing.
TEST(HandoverModel, catches_who_says_nothing_where_it_reads_from_the_root) {
  Plan plan{.by_member = {{to(0)}, {from(0)}}};
  expect_holds(all_call(plan));
  plan.fault = Fault::says_nothing_where_it_reads_from_the_root;
  expect_caught(all_call(plan), "deadlock");
}

// Each waits for the other to say that it has read, were it nothing.
// In make test-all: the explorer goes through all its states.
TEST(HandoverModel, lets_two_go_on_that_take_themselves_for_the_root) {
  Plan plan{.by_member = {{from(0), from(0), from(0)}, {from(1), from(1), from(1)}}};
  expect_holds(all_call(plan));
  plan.fault = Fault::does_not_say_that_it_reads_nothing_where_it_tells_all;
  expect_caught(all_call(plan), "deadlock");
}

// In make test-all: the explorer goes through all its states.
TEST(HandoverModel, leaves_nobody_asleep_for_a_member_that_is_killed_anywhere) {
  for (const std::size_t victim : {0, 1}) {
    expect_holds(all_call({.calls = {from(0), from(0), from(0)}, .killable = victim}, {.max_preemptions = 1}));
    expect_holds(all_call({.calls = {to(0), to(0), to(0)}, .killable = victim}, {.max_preemptions = 1}));
    expect_holds(all_call({.calls = {from(0), agreed_by(1), of_all()}, .killable = victim}, {.max_preemptions = 1}));
  }
}

TEST(HandoverModel, catches_a_number_that_is_seen_before_its_data) {
  expect_caught(all_call<Mutation::release_is_relaxed>({.calls = {to(0)}}), "race");
  expect_caught(all_call<Mutation::release_is_relaxed>({.calls = {of_all()}}), "race");
}

TEST(HandoverModel, catches_a_notification_before_the_store) {
  expect_caught(all_call<Mutation::modify_is_no_barrier>({.calls = {to(0)}}), "deadlock");
  expect_caught(all_call<Mutation::modify_is_no_barrier>({.calls = {of_all()}}), "deadlock");
}

TEST(HandoverModel, catches_a_lost_wake) {
  expect_caught(all_call<Mutation::wake_is_lost>({.calls = {to(0)}}), "deadlock");
}

Outcome with(Fault fault, std::vector<Call> calls, std::uint32_t members = 2) {
  return all_call({.calls = std::move(calls), .members = members, .fault = fault}, of_three);
}

TEST(HandoverModel, catches_who_says_that_it_has_read_before_it_reads) {
  expect_caught(with(Fault::says_that_it_has_read_before_it_reads, {to(0), to(0), to(0)}), "race");
  expect_caught(with(Fault::says_that_it_has_read_before_it_reads, {from(0), from(0), from(0)}), "race");
}

TEST(HandoverModel, catches_who_waits_for_nobody_before_it_writes) {
  expect_caught(with(Fault::waits_for_nobody_before_it_writes, {to(0), to(0), to(0)}), "another");
}

// Takes seconds: the explorer finds this fault late.
TEST(HandoverModel, catches_who_waits_for_one_of_all_before_it_writes) {
  expect_holds(with(Fault::none, {from(0), from(0), from(0)}, 3));
  expect_caught(with(Fault::waits_for_one_of_all_before_it_writes, {from(0), from(0), from(0)}, 3), "gone on");
}

// What rank 2 has left for rank 0 lies where it leaves something for rank 1.
TEST(HandoverModel, catches_who_waits_for_who_is_to_read_instead_of_who_was) {
  expect_caught(with(Fault::waits_for_who_is_to_read_instead_of_who_was, {to(0), to(1), to(1)}, 3), "another");
}

TEST(HandoverModel, catches_who_wakes_nobody) {
  // The root computes when it has made its first call.
  Plan plan{.by_member = {{to(0)}, {to(0), to(0), to(0)}}};
  expect_holds(all_call(plan));
  plan.fault = Fault::wakes_nobody_when_it_has_read;
  expect_caught(all_call(plan), "deadlock");
  expect_caught(with(Fault::wakes_nobody_when_it_leaves_something, {to(0)}), "deadlock");
  expect_caught(with(Fault::wakes_nobody_when_it_leaves_something_for_all, {from(0)}), "deadlock");
}

TEST(HandoverModel, catches_who_looks_last_whether_another_has_gone_to_a_round) {
  expect_holds(with(Fault::none, {to(0), of_all()}));
  expect_caught(with(Fault::looks_last_whether_another_has_gone_to_a_round, {to(0), of_all()}), "astray");
}

TEST(HandoverModel, catches_who_sleeps_where_another_member_wakes) {
  expect_caught(with(Fault::sleeps_where_another_member_wakes, {to(0)}, 3), "deadlock");
  expect_caught(with(Fault::sleeps_where_another_member_wakes, {of_all()}, 3), "deadlock");
}

TEST(HandoverModel, catches_who_counts_a_call_without_data_and_does_not_wait) {
  const std::vector<Call> calls = {of_all(), of_all_without_data(), of_all()};
  expect_holds(with(Fault::none, calls));
  expect_caught(with(Fault::counts_a_call_without_data_and_does_not_wait, calls), "another call");
}

}  // namespace
}  // namespace farsum::model
