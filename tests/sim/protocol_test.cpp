// The objects of the protocol over the simulated transport, judged by what a history or the final memory must look like
// whatever the order of events. A failure prints its seed and how to run that seed alone.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "protocol_job.hpp"
#include "seeds.hpp"
#include "test_length.hpp"
#include "transport/sim/checkers.hpp"
#include "transport/sim/sim_card.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t failed = ~std::uint64_t{0};

// Makes some ranks slow, some owners compute, and freezes one for a while.
void make_weather(ProtocolJob& job, std::uint64_t seed) {
  SimRandom random(SimRandom::mix(seed + 77));
  SimWorld& world = job.world();
  for (Rank rank = 0; rank < job.rank_count(); ++rank) {
    if (random.once_in(10)) world.set_slowness(rank, 2 + random.below(20));
    if (random.once_in(3)) world.set_computing(rank, true);
  }
  const auto frozen = static_cast<Rank>(random.below(job.rank_count()));
  world.freeze_after(frozen, random.below(200'000), random.below(2'000'000));
}

// --- Tickets. ---

SimTask<> take_tickets(ProtocolJob& job, ProtocolRank& self, Rank owners, int count) {
  for (int i = 0; i < count; ++i) {
    const auto owner = static_cast<Rank>(self.random().below(owners));
    const std::uint64_t step = 1 + self.random().below(3);
    const auto call = job.history.invoke(
        {.rank = self.rank(), .action = HistoryAction::fetch_add, .object = owner, .operand = step}, self.now_ns());
    const std::uint64_t ticket = co_await self.fetch(owner, 64, ops::Operator::sum, step);
    if (ticket == failed) continue;
    job.history.respond(call, ticket, self.now_ns());
    job.world().note(ticket);
  }
}

void expect_true_tickets(ProtocolJob& job, Rank owners) {
  for (Rank owner = 0; owner < owners; ++owner) {
    const Verdict verdict = check_tickets(job.history.calls_on(owner), 0, job.word(owner, 64));
    EXPECT_TRUE(verdict.holds()) << "counter " << owner << ": " << verdict.why;
  }
}

std::uint64_t run_tickets(std::uint64_t seed, Rank ranks, Rank owners, int count) {
  ProtocolJobOptions options = options_from(seed);
  options.owners = owners;
  ProtocolJob job(seed, ranks, options);
  make_weather(job, seed);
  for (Rank rank = 0; rank < ranks; ++rank) {
    job.rank(rank).program.start(take_tickets(job, job.rank(rank), owners, count),
                                 job.rank(rank).random().below(10'000));
  }
  EXPECT_TRUE(job.run());
  expect_true_tickets(job, owners);
  return job.world().trace_hash();
}

// In full in make test-all: 20 seeds of a thousand ranks.
TEST(SimulatedProtocol, gives_a_thousand_ranks_distinct_tickets) {
  for_each_seed(test::in_full_or(20, 4),
                [&](std::uint64_t seed) { run_tickets(seed, 1000, seed % 2 == 0 ? 1 : 3, 5); });
}

TEST(SimulatedProtocol, gives_distinct_tickets_whatever_the_seed) {
  for_each_seed(1000, [&](std::uint64_t seed) { run_tickets(seed, 16, 2, 10); });
}

TEST(SimulatedProtocol, replays_a_seed_identically) {
  for_each_seed(5, [&](std::uint64_t seed) { EXPECT_EQ(run_tickets(seed, 100, 2, 5), run_tickets(seed, 100, 2, 5)); });
  const std::uint64_t hash = run_tickets(1001, 20, 1, 2);
  EXPECT_NE(hash, run_tickets(1002, 20, 1, 2));
  // For comparing processes and machines: it is the same in all of them.
  RecordProperty("trace_hash_of_seed_1001", std::to_string(hash));
}

// --- Sums. ---

// What every owner's window must hold in the end: sums of whole numbers are exact in doubles, whatever their order.
using Expected = std::vector<std::vector<double>>;

SimTask<> add_stretches(ProtocolJob& job, ProtocolRank& self, Rank owners, std::size_t elements, int count,
                        Expected& expected) {
  (void)job;
  Outstanding outstanding;
  std::vector<std::vector<double>> operands;  // borrowed by the operations until the flush
  operands.reserve(static_cast<std::size_t>(count));
  std::vector<std::vector<std::byte>> results;
  results.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto owner = static_cast<Rank>(self.random().below(owners));
    const std::size_t begin = self.random().below(elements);
    const std::size_t length =
        1 +
        self.random().below(self.random().once_in(3) ? elements - begin : std::min<std::size_t>(elements - begin, 8));
    std::vector<double>& operand = operands.emplace_back(length);
    for (std::size_t j = 0; j < length; ++j) {
      operand[j] = static_cast<double>(1 + self.random().below(100));
      expected[owner][begin + j] += operand[j];
    }
    Operation operation;
    operation.kind = self.random().once_in(3) ? OperationKind::get_accumulate : OperationKind::accumulate;
    operation.type = ops::ElementType::float64;
    operation.op = ops::Operator::sum;
    operation.offset = begin * sizeof(double);
    operation.bytes = length * sizeof(double);
    operation.operand = reinterpret_cast<const std::byte*>(operand.data());
    if (operation.kind == OperationKind::get_accumulate) {
      operation.result = results.emplace_back(operation.bytes).data();
    }
    co_await self.start(owner, operation, outstanding);
    if (self.random().once_in(3)) co_await self.flush(outstanding);
  }
  co_await self.flush(outstanding);
  EXPECT_EQ(outstanding.failure.load(), Code::ok);
}

SimTask<> scatter_ones(ProtocolRank& self, Rank owners, std::size_t elements, int count, Expected& expected) {
  Outstanding outstanding;
  for (int i = 0; i < count; ++i) {
    const auto owner = static_cast<Rank>(self.random().below(owners));
    std::vector<std::uint64_t> offsets(1 + self.random().below(200));
    std::vector<double> ones(offsets.size(), 1.0);
    for (std::uint64_t& offset : offsets) {
      const std::size_t element = self.random().below(elements);
      offset = element * sizeof(double);
      expected[owner][element] += 1.0;
    }
    co_await self.start_scatter(owner, ops::ElementType::float64, ops::Operator::sum, offsets,
                                std::as_bytes(std::span(ones)), outstanding);
  }
  co_await self.flush(outstanding);
  EXPECT_EQ(outstanding.failure.load(), Code::ok);
}

void expect_memory(ProtocolJob& job, const Expected& expected) {
  for (Rank owner = 0; owner < expected.size(); ++owner) {
    std::vector<double> held(expected[owner].size());
    std::memcpy(held.data(), job.memory(owner).data(), held.size() * sizeof(double));
    EXPECT_TRUE(held == expected[owner]) << "the sums of owner " << owner << " are wrong";
  }
}

void run_sums(std::uint64_t seed, Rank ranks, Rank owners, std::size_t elements, int count) {
  ProtocolJobOptions options = options_from(seed);
  options.owners = owners;
  options.window_bytes = elements * sizeof(double);
  ProtocolJob job(seed, ranks, options);
  make_weather(job, seed);
  Expected expected(owners, std::vector<double>(elements));
  for (Rank rank = 0; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    self.program.start(add_stretches(job, self, owners, elements, count, expected), self.random().below(10'000));
    if (self.random().once_in(2)) self.program.start(scatter_ones(self, owners, elements, count / 2, expected));
  }
  EXPECT_TRUE(job.run());
  expect_memory(job, expected);
}

TEST(SimulatedProtocol, sums_exactly_what_a_thousand_ranks_add) {
  for_each_seed(10, [&](std::uint64_t seed) { run_sums(seed, 1000, 4, 300, 2); });
}

TEST(SimulatedProtocol, sums_exactly_whatever_the_seed) {
  for_each_seed(600, [&](std::uint64_t seed) { run_sums(seed, 12, 3, 6'000, 6); });
}

// --- Single elements under every operation. ---

SimTask<> use_elements(ProtocolJob& job, ProtocolRank& self, Rank owners, std::uint64_t first, std::uint64_t elements,
                       int count) {
  for (int i = 0; i < count; ++i) {
    const std::uint64_t element = first + self.random().below(elements);
    const auto owner = static_cast<Rank>(element % owners);
    const std::uint64_t offset = element / owners * 8;
    HistoryCall call{
        .rank = self.rank(), .object = element, .operand = self.random().below(4), .compare = self.random().below(4)};
    switch (self.random().below(5)) {
      case 0:
        call.action = HistoryAction::fetch_add;
        break;
      case 1:
        call.action = HistoryAction::read;
        break;
      case 2:
        call.action = HistoryAction::swap;
        break;
      case 3:
        call.action = HistoryAction::write;
        break;
      default:
        call.action = HistoryAction::compare_and_swap;
        break;
    }
    const auto id = job.history.invoke(call, self.now_ns());
    std::uint64_t result = 0;
    switch (call.action) {
      case HistoryAction::fetch_add:
        result = co_await self.fetch(owner, offset, ops::Operator::sum, call.operand);
        break;
      case HistoryAction::read:
        result = co_await self.fetch(owner, offset, ops::Operator::no_op, 0);
        break;
      case HistoryAction::swap:
        result = co_await self.fetch(owner, offset, ops::Operator::replace, call.operand);
        break;
      case HistoryAction::write: {
        const Code code =
            co_await self.accumulate(owner, offset, ops::ElementType::uint64, ops::Operator::replace, &call.operand, 8);
        EXPECT_EQ(code, Code::ok);
        break;
      }
      default:
        result = co_await self.compare_and_swap(owner, offset, call.compare, call.operand);
        break;
    }
    job.history.respond(id, result, self.now_ns());
  }
}

void run_elements(std::uint64_t seed, Rank ranks, Rank owners, Rank ranks_per_group, std::uint64_t elements_per_group,
                  int count) {
  ProtocolJobOptions options = options_from(seed);
  options.owners = owners;
  options.window_bytes = (ranks / ranks_per_group + 1) * elements_per_group * 8;
  ProtocolJob job(seed, ranks, options);
  make_weather(job, seed);
  for (Rank rank = 0; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    const std::uint64_t first = rank / ranks_per_group * elements_per_group;
    self.program.start(use_elements(job, self, owners, first, elements_per_group, count));
  }
  EXPECT_TRUE(job.run());
  const Verdict verdict = check_everything(job.history);
  EXPECT_TRUE(verdict.holds()) << verdict.why;
}

// In full in make test-all: 10 seeds of a thousand ranks.
TEST(SimulatedProtocol, keeps_every_element_linearizable_for_a_thousand_ranks) {
  for_each_seed(test::in_full_or(10, 3), [&](std::uint64_t seed) { run_elements(seed, 1000, 4, 5, 2, 8); });
}

TEST(SimulatedProtocol, keeps_every_element_linearizable_whatever_the_seed) {
  for_each_seed(1000, [&](std::uint64_t seed) { run_elements(seed, 8, 2, 8, 2, 10); });
}

// --- Window locks. ---

constexpr std::uint64_t lock_object = 1000;  // apart from the counters, which are named by their owners

// Under an exclusive lock an update in two steps, a get and a put, is as good as an atomic one.
SimTask<> update_under_lock(ProtocolJob& job, ProtocolRank& self, int count) {
  for (int i = 0; i < count; ++i) {
    const bool is_exclusive = self.random().once_in(2);
    auto call = job.history.invoke({.rank = self.rank(),
                                    .action = is_exclusive ? HistoryAction::lock_exclusive : HistoryAction::lock_shared,
                                    .object = lock_object},
                                   self.now_ns());
    const Code locked = co_await self.lock(0, is_exclusive);
    EXPECT_EQ(locked, Code::ok);
    job.history.respond(call, 0, self.now_ns());

    std::uint64_t words[2] = {0, 0};
    Operation operation;
    operation.kind = OperationKind::get;
    operation.bytes = sizeof words;
    operation.result = reinterpret_cast<std::byte*>(words);
    Code code = co_await self.run(0, operation);
    EXPECT_EQ(code, Code::ok);
    EXPECT_EQ(words[0], words[1]) << "a half-written pair was seen under a lock";
    if (is_exclusive) {
      co_await self.program.sleep(self.random().below(3'000));
      ++words[0];
      ++words[1];
      operation.kind = OperationKind::put;
      operation.bytes = 8;
      operation.result = nullptr;
      for (const std::uint64_t which : {1u, 0u}) {
        operation.offset = which * 8;
        operation.operand = reinterpret_cast<const std::byte*>(&words[which]);
        code = co_await self.run(0, operation);
        EXPECT_EQ(code, Code::ok);
      }
    }
    call = job.history.invoke({.rank = self.rank(),
                               .action = is_exclusive ? HistoryAction::unlock_exclusive : HistoryAction::unlock_shared,
                               .object = lock_object},
                              self.now_ns());
    const Code unlocked = co_await self.unlock(0, is_exclusive);
    EXPECT_EQ(unlocked, Code::ok);
    job.history.respond(call, 0, self.now_ns());
  }
}

void run_locks(std::uint64_t seed, Rank ranks, int count) {
  ProtocolJob job(seed, ranks, options_from(seed));
  make_weather(job, seed);
  for (Rank rank = 0; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    self.program.start(update_under_lock(job, self, count));
    // Answers that overtake the grant of a lock that was asked for before.
    if (self.random().once_in(3)) self.program.start(take_tickets(job, self, 1, count));
  }
  EXPECT_TRUE(job.run());
  const Verdict verdict = check_lock(job.history.calls_on(lock_object), {});
  EXPECT_TRUE(verdict.holds()) << verdict.why;
  expect_true_tickets(job, 1);
  std::uint64_t updates = 0;
  for (const HistoryCall& call : job.history.calls()) updates += call.action == HistoryAction::lock_exclusive;
  EXPECT_EQ(job.word(0, 0), updates);
}

// In full in make test-all: 10 seeds of a thousand ranks.
TEST(SimulatedProtocol, grants_locks_exclusively_to_a_thousand_ranks) {
  for_each_seed(test::in_full_or(10, 3), [&](std::uint64_t seed) { run_locks(seed, 1000, 1); });
}

TEST(SimulatedProtocol, grants_locks_exclusively_whatever_the_seed) {
  for_each_seed(600, [&](std::uint64_t seed) { run_locks(seed, 8, 5); });
}

// --- Long operations: pulled, cut, with layouts. ---

// Every rank owns a stretch of each owner's window: puts a pattern there, reads it back, and nobody else's is touched.
SimTask<> put_and_get_back(ProtocolRank& self, Rank owners, std::size_t stretch_bytes) {
  for (Rank owner = 0; owner < owners; ++owner) {
    std::vector<std::byte> sent(1 + self.random().below(stretch_bytes - 1));
    for (std::byte& byte : sent) byte = static_cast<std::byte>(self.random().next());
    std::vector<std::byte> back(sent.size());
    Operation operation;
    operation.offset = self.rank() * stretch_bytes + self.random().below(stretch_bytes - sent.size() + 1);
    operation.bytes = sent.size();
    operation.operand = sent.data();
    operation.notify = true;
    Code code = co_await self.run(owner, operation);
    EXPECT_EQ(code, Code::ok);
    operation.kind = OperationKind::get;
    operation.operand = nullptr;
    operation.result = back.data();
    operation.notify = false;
    code = co_await self.run(owner, operation);
    EXPECT_EQ(code, Code::ok);
    EXPECT_TRUE(back == sent) << "rank " << self.rank() << " reads back other bytes from owner " << owner;
  }
}

// In full in make test-all: 250 seeds.
TEST(SimulatedProtocol, reads_back_long_puts_and_notifies_once_each) {
  constexpr Rank ranks = 10;
  constexpr Rank owners = 3;
  for_each_seed(test::in_full_or(250, 50), [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.owners = owners;
    options.window_bytes = ranks * 40'000;
    ProtocolJob job(seed, ranks, options);
    make_weather(job, seed);
    for (Rank rank = 0; rank < ranks; ++rank)
      job.rank(rank).program.start(put_and_get_back(job.rank(rank), owners, 40'000));
    EXPECT_TRUE(job.run());
    for (Rank owner = 0; owner < owners; ++owner) EXPECT_EQ(job.notifications(owner, 0), ranks);
  });
}

// Columns of a matrix of doubles, added with a strided target and taken from a strided operand.
SimTask<> add_columns(ProtocolRank& self, std::size_t rows, std::size_t columns, int count, Expected& expected) {
  const auto row_bytes = static_cast<std::int64_t>(columns * sizeof(double));
  const std::uint64_t counts[1] = {rows};
  const std::int64_t target_strides[1] = {row_bytes};
  const std::int64_t operand_strides[1] = {2 * static_cast<std::int64_t>(sizeof(double))};
  for (int i = 0; i < count; ++i) {
    const std::size_t column = self.random().below(columns);
    std::vector<double> operand(2 * rows, -1.0);
    std::vector<double> before(2 * rows, -1.0);
    for (std::size_t row = 0; row < rows; ++row) {
      operand[2 * row] = static_cast<double>(self.random().below(50));
      expected[0][row * columns + column] += operand[2 * row];
    }
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::float64;
    operation.op = ops::Operator::sum;
    operation.offset = column * sizeof(double);
    operation.bytes = rows * sizeof(double);
    operation.operand = reinterpret_cast<const std::byte*>(operand.data());
    operation.target_layout = ops::LayoutView::strided(sizeof(double), counts, target_strides);
    operation.operand_layout = ops::LayoutView::strided(sizeof(double), counts, operand_strides);
    const bool is_fetching = self.random().once_in(2);
    if (is_fetching) {
      operation.kind = OperationKind::get_accumulate;
      operation.result = reinterpret_cast<std::byte*>(before.data());
      operation.result_layout = operation.operand_layout;
    }
    const Code code = co_await self.run(0, operation);
    EXPECT_EQ(code, Code::ok);
    // What was there before is somebody's whole number, and what lies between the result's elements is left alone.
    for (std::size_t j = 0; is_fetching && j < before.size(); ++j) {
      EXPECT_EQ(before[j] >= 0.0, j % 2 == 0);
    }
  }
}

TEST(SimulatedProtocol, adds_strided_columns_exactly) {
  constexpr Rank ranks = 8;
  constexpr std::size_t rows = 400;
  constexpr std::size_t columns = 5;
  for_each_seed(250, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.window_bytes = rows * columns * sizeof(double);
    ProtocolJob job(seed, ranks, options);
    make_weather(job, seed);
    Expected expected(1, std::vector<double>(rows * columns));
    for (Rank rank = 0; rank < ranks; ++rank) {
      job.rank(rank).program.start(add_columns(job.rank(rank), rows, columns, 4, expected));
    }
    EXPECT_TRUE(job.run());
    expect_memory(job, expected);
  });
}

// --- Order. ---

// Replaces its own element by 1, 2, 3 ... without waiting in between; a reader must never see it go back.
SimTask<> count_up(ProtocolRank& self, std::uint64_t offset, std::uint64_t count) {
  Outstanding outstanding;
  std::vector<std::uint64_t> values(count);
  std::iota(values.begin(), values.end(), std::uint64_t{1});
  for (const std::uint64_t& value : values) {
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::uint64;
    operation.op = ops::Operator::replace;
    operation.offset = offset;
    operation.bytes = sizeof value;
    operation.operand = reinterpret_cast<const std::byte*>(&value);
    co_await self.start(0, operation, outstanding);
  }
  co_await self.flush(outstanding);
}

SimTask<> watch(ProtocolRank& self, std::uint64_t offset, int count) {
  std::uint64_t last = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seen = co_await self.fetch(0, offset, ops::Operator::no_op, 0);
    EXPECT_GE(seen, last);
    last = seen;
  }
}

TEST(SimulatedProtocol, applies_the_accumulates_of_one_origin_in_program_order) {
  constexpr Rank ranks = 10;
  for_each_seed(250, [&](std::uint64_t seed) {
    ProtocolJob job(seed, ranks, options_from(seed));
    make_weather(job, seed);
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::uint64_t offset = rank / 2 * 8;
      ProtocolRank& self = job.rank(rank);
      if (rank % 2 == 0)
        self.program.start(count_up(self, offset, 30));
      else
        self.program.start(watch(self, offset, 15));
    }
    EXPECT_TRUE(job.run());
    for (Rank rank = 0; rank < ranks; rank += 2) EXPECT_EQ(job.word(0, rank / 2 * 8), 30u);
  });
}

// --- A caller on the same node, which works on the owner's memory under the stripe locks, beside the agent. ---

enum class CallerIs : std::uint8_t { under_the_stripe_lock, without_lock };

// An update takes time: what the caller read may be old when it writes, unless the lock keeps the agent away.
SimTask<> add_as_caller(ProtocolJob& job, ProtocolRank& self, CallerIs how, int count) {
  const AtomicDomain domain = job.domain(0);
  auto* const word = reinterpret_cast<std::uint64_t*>(job.memory(0).data() + 64);
  for (int i = 0; i < count; ++i) {
    const auto call = job.history.invoke(
        {.rank = self.rank(), .action = HistoryAction::fetch_add, .object = 0, .operand = 1}, self.now_ns());
    if (how == CallerIs::under_the_stripe_lock) {
      while (!domain.lock_of(64).try_acquire(self.rank() + 1))
        co_await self.program.sleep(100 + self.random().below(300));
    }
    const std::uint64_t before = *word;
    co_await self.program.sleep(200 + self.random().below(2'000));
    *word = before + 1;
    if (how == CallerIs::under_the_stripe_lock) domain.lock_of(64).release();
    job.history.respond(call, before, self.now_ns());
    co_await self.program.sleep(self.random().below(4'000));
  }
}

Verdict run_with_callers(std::uint64_t seed, CallerIs how) {
  constexpr Rank ranks = 10;
  ProtocolJob job(seed, ranks, options_from(seed));
  for (Rank rank = 1; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    self.program.start(rank < 4 ? add_as_caller(job, self, how, 10) : take_tickets(job, self, 1, 10));
  }
  EXPECT_TRUE(job.run());
  return check_tickets(job.history.calls(), 0, job.word(0, 64));
}

TEST(SimulatedProtocol, keeps_the_agent_out_while_a_caller_holds_the_stripe) {
  for_each_seed(250, [&](std::uint64_t seed) {
    const Verdict verdict = run_with_callers(seed, CallerIs::under_the_stripe_lock);
    EXPECT_TRUE(verdict.holds()) << verdict.why;
  });
}

// Takes stripes for a while and adds to their first elements.
SimTask<> hold_stripes(ProtocolJob& job, ProtocolRank& self, std::size_t elements, int count, Expected& expected) {
  const AtomicDomain domain = job.domain(0);
  for (int i = 0; i < count; ++i) {
    const std::size_t element = self.random().below(elements);
    StripeLock& lock = domain.lock_of(element * sizeof(double));
    while (!lock.try_acquire(self.rank() + 1)) co_await self.program.sleep(100 + self.random().below(300));
    double value = 0;
    std::memcpy(&value, job.memory(0).data() + element * sizeof value, sizeof value);
    co_await self.program.sleep(self.random().below(20'000));
    value += 1;
    expected[0][element] += 1;
    std::memcpy(job.memory(0).data() + element * sizeof value, &value, sizeof value);
    lock.release();
    co_await self.program.sleep(self.random().below(3'000));
  }
}

TEST(SimulatedProtocol, continues_a_long_sum_where_a_held_stripe_stopped_it) {
  constexpr Rank ranks = 8;
  constexpr std::size_t elements = 20'000;
  for_each_seed(250, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.window_bytes = elements * sizeof(double);
    options.sim.max_message_bytes = 128 * 1024;
    options.sim.max_reply_bytes = 128 * 1024;
    options.inline_bytes = 1024 << SimRandom(seed).below(7);
    ProtocolJob job(seed, ranks, options);
    Expected expected(1, std::vector<double>(elements));
    for (Rank rank = 0; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(rank < 3 ? hold_stripes(job, self, elements, 20, expected)
                                  : add_stretches(job, self, 1, elements, 4, expected));
    }
    EXPECT_TRUE(job.run());
    expect_memory(job, expected);
  });
}

TEST(SimulatedProtocol, catches_a_caller_that_takes_no_lock) {
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) caught += !run_with_callers(seed, CallerIs::without_lock).holds();
  EXPECT_GT(caught, 20);
}

// --- A card beside the agent: the illegal mix that the atomicity domain forbids. ---

SimTask<> add_by_card(ProtocolJob& job, ProtocolRank& self, int count) {
  auto* const word = reinterpret_cast<std::uint64_t*>(job.memory(0).data() + 64);
  for (int i = 0; i < count; ++i) {
    const auto call = job.history.invoke(
        {.rank = self.rank(), .action = HistoryAction::fetch_add, .object = 0, .operand = 1}, self.now_ns());
    bool is_answered = false;
    std::uint64_t before = 0;
    job.world().card(0).fetch_add(self.rank(), word, 1, [&](Code, std::uint64_t old) {
      before = old;
      is_answered = true;
    });
    co_await self.program.until([&] { return is_answered; });
    job.history.respond(call, before, self.now_ns());
  }
}

Verdict run_with_card(std::uint64_t seed, Rank ranks_by_card) {
  constexpr Rank ranks = 10;
  ProtocolJobOptions options = options_from(seed);
  options.sim.card_gap = {200, 2'000};
  ProtocolJob job(seed, ranks, options);
  for (Rank rank = 1; rank < ranks; ++rank) {
    ProtocolRank& self = job.rank(rank);
    self.program.start(rank <= ranks_by_card ? add_by_card(job, self, 10) : take_tickets(job, self, 1, 10));
  }
  EXPECT_TRUE(job.run());
  return check_tickets(job.history.calls(), 0, job.word(0, 64));
}

TEST(SimulatedProtocol, is_exact_when_all_use_the_card_or_all_use_the_agent) {
  for_each_seed(50, [&](std::uint64_t seed) {
    for (const Rank by_card : {0u, 9u}) {
      const Verdict verdict = run_with_card(seed, by_card);
      EXPECT_TRUE(verdict.holds()) << by_card << " use the card: " << verdict.why;
    }
  });
}

TEST(SimulatedProtocol, loses_updates_when_card_and_agent_share_an_element_and_the_checker_says_so) {
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) caught += !run_with_card(seed, 4).holds();
  EXPECT_GT(caught, 20);
}

// --- Death. ---

TEST(SimulatedProtocol, answers_everybody_when_an_owner_dies_and_goes_on_with_the_others) {
  constexpr Rank ranks = 16;
  constexpr Rank owners = 3;
  for_each_seed(250, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.owners = owners;
    ProtocolJob job(seed, ranks, options);
    make_weather(job, seed);
    for (Rank rank = 1; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      job.world().set_death_hook(rank, [&self](Rank dead) { self.engine.fail_peer(dead); });
      self.program.start(take_tickets(job, self, owners, 10));
    }
    job.world().kill_after(0, job.world().random().below(200'000));
    EXPECT_TRUE(job.run()) << "somebody still waits for the dead";
    expect_true_tickets(job, owners);
  });
}

// Origins die with pulls, accumulates and pipelined operations under way: what they added is there or not, never in
// part.
TEST(SimulatedProtocol, survives_origins_that_die_at_any_moment) {
  constexpr Rank ranks = 12;
  for_each_seed(250, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    ProtocolJob job(seed, ranks, options);
    for (Rank rank = 1; rank < ranks; ++rank) job.rank(rank).program.start(take_tickets(job, job.rank(rank), 1, 10));
    for (Rank rank = 1; rank < ranks; rank += 3) job.world().kill_after(rank, job.world().random().below(300'000));
    EXPECT_TRUE(job.run());
    expect_true_tickets(job, 1);
  });
}

// The slots that pulls use are few: one that a dead origin kept would be missed by the others.
TEST(SimulatedProtocol, gets_its_pull_slots_back_from_the_dead) {
  constexpr Rank ranks = 8;
  constexpr std::size_t elements = 4'000;
  for_each_seed(250, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.sim.transfers = true;
    options.pull = true;
    options.inline_bytes = 64;
    options.pull_slots = 1;
    options.window_bytes = elements * sizeof(double);
    ProtocolJob job(seed, ranks, options);
    Expected expected(1, std::vector<double>(elements));
    for (Rank rank = 1; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(add_stretches(job, self, 1, elements, 5, expected));
    }
    for (Rank rank = 1; rank < 4; ++rank) job.world().kill_after(rank, job.world().random().below(400'000));
    EXPECT_TRUE(job.run()) << "somebody waits for a slot that a dead rank keeps";
  });
}

}  // namespace
}  // namespace farsum
