// Caller-computes between nodes: origins that fetch, compute and put back, beside all the others who update the same
// memory meanwhile.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "memory/apply.hpp"
#include "ops/atomics.hpp"
#include "protocol_job.hpp"
#include "seeds.hpp"
#include "transport/sim/checkers.hpp"

namespace farsum {
namespace {

const std::byte* bytes_of(const void* value) { return static_cast<const std::byte*>(value); }

Operation words(OperationKind kind, ops::Operator op, std::uint64_t offset, const std::vector<std::uint64_t>& operand,
                std::uint64_t* result = nullptr) {
  Operation operation;
  operation.kind = kind;
  operation.type = ops::ElementType::uint64;
  operation.op = op;
  operation.offset = offset;
  operation.bytes = operand.size() * 8;
  operation.operand = bytes_of(operand.data());
  operation.result = reinterpret_cast<std::byte*>(result);
  operation.operand_layout = operation.target_layout = operation.result_layout =
      ops::LayoutView::contiguous(operation.bytes);
  return operation;
}

SimTask<Code> run_by(ProtocolRank& self, bool by_caller, Operation operation) {
  if (by_caller) return self.run_leased(0, operation);
  return self.run(0, operation);
}

// ---- sums ----

using Totals = std::vector<std::uint64_t>;

// How a rank adds. In memory: as a rank of the owner's node, who now and then keeps a stripe for a while.
enum class Way : std::uint8_t { caller, owner, in_memory };

struct Adding {
  Totals totals;
  std::uint64_t by_owner = 0;  // bytes of leased operations
};

// A stretch, or elements here and there of which some may come twice; ones are added.
struct Places {
  std::vector<ops::Piece> pieces;
  std::uint64_t elements = 0;

  Places(SimRandom& random, std::size_t window_elements) {
    const std::size_t count = random.once_in(2) ? 1 : 1 + random.below(40);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t begin = random.below(window_elements);
      const std::size_t most =
          random.once_in(3) ? window_elements - begin : std::min<std::size_t>(8, window_elements - begin);
      const std::uint64_t length = 1 + random.below(most);
      pieces.push_back({static_cast<std::int64_t>(begin * 8), length * 8});
      elements += length;
      if (elements > window_elements) break;
    }
  }
};

// The agent finds the stripe taken, and comes back to its request.
SimTask<> add_in_two_steps(ProtocolJob& job, ProtocolRank& self, std::uint64_t offset) {
  const AtomicDomain domain = job.domain(0);
  while (take_stripes(domain, offset, 8, {self.rank() + 1, false}) != Applied::done) co_await self.program.sleep(100);
  const std::uint64_t after = job.word(0, offset) + 1;
  co_await self.program.sleep(self.random().below(5'000));
  std::memcpy(job.memory(0).data() + offset, &after, sizeof after);
  release_stripes(domain, offset, 8);
}

SimTask<> add_in_memory(ProtocolJob& job, ProtocolRank& self, const Places& places) {
  const AtomicDomain domain = job.domain(0);
  const LockAgent agent{self.rank() + 1, false};
  const std::vector<std::uint64_t> ones(places.elements, 1);
  const Reduction sum =
      make_reduction(ops::kernels_for_this_machine(), ops::ElementType::uint64, ops::Operator::sum, nullptr, 0);
  for (const ops::Piece& piece : places.pieces) {
    const auto offset = static_cast<std::uint64_t>(piece.offset);
    std::uint64_t progress = 0;
    if (!domain.atomics_only && self.random().once_in(16)) {
      co_await add_in_two_steps(job, self, offset);
      progress = 8;
    }
    while (apply_reduction(domain, agent, job.memory(0).data(), offset, bytes_of(ones.data()), nullptr, piece.bytes,
                           sum, progress) != Applied::done) {
      co_await self.program.sleep(100);
    }
  }
}

SimTask<> add_ones(ProtocolJob& job, ProtocolRank& self, Way way, int count, Adding& adding) {
  for (int i = 0; i < count; ++i) {
    const Places places(self.random(), adding.totals.size());
    for (const ops::Piece& piece : places.pieces) {
      for (std::uint64_t at = 0; at < piece.bytes; at += 8) ++adding.totals[(piece.offset + at) / 8];
    }
    const std::vector<std::uint64_t> ones(places.elements, 1);
    std::vector<std::uint64_t> before(places.elements);
    const bool fetches = self.random().once_in(2);
    Operation add = words(fetches ? OperationKind::get_accumulate : OperationKind::accumulate, ops::Operator::sum, 0,
                          ones, before.data());
    add.target_layout = ops::LayoutView::indexed(places.pieces);
    if (way == Way::in_memory) {
      co_await add_in_memory(job, self, places);
    } else if (way == Way::caller) {
      std::uint64_t left = 0;
      const Code code = co_await self.run_leased(0, add, &left);
      EXPECT_EQ(code, Code::ok);
      adding.by_owner += left;
    } else {
      const Code code = co_await self.run(0, add);
      EXPECT_EQ(code, Code::ok);
    }
  }
}

void expect_totals(const ProtocolJob& job, const Totals& totals) {
  for (std::size_t i = 0; i < totals.size(); ++i) ASSERT_EQ(job.word(0, i * 8), totals[i]) << "element " << i;
}

// Returns how much of the leased operations the owner computed.
std::uint64_t run_sums(std::uint64_t seed, ProtocolJobOptions options, bool beside_others = true) {
  constexpr Rank ranks = 9;
  constexpr std::size_t elements = 3'000;
  options.window_bytes = elements * 8;
  ProtocolJob job(seed, ranks, options);
  Adding adding;
  adding.totals.resize(elements);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Way way = rank == 0 || !beside_others ? Way::caller
                    : rank % 4 == 3             ? Way::in_memory
                    : rank % 4 == 2             ? Way::owner
                                                : Way::caller;
    ProtocolRank& self = job.rank(rank);
    self.program.start(add_ones(job, self, way, 6, adding), self.random().below(20'000));
  }
  EXPECT_TRUE(job.run()) << "somebody still waits";
  expect_totals(job, adding.totals);
  EXPECT_EQ(job.rank(0).leases->leases().size(), 0) << "a lease has no end";
  EXPECT_EQ(job.rank(0).leases->leases().used_bytes(), 0);
  return adding.by_owner;
}

TEST(LeasedUpdates, count_once_each_beside_the_owner_path_and_the_owners_own_node) {
  std::uint64_t by_owner = 0;
  for_each_seed(150, [&](std::uint64_t seed) { by_owner += run_sums(seed, options_from(seed)); });
  EXPECT_NE(by_owner, 0) << "nobody was ever refused twice: the test does not test that";
}

TEST(LeasedUpdates, count_once_each_in_memory_of_cpu_atomics_alone) {
  for_each_seed(60, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.atomics_only = true;
    run_sums(seed, options);
  });
}

TEST(LeasedUpdates, go_to_the_owner_where_the_pool_is_full) {
  std::uint64_t by_owner = 0;
  for_each_seed(40, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.leases.pool_bytes = 2'000;
    by_owner += run_sums(seed, options, false);
    options.leases.pool_bytes = 0;
    run_sums(seed, options);
  });
  EXPECT_NE(by_owner, 0);
}

TEST(LeasedUpdates, count_once_each_when_leases_are_revoked) {
  for_each_seed(80, [&](std::uint64_t seed) {
    ProtocolJobOptions options = options_from(seed);
    options.leases = {.pool_bytes = 6'000, .revocable_after_ns = seed % 2 == 0 ? 0u : 20'000u};
    run_sums(seed, options);
  });
}

TEST(LeasedUpdates, alone_are_never_left_to_the_owner) {
  for_each_seed(20, [&](std::uint64_t seed) {
    constexpr std::size_t elements = 3'000;
    ProtocolJobOptions options = options_from(seed);
    options.window_bytes = elements * 8;
    ProtocolJob job(seed, 2, options);
    ProtocolRank& self = job.rank(1);
    const std::vector<std::uint64_t> ones(elements, 1);
    std::uint64_t left = 0;
    const auto program = [&]() -> SimTask<> {
      const Code code =
          co_await self.run_leased(0, words(OperationKind::accumulate, ops::Operator::sum, 0, ones), &left);
      EXPECT_EQ(code, Code::ok);
    };
    self.program.start(program());
    EXPECT_TRUE(job.run());
    expect_totals(job, ones);
    EXPECT_EQ(left, 0);
  });
}

// ---- results ----

// Each element's adds are one history: what was fetched is the value before the one time that it was applied.
SimTask<> take_tickets(ProtocolJob& job, ProtocolRank& self, bool by_caller, std::size_t most_elements, int count) {
  for (int i = 0; i < count; ++i) {
    const std::size_t elements = 1 + self.random().below(most_elements);
    const std::vector<std::uint64_t> steps(elements, 1 + self.random().below(3));
    std::vector<History::CallId> calls(elements);
    for (std::size_t element = 0; element < elements; ++element) {
      calls[element] = job.history.invoke(
          {.rank = self.rank(), .action = HistoryAction::fetch_add, .object = element, .operand = steps[element]},
          self.now_ns());
    }
    std::vector<std::uint64_t> before(elements);
    const Operation add = words(OperationKind::get_accumulate, ops::Operator::sum, 0, steps, before.data());
    const Code code = co_await run_by(self, by_caller, add);
    EXPECT_EQ(code, Code::ok);
    for (std::size_t element = 0; element < elements; ++element)
      job.history.respond(calls[element], before[element], self.now_ns());
  }
}

TEST(LeasedUpdates, fetch_the_value_before_their_own) {
  for_each_seed(100, [&](std::uint64_t seed) {
    constexpr Rank ranks = 8;
    const std::size_t elements = 1 + seed % 8;
    ProtocolJob job(seed, ranks, options_from(seed));
    for (Rank rank = 1; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(take_tickets(job, self, rank % 3 != 0, elements, 8), self.random().below(10'000));
    }
    EXPECT_TRUE(job.run());
    for (std::size_t element = 0; element < elements; ++element) {
      const Verdict verdict = check_tickets(job.history.calls_on(element), 0, job.word(0, element * 8));
      EXPECT_TRUE(verdict.holds()) << "element " << element << ": " << verdict.why;
    }
  });
}

SimTask<> swap_and_add(ProtocolJob& job, ProtocolRank& self, int count) {
  for (int i = 0; i < count; ++i) {
    const bool by_caller = self.random().once_in(2);
    const bool swaps = self.random().once_in(2);
    const std::vector<std::uint64_t> operand{1 + self.random().below(4)};
    const std::uint64_t compare = self.random().below(6);
    std::uint64_t before = 0;
    Operation operation =
        words(swaps ? OperationKind::compare_and_swap : OperationKind::get_accumulate,
              self.random().once_in(3) ? ops::Operator::replace : ops::Operator::sum, 0, operand, &before);
    operation.compare = bytes_of(&compare);
    const HistoryAction action = swaps                                    ? HistoryAction::compare_and_swap
                                 : operation.op == ops::Operator::replace ? HistoryAction::swap
                                                                          : HistoryAction::fetch_add;
    const auto call = job.history.invoke(
        {.rank = self.rank(), .action = action, .object = 0, .operand = operand[0], .compare = compare}, self.now_ns());
    const Code code = co_await run_by(self, by_caller, operation);
    EXPECT_EQ(code, Code::ok);
    job.history.respond(call, before, self.now_ns());
  }
}

TEST(LeasedUpdates, of_one_element_are_linearizable_with_compare_and_swap_and_replace) {
  for_each_seed(100, [&](std::uint64_t seed) {
    ProtocolJob job(seed, 6, options_from(seed));
    for (Rank rank = 1; rank < 6; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(swap_and_add(job, self, 6), self.random().below(10'000));
    }
    EXPECT_TRUE(job.run());
    const Verdict verdict = check_linearizable(job.history.calls(), 0, job.word(0, 0));
    EXPECT_TRUE(verdict.holds()) << verdict.why;
  });
}

// Bytes that belong to no value.
bool is_padding(ops::ElementType type, std::size_t byte) {
  constexpr std::size_t of_long_double = 10;
  switch (type) {
    case ops::ElementType::long_double:
    case ops::ElementType::complex_long_double:
      return byte % 16 >= of_long_double;
    case ops::ElementType::pair_long_double_int:
      return (byte >= of_long_double && byte < 16) || byte >= 20;
    case ops::ElementType::pair_double_int:
    case ops::ElementType::pair_long_int:
      return byte >= 12;
    case ops::ElementType::pair_short_int:
      return byte == 2 || byte == 3;
    default:
      return false;
  }
}

bool are_same(ops::ElementType type, std::span<const std::byte> one, std::span<const std::byte> other) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!is_padding(type, i % ops::size_of(type)) && one[i] != other[i]) return false;
  }
  return true;
}

// The same bytes as the owner path makes of them.
TEST(LeasedUpdates, do_for_every_type_and_operator_what_the_owner_does) {
  constexpr std::size_t elements = 40;
  for (std::size_t type = 0; type < ops::element_type_count; ++type) {
    for (std::size_t op = 0; op < ops::operator_count; ++op) {
      Operation operation;
      operation.kind = OperationKind::get_accumulate;
      operation.type = static_cast<ops::ElementType>(type);
      operation.op = static_cast<ops::Operator>(op);
      if (!ops::legal(operation.type, operation.op) || !computes(operation)) continue;
      ProtocolJobOptions options;
      options.window_bytes = elements * ops::largest_element_bytes;
      options.owners = 2;
      ProtocolJob job(1, 3, options);
      operation.bytes = elements * ops::size_of(operation.type);
      std::vector<std::byte> operand(operation.bytes), by_caller(operation.bytes), by_owner(operation.bytes);
      for (std::size_t i = 0; i < operand.size(); ++i) {
        operand[i] = static_cast<std::byte>(i * 7 % 3);
        job.memory(0)[i] = job.memory(1)[i] = static_cast<std::byte>(i * 5 % 2);
      }
      operation.operand = operation.compare = operand.data();
      operation.alpha = operand.data() + ops::size_of(operation.type);
      operation.operand_layout = operation.target_layout = operation.result_layout =
          ops::LayoutView::contiguous(operation.bytes);
      ProtocolRank& self = job.rank(2);
      const auto program = [&]() -> SimTask<> {
        operation.result = by_caller.data();
        const Code leased = co_await self.run_leased(0, operation);
        operation.result = by_owner.data();
        const Code owned = co_await self.run(1, operation);
        EXPECT_EQ(leased, Code::ok);
        EXPECT_EQ(owned, Code::ok);
      };
      self.program.start(program());
      EXPECT_TRUE(job.run());
      EXPECT_TRUE(are_same(operation.type, by_caller, by_owner));
      EXPECT_TRUE(are_same(operation.type, job.memory(0).first(operation.bytes), job.memory(1)))
          << ops::name_of(operation.type) << ", " << ops::name_of(operation.op);
    }
  }
}

// ---- death ----

TEST(LeasedUpdates, of_origins_that_die_count_wholly_or_not_at_all) {
  int died_between = 0;
  for_each_seed(150, [&](std::uint64_t seed) {
    constexpr Rank ranks = 8;
    ProtocolJob job(seed, ranks, options_from(seed));
    job.world().set_death_hook(0, [&job](Rank dead) { EXPECT_TRUE(job.rank(0).service.forget(dead)); });
    for (Rank rank = 1; rank < ranks; ++rank) {
      ProtocolRank& self = job.rank(rank);
      self.program.start(take_tickets(job, self, true, 1, 10), self.random().below(10'000));
    }
    for (Rank rank = 1; rank < ranks; rank += 3) {
      const SimTime when_ns = job.world().random().below(300'000);
      job.world().kill_after(rank, when_ns);
      job.world().call_after(when_ns + 1, [&] { died_between += job.rank(0).leases->leases().size() != 0; });
    }
    EXPECT_TRUE(job.run()) << "somebody waits for what a dead rank keeps";
    // What the dead had asked for may have come after the notice of their death.
    for (Rank rank = 1; rank < ranks; rank += 3) EXPECT_TRUE(job.rank(0).service.forget(rank));
    EXPECT_EQ(job.rank(0).leases->leases().size(), 0) << "a living rank has left a lease behind";
    const Verdict verdict = check_tickets(job.history.calls_on(0), 0, job.word(0, 0));
    EXPECT_TRUE(verdict.holds()) << verdict.why;
  });
  EXPECT_NE(died_between, 0);
}

TEST(LeasedUpdates, end_with_a_failure_when_the_owner_dies) {
  int failures = 0;
  for_each_seed(60, [&](std::uint64_t seed) {
    constexpr std::size_t elements = 3'000;
    ProtocolJobOptions options = options_from(seed);
    options.window_bytes = elements * 8;
    ProtocolJob job(seed, 4, options);
    const std::vector<std::uint64_t> ones(elements, 1);
    const auto add = [&](Rank rank) -> SimTask<> {
      ProtocolRank& self = job.rank(rank);
      const Operation sum = words(OperationKind::accumulate, ops::Operator::sum, 0, ones);
      for (Code code = Code::ok; code == Code::ok;) {
        code = co_await self.run_leased(0, sum);
        failures += code == Code::peer_failed;
      }
    };
    for (Rank rank = 1; rank < 4; ++rank) {
      job.world().set_death_hook(rank, [&self = job.rank(rank)](Rank dead) { self.engine.fail_peer(dead); });
      job.rank(rank).program.start(add(rank));
    }
    job.world().kill_after(0, job.world().random().below(300'000));
    EXPECT_TRUE(job.run()) << "somebody still waits for the dead";
  });
  EXPECT_EQ(failures, 3 * static_cast<int>(seeds(60).size()));
}

// ---- what an owner does with leases, and what it refuses ----

// Half of the elements have been put when another lease wants the room of theirs.
TEST(Leases, are_not_revoked_while_they_are_put_back) {
  constexpr std::size_t elements = 4'096;
  ProtocolJobOptions options;
  options.window_bytes = elements * 8;
  options.sim.max_message_bytes = options.sim.max_reply_bytes = options.sim.pair_bytes = 100'000;
  options.leases = {.pool_bytes = elements * 8 + 2'000, .revocable_after_ns = 0};
  ProtocolJob job(1, 3, options);
  const std::vector<std::uint64_t> ones(elements, 1);
  const AtomicDomain domain = job.domain(0);
  const std::uint64_t held = elements * 8 - 8;
  const LockAgent neighbour{77, false};
  const auto add = [&](Rank rank) -> SimTask<> {
    const Code code =
        co_await job.rank(rank).run_leased(0, words(OperationKind::accumulate, ops::Operator::sum, 0, ones));
    EXPECT_EQ(code, Code::ok);
  };
  const auto hold = [&]() -> SimTask<> {
    ProtocolRank& self = job.rank(0);
    while (job.rank(0).leases->leases().size() == 0) co_await self.program.sleep(10);
    EXPECT_EQ(take_stripes(domain, held, 8, neighbour), Applied::done);
    while (job.word(0, 0) == 0) co_await self.program.sleep(1'000);
    EXPECT_EQ(job.word(0, held), 0);
    job.rank(2).program.start(add(2));
    co_await self.program.sleep(1'000'000);
    release_stripes(domain, held, 8);
  };
  job.rank(1).program.start(add(1));
  job.rank(0).program.start(hold());
  EXPECT_TRUE(job.run());
  expect_totals(job, Totals(elements, 2));
}

class LeaseMessages : public testing::Test {
 protected:
  LeaseMessages() : job_(1, 3, ProtocolJobOptions()) {}

  wire::MessageHeader lease_header(std::uint64_t bytes) {
    wire::MessageHeader header = job_.rank(1).header_of(wire::MessageKind::lease);
    header.operation = OperationKind::get_accumulate;
    header.op = ops::Operator::no_op;
    header.type = ops::ElementType::uint64;
    header.offset = 0;
    header.bytes = bytes;
    return header;
  }
  wire::MessageHeader put_header(std::uint64_t lease, std::uint64_t bytes) {
    wire::MessageHeader header = job_.rank(1).header_of(wire::MessageKind::lease_put);
    header.type = ops::ElementType::uint64;
    header.offset = lease;
    header.bytes = bytes;
    return header;
  }
  Code send(Rank from, const wire::MessageHeader& header, std::size_t body_bytes, std::size_t reply_bytes) {
    const std::vector<std::byte> body(body_bytes, std::byte{0xff});
    reply_.assign(reply_bytes, std::byte{0});
    Code code = Code::ok;
    const auto program = [&]() -> SimTask<> { code = co_await job_.rank(from).control(0, header, body, reply_); };
    job_.rank(from).program.start(program());
    EXPECT_TRUE(job_.run());
    return code;
  }
  // Of rank 1, 16 bytes from offset 0 on.
  std::uint64_t lease_two_words() {
    EXPECT_EQ(send(1, lease_header(16), 0, 24), Code::ok);
    std::uint64_t name = 0;
    std::memcpy(&name, reply_.data(), sizeof name);
    return name;
  }
  std::size_t leases() { return job_.rank(0).leases->leases().size(); }

  ProtocolJob job_;
  std::vector<std::byte> reply_;
};

TEST_F(LeaseMessages, are_put_once) {
  const std::uint64_t lease = lease_two_words();
  EXPECT_EQ(leases(), 1);
  EXPECT_EQ(send(1, put_header(lease, 16), 16, 64), Code::ok);
  EXPECT_EQ(job_.word(0, 0), ~std::uint64_t{0});
  std::memset(job_.memory(0).data(), 0, 16);
  EXPECT_EQ(send(1, put_header(lease, 16), 16, 64), Code::pending);
  EXPECT_EQ(job_.word(0, 0), 0);
  EXPECT_EQ(leases(), 0);
}

TEST_F(LeaseMessages, put_what_nobody_has_changed_and_tell_of_the_rest) {
  const std::uint64_t lease = lease_two_words();
  const std::uint64_t changed = 7;
  std::memcpy(job_.memory(0).data() + 8, &changed, 8);
  EXPECT_EQ(send(1, put_header(lease, 16), 16, 64), Code::ok);
  EXPECT_EQ(job_.word(0, 0), ~std::uint64_t{0});
  EXPECT_EQ(job_.word(0, 8), 7);
  std::uint64_t told[3];
  std::memcpy(told, reply_.data(), sizeof told);
  EXPECT_EQ(told[0], 1) << "elements refused";
  EXPECT_EQ(told[1], 2) << "a bit for each";
  EXPECT_EQ(told[2], 7) << "what is there";
  EXPECT_EQ(leases(), 1);
  wire::MessageHeader rest = put_header(lease, 8);
  rest.flags = wire::flag_last;
  EXPECT_EQ(send(1, rest, 8, 64), Code::ok);
  EXPECT_EQ(job_.word(0, 8), ~std::uint64_t{0});
  EXPECT_EQ(leases(), 0);
}

TEST_F(LeaseMessages, end_with_the_last_put_whatever_is_refused) {
  const std::uint64_t lease = lease_two_words();
  job_.memory(0)[0] = std::byte{1};
  wire::MessageHeader put = put_header(lease, 16);
  put.flags = wire::flag_last;
  EXPECT_EQ(send(1, put, 16, 64), Code::ok);
  EXPECT_EQ(job_.word(0, 0), 1);
  EXPECT_EQ(job_.word(0, 8), ~std::uint64_t{0});
  EXPECT_EQ(leases(), 0);
}

TEST_F(LeaseMessages, are_refused_and_counted_where_they_do_not_hold_together) {
  const std::uint64_t lease = lease_two_words();
  const std::uint64_t refused = job_.rank(0).service.refused();
  EXPECT_EQ(send(1, put_header(lease + 1, 16), 16, 64), Code::pending) << "never granted";
  EXPECT_EQ(send(2, put_header(lease, 16), 16, 64), Code::pending) << "another's";
  EXPECT_EQ(send(1, put_header(lease, 8), 8, 64), Code::argument) << "of another length";
  EXPECT_EQ(send(1, put_header(lease, 16), 24, 64), Code::argument) << "longer than it says";
  EXPECT_EQ(send(1, put_header(lease, 16), 16, 8), Code::argument) << "no room to be told what is refused";
  wire::MessageHeader put = put_header(lease, 16);
  put.window = 99;
  EXPECT_EQ(send(1, put, 16, 64), Code::handle);
  put = put_header(lease, 16);
  put.type = ops::ElementType::uint32;
  EXPECT_EQ(send(1, put, 16, 64), Code::argument);
  EXPECT_EQ(send(1, lease_header(4'104), 0, 4'200), Code::range) << "beyond the window";
  EXPECT_EQ(send(1, lease_header(16), 0, 16), Code::argument) << "no room for the contents";
  EXPECT_EQ(send(1, lease_header(0), 0, 16), Code::argument);
  wire::MessageHeader ask = lease_header(16);
  ask.flags = wire::flag_push;
  EXPECT_EQ(send(1, ask, 0, 24), Code::argument);
  EXPECT_EQ(job_.rank(0).service.refused(), refused + 11);
  EXPECT_EQ(job_.word(0, 0), 0) << "a refused message wrote";
  EXPECT_EQ(job_.word(0, 8), 0);
  EXPECT_EQ(leases(), 1);
}

TEST_F(LeaseMessages, of_the_dead_are_forgotten_and_no_others) {
  const std::uint64_t lease = lease_two_words();
  EXPECT_EQ(send(2, lease_header(16), 0, 24), Code::ok);
  EXPECT_EQ(leases(), 2);
  EXPECT_TRUE(job_.rank(0).service.forget(2));
  EXPECT_EQ(leases(), 1);
  EXPECT_EQ(send(1, put_header(lease, 16), 16, 64), Code::ok);
  EXPECT_EQ(job_.word(0, 0), ~std::uint64_t{0});
  EXPECT_EQ(job_.rank(0).leases->leases().used_bytes(), 0);
}

TEST_F(LeaseMessages, find_no_window_any_more_once_it_is_freed) {
  const std::uint64_t lease = lease_two_words();
  job_.rank(0).exposures.erase(ProtocolRank::window);
  EXPECT_EQ(send(1, put_header(lease, 16), 16, 64), Code::handle);
  EXPECT_EQ(job_.word(0, 0), 0);
}

}  // namespace
}  // namespace farsum
