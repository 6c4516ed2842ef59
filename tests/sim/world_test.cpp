// The simulator itself: time, replay, faults, the card.
#include "transport/sim/sim_world.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "transport/sim/checkers.hpp"
#include "transport/sim/script.hpp"
#include "transport/sim/sim_card.hpp"

namespace farsum {
namespace {

// Adds the message's number to a counter and answers with the counter's value before.
class CountingHandler final : public RequestHandler {
 public:
  explicit CountingHandler(std::uint64_t* counter) : counter_(counter) {}
  Served on_request(Rank, std::span<const std::byte> message, std::span<std::byte> reply_room, ReplyToken) override {
    std::uint64_t operand = 0;
    std::memcpy(&operand, message.data(), sizeof operand);
    std::memcpy(reply_room.data(), counter_, sizeof *counter_);
    *counter_ += operand;
    return {.reply_bytes = sizeof operand};
  }

 private:
  std::uint64_t* counter_;
};

class LastReply final : public ReplyHandler {
 public:
  void on_reply(Rank, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    codes[ticket] = code;
    std::uint64_t value = 0;
    std::memcpy(&value, reply.data(), std::min(reply.size(), sizeof value));
    values[ticket] = value;
  }
  std::map<std::uint64_t, Code> codes;
  std::map<std::uint64_t, std::uint64_t> values;
};

struct Member {
  Member(SimWorld& world, Rank rank) : program(world, rank) {
    program.set_drive([this, &world, rank] {
      const std::vector<Rank> peers = world.transport(rank).peers_with_replies();
      for (const Rank peer : peers) world.transport(rank).poll_replies(peer, replies);
    });
  }
  SimRank program;
  LastReply replies;
};

std::span<const std::byte> word_bytes(const std::uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

SimTask<std::uint64_t> fetch_add(Member& member, Rank owner, std::uint64_t operand) {
  SimTransport& transport = member.program.world().transport(member.program.rank());
  std::optional<std::uint64_t> ticket;
  co_await member.program.until([&] {
    ticket = transport.try_post(owner, word_bytes(operand), {}, {.reply_capacity = sizeof operand});
    return ticket.has_value();
  });
  co_await member.program.until([&] { return member.replies.codes.contains(*ticket); });
  co_return member.replies.values[*ticket];
}

SimTask<> take_tickets(Member& member, int count, History& history) {
  SimWorld& world = member.program.world();
  for (int i = 0; i < count; ++i) {
    const auto call = history.invoke({.rank = member.program.rank(), .action = HistoryAction::fetch_add, .operand = 1},
                                     world.now_ns());
    const std::uint64_t ticket = co_await fetch_add(member, 0, 1);
    history.respond(call, ticket, world.now_ns());
    world.note(ticket);
    co_await member.program.sleep(world.random().below(5'000));
  }
}

struct CounterRun {
  std::uint64_t hash = 0;
  std::uint64_t counter = 0;
  History history;
  std::vector<SimTraceLine> trace;
  bool all_finished = true;
};

CounterRun run_counter(std::uint64_t seed, Rank ranks, int tickets, SimOptions options = {}) {
  CounterRun run;
  SimWorld world(seed, ranks, options);
  CountingHandler handler(&run.counter);
  world.set_request_handler(0, &handler);
  std::vector<std::unique_ptr<Member>> members;
  for (Rank rank = 0; rank < ranks; ++rank) members.push_back(std::make_unique<Member>(world, rank));
  for (Rank rank = 1; rank < ranks; ++rank)
    members[rank]->program.start(take_tickets(*members[rank], tickets, run.history));
  world.run();
  for (const auto& member : members) run.all_finished = run.all_finished && member->program.is_finished();
  run.hash = world.trace_hash();
  run.trace = world.trace();
  return run;
}

TEST(SimWorld, gives_every_rank_its_own_tickets) {
  const CounterRun run = run_counter(1, 50, 10);
  EXPECT_TRUE(run.all_finished);
  const Verdict verdict = check_tickets(run.history.calls(), 0, 49 * 10);
  EXPECT_TRUE(verdict.holds()) << verdict.why;
}

TEST(SimWorld, replays_a_seed_event_for_event) {
  const SimOptions options{.record_trace = true};
  const CounterRun one = run_counter(7, 40, 8, options);
  const CounterRun other = run_counter(7, 40, 8, options);
  ASSERT_EQ(one.trace.size(), other.trace.size());
  for (std::size_t i = 0; i < one.trace.size(); ++i)
    ASSERT_EQ(one.trace[i].text(), other.trace[i].text()) << "event " << i;
  EXPECT_EQ(one.hash, other.hash);
}

TEST(SimWorld, takes_another_course_with_another_seed) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) hashes.insert(run_counter(seed, 10, 3).hash);
  EXPECT_EQ(hashes.size(), 20u);
}

TEST(SimWorld, serves_senders_in_another_order_with_another_seed) {
  std::set<std::vector<Rank>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const CounterRun run = run_counter(seed, 8, 1);
    std::vector<Rank> order(8, 0);
    for (const HistoryCall& call : run.history.calls()) order[call.result] = call.rank;
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 15u);
}

TEST(SimWorld, gives_memory_at_the_same_addresses_every_time) {
  std::byte* first = nullptr;
  {
    SimWorld world(1, 1);
    first = world.memory().allocate(100).data();
  }
  SimWorld world(2, 1);
  EXPECT_EQ(world.memory().allocate(100).data(), first);
}

TEST(SimWorld, keeps_a_frozen_rank_from_answering_until_it_thaws) {
  std::uint64_t counter = 0;
  SimWorld world(3, 2);
  CountingHandler handler(&counter);
  world.set_request_handler(0, &handler);
  world.freeze_after(0, 0, 50'000'000);
  Member member(world, 1);
  History history;
  member.program.start(take_tickets(member, 1, history), 1'000);
  world.run();
  ASSERT_TRUE(member.program.is_finished());
  EXPECT_GE(history.calls()[0].responded_ns, 50'000'000u);
}

TEST(SimWorld, answers_whoever_waits_for_a_killed_rank) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::uint64_t counter = 0;
    SimWorld world(seed, 3);
    CountingHandler handler(&counter);
    world.set_request_handler(0, &handler);
    world.kill_after(0, seed * 500);
    Member member(world, 1);
    std::vector<Rank> told;
    world.set_death_hook(2, [&told](Rank dead) { told.push_back(dead); });
    const std::uint64_t one = 1;
    for (int i = 0; i < 8; ++i)
      ASSERT_TRUE(world.transport(1).try_post(0, word_bytes(one), {}, {.reply_capacity = sizeof one}));
    world.run();
    ASSERT_EQ(member.replies.codes.size(), 8u) << "seed " << seed;
    // In order: those served before the death, then the failed ones.
    std::uint64_t answered = 0;
    for (const auto& [ticket, code] : member.replies.codes) {
      if (code != Code::ok) continue;
      EXPECT_EQ(answered++, ticket) << "seed " << seed;
    }
    EXPECT_EQ(answered, counter) << "seed " << seed;
    EXPECT_EQ(told, std::vector<Rank>{0});
    // And later ones too.
    ASSERT_TRUE(world.transport(1).try_post(0, word_bytes(one), {}, {.reply_capacity = sizeof one}));
    world.run();
    EXPECT_EQ(member.replies.codes[8], Code::peer_failed);
  }
}

TEST(SimWorld, lets_a_killed_ranks_program_do_nothing_more) {
  SimWorld world(4, 1);
  SimRank rank(world, 0);
  int steps = 0;
  rank.start([](SimRank& self, int& count) -> SimTask<> {
    for (;;) {
      ++count;
      co_await self.sleep(1'000);
    }
  }(rank, steps));
  world.kill_after(0, 10'500);
  EXPECT_TRUE(world.run(1'000));
  EXPECT_EQ(steps, 11);
}

class TransferLog final : public TransferHandler {
 public:
  void on_transfer(std::uint64_t cookie, Transfer how) override { ends[cookie] = how; }
  std::map<std::uint64_t, Transfer> ends;
};

// The half that was copied first may be older than the other: what a reader without a lock must reckon with.
TEST(SimWorld, tears_a_transfer_when_asked_to) {
  int torn = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimWorld world(seed, 2, {.torn_transfers = true});
    TransferLog log;
    world.transport(0).set_transfer_handler(&log);
    const std::span<std::byte> memory = world.memory().allocate(64);
    std::vector<std::byte> copy(64);
    world.call_after(5'000, [memory] { std::memset(memory.data(), 0xff, memory.size()); });
    ASSERT_EQ(world.transport(0).read(1, reinterpret_cast<std::uintptr_t>(memory.data()), copy, 5), Transfer::started);
    world.run();
    ASSERT_EQ(log.ends[5], Transfer::done);
    torn += copy.front() != copy.back();
  }
  EXPECT_GT(torn, 10);
  EXPECT_LT(torn, 100);
}

// --- The card. ---

enum class Executor : std::uint8_t { card, cpu, either };

struct MixRun {
  History history;
  std::uint64_t final_value = 0;
};

// Several ranks add to one word of rank 0, by its card, by its CPU, or by both at random: the last is the illegal mix.
MixRun run_mix(std::uint64_t seed, Executor executor) {
  constexpr Rank ranks = 6;
  constexpr int adds = 10;
  MixRun run;
  SimWorld world(seed, ranks, {.card_gap = {200, 2'000}});
  auto* const word = reinterpret_cast<std::uint64_t*>(world.memory().allocate(sizeof(std::uint64_t)).data());
  CountingHandler handler(word);
  world.set_request_handler(0, &handler);

  struct Adder {
    static SimTask<> program(Member& member, std::uint64_t* word, Executor executor, History& history) {
      SimWorld& world = member.program.world();
      for (int i = 0; i < adds; ++i) {
        const auto call = history.invoke(
            {.rank = member.program.rank(), .action = HistoryAction::fetch_add, .operand = 1}, world.now_ns());
        const bool by_card = executor == Executor::card || (executor == Executor::either && world.random().once_in(2));
        std::uint64_t before = 0;
        if (by_card) {
          bool is_answered = false;
          world.card(0).fetch_add(member.program.rank(), word, 1, [&](Code, std::uint64_t old) {
            before = old;
            is_answered = true;
          });
          co_await member.program.until([&] { return is_answered; });
        } else {
          before = co_await fetch_add(member, 0, 1);
        }
        history.respond(call, before, world.now_ns());
      }
    }
  };

  std::vector<std::unique_ptr<Member>> members;
  for (Rank rank = 0; rank < ranks; ++rank) members.push_back(std::make_unique<Member>(world, rank));
  for (Rank rank = 1; rank < ranks; ++rank) {
    members[rank]->program.start(Adder::program(*members[rank], word, executor, run.history));
  }
  world.run();
  run.final_value = *word;
  return run;
}

TEST(SimCard, is_exact_when_only_the_card_touches_the_word) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const MixRun run = run_mix(seed, Executor::card);
    const Verdict verdict = check_tickets(run.history.calls(), 0, run.final_value);
    EXPECT_TRUE(verdict.holds()) << "seed " << seed << ": " << verdict.why;
    EXPECT_EQ(run.final_value, 50u);
  }
}

TEST(SimCard, leaves_words_exact_that_only_the_cpu_touches) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const MixRun run = run_mix(seed, Executor::cpu);
    const Verdict verdict = check_tickets(run.history.calls(), 0, run.final_value);
    EXPECT_TRUE(verdict.holds()) << "seed " << seed << ": " << verdict.why;
    EXPECT_EQ(run.final_value, 50u);
  }
}

TEST(SimCard, loses_updates_in_an_illegal_mix_and_the_checkers_say_so) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const MixRun run = run_mix(seed, Executor::either);
    const bool has_lost = run.final_value != 50;
    lost += has_lost;
    EXPECT_EQ(check_sum(run.history.calls(), 0, run.final_value).holds(), !has_lost) << "seed " << seed;
    EXPECT_EQ(check_tickets(run.history.calls(), 0, run.final_value).holds(), !has_lost) << "seed " << seed;
    EXPECT_EQ(check_linearizable(run.history.calls(), 0, run.final_value).holds(), !has_lost) << "seed " << seed;
  }
  EXPECT_GT(lost, 20);
}

TEST(SimCard, lets_one_of_many_compare_and_swaps_win) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimWorld world(seed, 10);
    auto* const word = reinterpret_cast<std::uint64_t*>(world.memory().allocate(sizeof(std::uint64_t)).data());
    int winners = 0;
    for (Rank rank = 1; rank < 10; ++rank) {
      world.card(0).compare_and_swap(rank, word, 0, rank, [&winners](Code, std::uint64_t old) { winners += old == 0; });
    }
    world.run();
    EXPECT_EQ(winners, 1);
    EXPECT_NE(*word, 0u);
  }
}

}  // namespace
}  // namespace farsum
