// Locks, posts and completes that reach an owner as messages, beside those of ranks that share its memory.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "protocol_job.hpp"
#include "seeds.hpp"
#include "transport/sim/checkers.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t proxied_lock = 1;

HistoryAction action_of(bool takes, bool is_exclusive) {
  if (takes) return is_exclusive ? HistoryAction::lock_exclusive : HistoryAction::lock_shared;
  return is_exclusive ? HistoryAction::unlock_exclusive : HistoryAction::unlock_shared;
}

LockMode mode_of(bool is_exclusive) { return is_exclusive ? LockMode::exclusive : LockMode::shared; }

// As a rank of the owner's node: in its memory, waiting in the queue or trying again.
SimTask<> lock_in_memory(ProtocolJob& job, ProtocolRank& self, Rank owner, bool is_exclusive, bool queues) {
  SharedLock<HolderDead> lock = job.lock_view(owner);
  const std::uint32_t id = self.rank() + 1;
  if (!queues) {
    while (!lock.try_lock(id, mode_of(is_exclusive))) co_await self.program.sleep(1 + self.random().below(2'000));
    co_return;
  }
  const Requested requested = lock.request(id, id, mode_of(is_exclusive));
  while (requested.kind == Requested::Kind::queued && !lock.has_been_granted(requested.slot))
    co_await self.program.sleep(1 + self.random().below(2'000));
}

bool unlock_in_memory(ProtocolJob& job, ProtocolRank& self, Rank owner, bool is_exclusive) {
  SharedLock<HolderDead> lock = job.lock_view(owner);
  const bool held = lock.unlock(self.rank() + 1, mode_of(is_exclusive));
  if (lock.granted_for_another()) job.world().wake_agent(owner);
  return held;
}

// Under an exclusive lock an update in two steps is as good as an atomic one.
SimTask<> add_under_lock(ProtocolJob& job, ProtocolRank& self, bool in_memory, int count) {
  for (int i = 0; i < count; ++i) {
    const bool is_exclusive = self.random().once_in(2);
    auto call = job.history.invoke(
        {.rank = self.rank(), .action = action_of(true, is_exclusive), .object = proxied_lock}, self.now_ns());
    if (in_memory) {
      co_await lock_in_memory(job, self, 0, is_exclusive, self.random().once_in(2));
    } else {
      const Code locked = co_await self.lock(0, is_exclusive);
      EXPECT_EQ(locked, Code::ok);
    }
    job.history.respond(call, 0, self.now_ns());
    const std::uint64_t before = job.word(0, 0);
    co_await self.program.sleep(self.random().below(3'000));
    EXPECT_EQ(job.word(0, 0), before) << "somebody wrote beside a lock";
    const std::uint64_t after = before + 1;
    if (is_exclusive) std::memcpy(job.memory(0).data(), &after, sizeof after);
    call = job.history.invoke({.rank = self.rank(), .action = action_of(false, is_exclusive), .object = proxied_lock},
                              self.now_ns());
    if (in_memory) {
      EXPECT_TRUE(unlock_in_memory(job, self, 0, is_exclusive));
    } else {
      const Code unlocked = co_await self.unlock(0, is_exclusive);
      EXPECT_EQ(unlocked, Code::ok);
    }
    job.history.respond(call, 0, self.now_ns());
  }
}

void run_mixed_locks(std::uint64_t seed, Rank ranks, int count) {
  ProtocolJob job(seed, ranks, options_from(seed));
  for (Rank rank = 0; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    self.program.start(add_under_lock(job, self, rank % 3 == 0, count));
  }
  EXPECT_TRUE(job.run()) << "somebody waits for a lock that nobody holds";
  const Verdict verdict = check_lock(job.history.calls_on(proxied_lock), {});
  EXPECT_TRUE(verdict.holds()) << verdict.why;
  std::uint64_t updates = 0;
  for (const HistoryCall& call : job.history.calls()) updates += call.action == HistoryAction::lock_exclusive;
  EXPECT_EQ(job.word(0, 0), updates);
  EXPECT_FALSE(job.rank(0).service.has_waiting());
}

// As a thread of the owner's process that is kept off its processor in the middle of an update.
SimTask<> hold_a_stripe(ProtocolJob& job, ProtocolRank& self, int count) {
  for (int i = 0; i < count; ++i) {
    StripeLock& stripe = job.domain(0).lock_of(self.random().below(40'000));
    if (stripe.try_acquire(self.rank() + 1)) {
      co_await self.program.sleep(self.random().below(50'000));
      stripe.release();
    }
    co_await self.program.sleep(self.random().below(50'000));
  }
}

void forget_for_sure(ProtocolJob& job, Rank dead) {
  if (job.rank(0).service.forget(dead)) return;
  job.world().call_at_rank(0, 1'000, [&job, dead] { forget_for_sure(job, dead); });
}

TEST(ProxyLocks, keep_ranks_that_lock_in_memory_and_by_message_apart) {
  for_each_seed(300, [&](std::uint64_t seed) { run_mixed_locks(seed, 9, 5); });
}

TEST(ProxyLocks, keep_a_hundred_ranks_apart) {
  for_each_seed(10, [&](std::uint64_t seed) { run_mixed_locks(seed, 100, 2); });
}

// --- What travels behind a lock that may have to wait. ---

// The two words are one value, written in two steps by who does not wait for the lock before.
SimTask<> write_pair_behind_lock(ProtocolRank& self, int count, bool others_die = false) {
  for (int i = 0; i < count; ++i) {
    const std::uint64_t value = self.random().next();
    std::vector<std::uint64_t> got(2, 0);
    const bool writes = self.random().once_in(2);
    Outstanding outstanding;
    RequestState locked, unlocked;
    wire::MessageHeader header = self.header_of(wire::MessageKind::lock);
    header.flags = writes ? wire::flag_exclusive : 0;
    co_await self.program.until([&] { return self.engine.submit_control(0, header, {}, outstanding, &locked); });
    for (const std::uint64_t offset : {0u, 8u}) {
      Operation operation;
      operation.kind = writes ? OperationKind::put : OperationKind::get;
      operation.offset = offset;
      operation.bytes = 8;
      operation.operand = reinterpret_cast<const std::byte*>(&value);
      operation.result = reinterpret_cast<std::byte*>(got.data()) + offset;
      co_await self.start(0, operation, outstanding);
    }
    header.kind = wire::MessageKind::unlock;
    co_await self.program.until([&] { return self.engine.submit_control(0, header, {}, outstanding, &unlocked); });
    co_await self.flush(outstanding);
    EXPECT_EQ(locked.code.load(), Code::ok);
    EXPECT_EQ(unlocked.code.load(), Code::ok);
    EXPECT_EQ(outstanding.failure.load(), Code::ok);
    EXPECT_TRUE(others_die || got[0] == got[1]) << "a half-written pair was seen under a lock";
  }
}

SimTask<> look_at_pair_in_memory(ProtocolJob& job, ProtocolRank& self, int count) {
  for (int i = 0; i < count; ++i) {
    const bool is_exclusive = self.random().once_in(2);
    co_await lock_in_memory(job, self, 0, is_exclusive, self.random().once_in(2));
    EXPECT_EQ(job.word(0, 0), job.word(0, 8)) << "a half-written pair was seen under a lock";
    const std::uint64_t before = job.word(0, 0);
    co_await self.program.sleep(self.random().below(20'000));
    EXPECT_EQ(job.word(0, 0), before) << "somebody wrote beside a lock";
    EXPECT_EQ(job.word(0, 8), before) << "somebody wrote beside a lock";
    EXPECT_TRUE(unlock_in_memory(job, self, 0, is_exclusive));
  }
}

TEST(ProxyLocks, keep_what_is_sent_behind_them_until_they_are_granted) {
  for_each_seed(300, [&](std::uint64_t seed) {
    constexpr Rank ranks = 9;
    ProtocolJob job(seed, ranks, options_from(seed));
    for (Rank rank = 0; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(rank % 3 == 0 ? look_at_pair_in_memory(job, self, 5) : write_pair_behind_lock(self, 5));
    }
    EXPECT_TRUE(job.run()) << "somebody waits for a lock that nobody holds";
    EXPECT_FALSE(job.rank(0).service.has_waiting());
    EXPECT_FALSE(job.rank(0).service.has_unfinished());
  });
}

// Long operations behind a lock are pulled, or cut, when their time has come, and find stripes that others hold.
SimTask<> add_behind_lock(ProtocolRank& self, std::size_t elements, int count) {
  const std::vector<double> ones(elements, 1.0);
  for (int i = 0; i < count; ++i) {
    Outstanding outstanding;
    RequestState locked, unlocked;
    wire::MessageHeader header = self.header_of(wire::MessageKind::lock);
    header.flags = self.random().once_in(2) ? wire::flag_exclusive : 0;
    co_await self.program.until([&] { return self.engine.submit_control(0, header, {}, outstanding, &locked); });
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::float64;
    operation.op = ops::Operator::sum;
    operation.bytes = elements * sizeof(double);
    operation.operand = reinterpret_cast<const std::byte*>(ones.data());
    co_await self.start(0, operation, outstanding);
    header.kind = wire::MessageKind::unlock;
    co_await self.program.until([&] { return self.engine.submit_control(0, header, {}, outstanding, &unlocked); });
    co_await self.flush(outstanding);
    EXPECT_EQ(outstanding.failure.load(), Code::ok);
  }
}

TEST(ProxyLocks, let_long_operations_through_once_they_are_granted) {
  for_each_seed(100, [&](std::uint64_t seed) {
    constexpr Rank ranks = 6;
    constexpr int count = 3;
    constexpr std::size_t elements = 5'000;
    ProtocolJobOptions options = options_from(seed);
    options.window_bytes = elements * sizeof(double);
    ProtocolJob job(seed, ranks, options);
    for (Rank rank = 1; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(rank % 2 == 0 ? add_behind_lock(self, elements, count) : hold_a_stripe(job, self, count));
    }
    EXPECT_TRUE(job.run()) << "somebody waits for ever";
    for (std::size_t i = 0; i < elements; ++i) {
      double sum = 0;
      std::memcpy(&sum, job.memory(0).data() + i * sizeof sum, sizeof sum);
      ASSERT_EQ(sum, 2.0 * count) << i;
    }
  });
}

TEST(ProxyLocks, of_the_dead_take_what_was_sent_behind_them_along) {
  for_each_seed(100, [&](std::uint64_t seed) {
    constexpr Rank ranks = 8;
    ProtocolJob job(seed, ranks, options_from(seed));
    job.world().set_death_hook(
        0, [&job](Rank dead) { job.world().call_at_rank(0, 1, [&job, dead] { forget_for_sure(job, dead); }); });
    for (Rank rank = 1; rank < ranks; ++rank)
      job.rank(rank).program.start(write_pair_behind_lock(job.rank(rank), 5, true));
    for (Rank rank = 1; rank < ranks; rank += 4) job.world().kill_after(rank, job.world().random().below(300'000));
    EXPECT_TRUE(job.run()) << "somebody waits for the lock of a dead rank";
    EXPECT_TRUE(job.lock_view(0).try_lock(1, LockMode::exclusive)) << "a dead rank still holds the lock";
  });
}

// --- Order and sharing. ---

// Each asks long after the one before it.
TEST(ProxyLocks, are_granted_in_the_order_in_which_they_were_asked_for_wherever_that_was) {
  for_each_seed(20, [&](std::uint64_t seed) {
    constexpr Rank ranks = 7;
    constexpr SimTime step_ns = 100'000;
    ProtocolJob job(seed, ranks, ProtocolJobOptions{});
    std::vector<Rank> order;
    const auto ask = [&job, &order](ProtocolRank& self) -> SimTask<> {
      const bool in_memory = self.rank() % 2 == 0;
      if (in_memory) {
        co_await lock_in_memory(job, self, 0, true, true);
      } else {
        const Code locked = co_await self.lock(0, true);
        EXPECT_EQ(locked, Code::ok);
      }
      order.push_back(self.rank());
      co_await self.program.sleep(2 * ranks * step_ns);
      if (in_memory) {
        EXPECT_TRUE(unlock_in_memory(job, self, 0, true));
      } else {
        const Code unlocked = co_await self.unlock(0, true);
        EXPECT_EQ(unlocked, Code::ok);
      }
    };
    for (Rank rank = 0; rank < ranks; ++rank) job.rank(rank).program.start(ask(job.rank(rank)), rank * step_ns);
    EXPECT_TRUE(job.run());
    EXPECT_EQ(order, (std::vector<Rank>{0, 1, 2, 3, 4, 5, 6}));
  });
}

TEST(ProxyLocks, are_shared_by_all_who_ask_for_that) {
  constexpr Rank ranks = 6;
  ProtocolJob job(1, ranks, ProtocolJobOptions{});
  Rank holders = 0;
  const auto share = [&job, &holders](ProtocolRank& self) -> SimTask<> {
    const Code locked = co_await self.lock(0, false);
    EXPECT_EQ(locked, Code::ok);
    ++holders;
    // Ends only if all hold it at once.
    while (holders < ranks) co_await self.program.sleep(1'000);
    const Code unlocked = co_await self.unlock(0, false);
    EXPECT_EQ(unlocked, Code::ok);
  };
  for (Rank rank = 0; rank < ranks; ++rank) job.rank(rank).program.start(share(job.rank(rank)));
  EXPECT_TRUE(job.run());
}

// --- What is refused. ---

Code answer_to(ProtocolJob& job, ProtocolRank& self, const wire::MessageHeader& header) {
  std::optional<Code> code;
  const auto send = [&code, &self, header]() -> SimTask<> {
    const Code answered = co_await self.control(0, header);
    code = answered;
  };
  self.program.start(send());
  EXPECT_TRUE(job.run());
  return code.value_or(Code::pending);
}

TEST(ProxyLocks, are_refused_where_the_window_is_not_known) {
  ProtocolJob job(1, 2, ProtocolJobOptions{});
  for (const auto kind :
       {wire::MessageKind::lock, wire::MessageKind::unlock, wire::MessageKind::post, wire::MessageKind::complete}) {
    wire::MessageHeader header = job.rank(1).header_of(kind);
    header.window = 77;
    EXPECT_EQ(answer_to(job, job.rank(1), header), Code::handle);
  }
}

TEST(ProxyLocks, are_refused_to_who_is_not_the_rank_of_the_group_that_it_says) {
  ProtocolJob job(1, 3, ProtocolJobOptions{});
  for (const auto kind :
       {wire::MessageKind::lock, wire::MessageKind::unlock, wire::MessageKind::post, wire::MessageKind::complete}) {
    wire::MessageHeader header = job.rank(1).header_of(kind);
    for (const std::uint64_t rank : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{3}, ~std::uint64_t{0}}) {
      header.offset = rank;
      EXPECT_EQ(answer_to(job, job.rank(1), header), Code::rank);
    }
  }
  EXPECT_TRUE(job.lock_view(0).try_lock(1, LockMode::exclusive)) << "a refused lock was taken";
  EXPECT_EQ(job.rank_window(0).head().completes.load(), 0);
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_EQ(job.rank_window(0).posts()[rank].load(), 0);
}

TEST(ProxyLocks, are_refused_by_a_window_that_promises_to_have_none) {
  ProtocolJobOptions options;
  options.refuses_locks = true;
  ProtocolJob job(1, 2, options);
  EXPECT_EQ(answer_to(job, job.rank(1), job.rank(1).header_of(wire::MessageKind::lock)), Code::sync);
}

TEST(ProxyLocks, are_refused_to_who_holds_one_and_not_given_back_by_who_holds_none) {
  ProtocolJob job(1, 2, ProtocolJobOptions{});
  ProtocolRank& self = job.rank(1);
  const wire::MessageHeader lock = self.header_of(wire::MessageKind::lock);
  wire::MessageHeader unlock = self.header_of(wire::MessageKind::unlock);
  EXPECT_EQ(answer_to(job, self, unlock), Code::sync);
  EXPECT_EQ(answer_to(job, self, lock), Code::ok);
  EXPECT_EQ(answer_to(job, self, lock), Code::sync);
  unlock.flags = wire::flag_exclusive;
  EXPECT_EQ(answer_to(job, self, unlock), Code::sync) << "it is held shared";
  unlock.flags = 0;
  EXPECT_EQ(answer_to(job, self, unlock), Code::ok);
  EXPECT_EQ(answer_to(job, self, unlock), Code::sync);
  EXPECT_TRUE(job.lock_view(0).try_lock(1, LockMode::exclusive));
}

TEST(ProxyLocks, end_their_wait_when_the_window_goes) {
  ProtocolJob job(1, 2, ProtocolJobOptions{});
  EXPECT_TRUE(job.lock_view(0).try_lock(1, LockMode::exclusive));
  job.world().call_after(50'000'000, [&job] {
    job.rank(0).exposures.erase(ProtocolRank::window);
    job.world().wake_agent(0);
  });
  EXPECT_EQ(answer_to(job, job.rank(1), job.rank(1).header_of(wire::MessageKind::lock)), Code::handle);
}

// --- Death. ---

TEST(ProxyLocks, of_a_dead_rank_go_to_those_who_wait) {
  for_each_seed(100, [&](std::uint64_t seed) {
    constexpr Rank ranks = 8;
    ProtocolJob job(seed, ranks, options_from(seed));
    job.world().set_death_hook(0, [&job](Rank dead) { forget_for_sure(job, dead); });
    for (Rank rank = 1; rank < ranks; ++rank)
      job.rank(rank).program.start(add_under_lock(job, job.rank(rank), false, 5));
    for (Rank rank = 1; rank < ranks; rank += 3) job.world().kill_after(rank, job.world().random().below(300'000));
    EXPECT_TRUE(job.run()) << "somebody waits for the lock of a dead rank";
    EXPECT_TRUE(job.lock_view(0).try_lock(1, LockMode::exclusive)) << "a dead rank still holds the lock";
  });
}

// --- Post and complete. ---

TEST(ProxyEpochs, count_posts_per_rank_and_completes_together_and_tell_who_waits) {
  constexpr Rank ranks = 4;
  ProtocolJob job(1, ranks, ProtocolJobOptions{});
  for (Rank rank = 1; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    for (Rank i = 0; i < rank; ++i) EXPECT_EQ(answer_to(job, self, self.header_of(wire::MessageKind::post)), Code::ok);
    EXPECT_EQ(answer_to(job, self, self.header_of(wire::MessageKind::complete)), Code::ok);
  }
  for (Rank rank = 0; rank < ranks; ++rank) EXPECT_EQ(job.rank_window(0).posts()[rank].load(), rank);
  EXPECT_EQ(job.rank_window(0).head().completes.load(), 3);
  EXPECT_EQ(job.times_notified(0), 9);
}

// The operations that were sent before it are in the memory when it is counted.
TEST(ProxyEpochs, count_a_complete_after_its_operations) {
  for_each_seed(100, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.window_bytes = 65'536;
    ProtocolJob job(seed, 2, options);
    const std::vector<std::byte> ones(options.window_bytes, std::byte{1});
    ProtocolRank& self = job.rank(1);
    const auto put_and_complete = [&]() -> SimTask<> {
      Outstanding outstanding;
      Operation operation;
      operation.bytes = ones.size();
      operation.operand = ones.data();
      co_await self.start(0, operation, outstanding);
      const Code completed = co_await self.control(0, self.header_of(wire::MessageKind::complete));
      EXPECT_EQ(completed, Code::ok);
    };
    const auto look = [&]() -> SimTask<> {
      while (job.rank_window(0).head().completes.load() == 0) co_await job.rank(0).program.sleep(500);
      EXPECT_EQ(std::memcmp(job.memory(0).data(), ones.data(), ones.size()), 0);
    };
    self.program.start(put_and_complete());
    job.rank(0).program.start(look());
    EXPECT_TRUE(job.run());
  });
}

// --- Messages that are of no window. ---

class KeptMail final : public TeamMail {
 public:
  Code on_team_message(Rank from, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                       bool is_last) override {
    senders.push_back(from);
    teams.push_back(team);
    rounds.push_back(round);
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!is_last) texts.back() += " ...";
    return bytes.empty() ? Code::argument : Code::ok;
  }
  std::vector<Rank> senders;
  std::vector<std::uint64_t> teams, rounds;
  std::vector<std::string> texts;
};

TEST(ControlMessages, bring_a_teams_letters_with_their_answer) {
  KeptMail letters;
  ProtocolJobOptions options;
  options.team_mail = &letters;
  ProtocolJob job(1, 2, options);
  ProtocolRank& self = job.rank(1);
  std::vector<Code> codes;
  const auto write = [&]() -> SimTask<> {
    wire::MessageHeader header = self.header_of(wire::MessageKind::team);
    header.window = (std::uint64_t{9} << 32) | 4;
    header.offset = 12;
    const std::string_view text = "to all";
    header.bytes = text.size();
    codes.push_back(co_await self.control(0, header, std::as_bytes(std::span(text))));
    header.flags = wire::flag_more;
    codes.push_back(co_await self.control(0, header, std::as_bytes(std::span(text))));
    header.flags = wire::flag_more | wire::flag_notify;
    codes.push_back(co_await self.control(0, header, std::as_bytes(std::span(text))));
    header.flags = 0;
    header.bytes = 0;
    codes.push_back(co_await self.control(0, header));
    header.bytes = 3;
    codes.push_back(co_await self.control(0, header));
  };
  self.program.start(write());
  EXPECT_TRUE(job.run());
  EXPECT_EQ(codes, (std::vector{Code::ok, Code::ok, Code::argument, Code::argument, Code::argument}));
  EXPECT_EQ(letters.texts, (std::vector<std::string>{"to all", "to all ...", ""}))
      << "what has flags of others, or is too short, is not delivered";
  EXPECT_EQ(letters.senders, (std::vector<Rank>{1, 1, 1}));
  EXPECT_EQ(letters.teams.front(), (std::uint64_t{9} << 32) | 4);
  EXPECT_EQ(letters.rounds.front(), 12);
}

TEST(Messages, of_a_compare_and_swap_whose_operands_are_elsewhere_are_refused) {
  ProtocolJob job(1, 2, ProtocolJobOptions{});
  wire::MessageHeader header = job.rank(1).header_of(wire::MessageKind::operate);
  header.operation = OperationKind::compare_and_swap;
  header.type = ops::ElementType::uint64;
  header.offset = 0;
  header.bytes = 8;
  for (const auto flag : {wire::flag_pull, wire::flag_push}) {
    header.flags = flag;
    EXPECT_EQ(answer_to(job, job.rank(1), header), Code::argument);
  }
}

TEST(ControlMessages, tell_of_life_with_the_rank_that_is_known_dead) {
  for (const std::uint32_t known : {0u, 8u}) {
    ProtocolJobOptions options;
    options.known_dead = known;
    ProtocolJob job(1, 2, options);
    ProtocolRank& self = job.rank(1);
    std::uint32_t dead = 99;
    const auto ask = [&]() -> SimTask<> {
      const Code answered = co_await self.control(0, self.header_of(wire::MessageKind::life), {},
                                                  std::as_writable_bytes(std::span(&dead, 1)));
      EXPECT_EQ(answered, Code::ok);
    };
    self.program.start(ask());
    EXPECT_TRUE(job.run());
    EXPECT_EQ(dead, known);
  }
}

}  // namespace
}  // namespace farsum
