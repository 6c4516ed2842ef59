// The contract suite of cards: what src/transport/rdma.hpp promises, tested on every implementation. One joins by
// including this file and instantiating RdmaContract with a factory; what it cannot do is a reported skip.
//
//   INSTANTIATE_TEST_SUITE_P(sim, RdmaContract, testing::Values(CardsFactory{"plain", [] { return ...; }}),
//   cards_name);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "transport/rdma.hpp"

namespace farsum {

inline constexpr Rank card_ranks = 3;

// The cards of some ranks of one job, all within this process and introduced to each other.
class CardsUnderTest {
 public:
  virtual ~CardsUnderTest() = default;

  virtual Rdma& at(Rank rank) = 0;
  // Returns when the rank's operations are over.
  virtual void until_over(Rank rank, const CardCompletion& completion) = 0;
  // Whether several threads may be in here at once.
  virtual bool serves_threads() const = 0;
};

struct CardsFactory {
  std::string name;
  std::function<std::unique_ptr<CardsUnderTest>()> make;  // null: this machine has none, and the tests are skipped
};

inline std::string cards_name(const testing::TestParamInfo<CardsFactory>& info) { return info.param.name; }
inline void PrintTo(const CardsFactory& factory, std::ostream* out) { *out << factory.name; }  // NOLINT: googletest's

inline std::vector<std::byte> card_pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::byte> made(bytes);
  for (std::byte& byte : made) {
    seed = seed * 1'664'525 + 1'013'904'223;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return made;
}

class RdmaContract : public testing::TestWithParam<CardsFactory> {
 protected:
  static constexpr Rank origin = 0;
  static constexpr Rank other_origin = 1;
  static constexpr Rank owner = 2;

  void SetUp() override {
    job_ = GetParam().make();
    if (!job_) GTEST_SKIP() << "no such card here";
  }

  Rdma& at(Rank rank) { return job_->at(rank); }

  CardMemory exposed(std::uint64_t bytes) {
    auto made = at(owner).expose(nullptr, bytes);
    EXPECT_TRUE(made.is_ok()) << made.take_status().text();
    return made.value();
  }

  // By the two origins.
  std::array<Rdma::Reached, 2> reached_by_both(const CardMemory& memory) {
    return {at(origin).reach(owner, memory.key), at(other_origin).reach(owner, memory.key)};
  }

  static std::uint64_t address(const CardMemory& memory, std::size_t offset = 0) {
    return reinterpret_cast<std::uintptr_t>(memory.memory) + offset;
  }
  // As the owner's own loads see it.
  static std::uint64_t word_there(const CardMemory& memory, std::size_t offset, std::uint8_t bytes = 8) {
    std::byte* word = memory.memory + offset;
    if (bytes == 4) return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(word)).load(std::memory_order_acquire);
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
  }

  // Starts an operation and sees to its end.
  template <class Start>
  Code finish(Rank rank, Start start) {
    CardCompletion completion;
    const Status status = start(completion);
    if (!status.is_ok()) return status.code();
    job_->until_over(rank, completion);
    return completion.failure.load(std::memory_order_relaxed);
  }
  Code put(Rank rank, Rdma::Reached memory, std::uint64_t address, std::span<const std::byte> from) {
    return finish(rank, [&](CardCompletion& over) { return at(rank).put(memory, address, from, over); });
  }
  Code put_word(Rank rank, Rdma::Reached memory, std::uint64_t address, std::uint64_t value) {
    return put(rank, memory, address, std::as_bytes(std::span(&value, 1)));
  }
  Code get(Rank rank, Rdma::Reached memory, std::uint64_t address, std::span<std::byte> into) {
    return finish(rank, [&](CardCompletion& over) { return at(rank).get(memory, address, into, over); });
  }
  std::uint64_t got_word(Rank rank, Rdma::Reached memory, std::uint64_t address) {
    std::uint64_t value = 0;
    EXPECT_EQ(get(rank, memory, address, std::as_writable_bytes(std::span(&value, 1))), Code::ok);
    return value;
  }
  Code flush(Rank rank, Rank peer = owner) {
    return finish(rank, [&](CardCompletion& over) { return at(rank).flush(peer, over); });
  }
  std::uint64_t fetched(Rank rank, Rdma::Reached memory, CardWord word, CardUpdate update, std::uint64_t operand,
                        std::uint64_t compare = 0) {
    std::uint64_t old = 0;
    EXPECT_EQ(finish(rank,
                     [&](CardCompletion& over) {
                       return at(rank).fetch(memory, word, update, operand, compare, reinterpret_cast<std::byte*>(&old),
                                             over);
                     }),
              Code::ok);
    return old;
  }

  // Several threads, half of them of each origin; `body(rank, thread)`.
  template <class Body>
  void in_threads(int threads, Body body) {
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
      const Rank rank = i % 2 == 0 ? origin : other_origin;
      if (job_->serves_threads()) {
        running.emplace_back([&body, rank, i] { body(rank, i); });
      } else {
        body(rank, i);
      }
    }
    for (std::thread& thread : running) thread.join();
  }

  std::unique_ptr<CardsUnderTest> job_;
};

struct UpdateCase {
  CardUpdate update;
  std::uint64_t before, operand, after;
};
inline constexpr std::array<UpdateCase, 6> update_cases = {{
    {CardUpdate::add, 0xfffffffffffffffe, 5, 3},
    {CardUpdate::add, 0x00000001ffffffff, 1, 0x0000000200000000},
    {CardUpdate::bit_and, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0x0f000f000f000f00},
    {CardUpdate::bit_or, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0xfff0fff0fff0fff0},
    {CardUpdate::bit_xor, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0xf0f0f0f0f0f0f0f0},
    {CardUpdate::swap, 0x0123456789abcdef, 0xfedcba9876543210, 0xfedcba9876543210},
}};
inline constexpr std::uint64_t beside = 0xa5a5a5a5a5a5a5a5;

constexpr std::uint64_t low_bytes(std::uint64_t value, std::uint8_t bytes) {
  return bytes == 8 ? value : value & 0xffffffff;
}

TEST_P(RdmaContract, addresses_and_keys_fit_where_they_are_sent) {
  EXPECT_LE(at(owner).address().size(), Rdma::most_address_bytes);
  EXPECT_LE(exposed(4096).key.size(), Rdma::most_key_bytes);
  EXPECT_FALSE(at(owner).description().empty());
}

TEST_P(RdmaContract, memory_of_its_own_making_is_zero_and_begins_with_a_page) {
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{300'001}}) {
    const CardMemory memory = exposed(bytes);
    ASSERT_EQ(memory.bytes, bytes);
    EXPECT_EQ(address(memory) % page_bytes, 0u);
    EXPECT_TRUE(std::all_of(memory.memory, memory.memory + bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    at(owner).conceal(memory);
  }
}

TEST_P(RdmaContract, memory_without_bytes_is_exposed_too) {
  const CardMemory memory = exposed(0);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  EXPECT_EQ(put(origin, reached, address(memory), {}), Code::ok);
  std::byte one{};
  EXPECT_EQ(get(origin, reached, address(memory), {&one, 1}), Code::range);
  at(origin).let_go(reached);
  at(owner).conceal(memory);
}

TEST_P(RdmaContract, what_was_put_is_got_and_nothing_beside_it_changes) {
  constexpr std::size_t most = (std::size_t{1} << 20) + 1;
  constexpr std::size_t offset = 13;
  const CardMemory memory = exposed(most + 2 * offset);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{4096}, most}) {
    std::fill_n(memory.memory, memory.bytes, std::byte{0x5a});
    const std::vector<std::byte> sent = card_pattern(bytes, static_cast<std::uint32_t>(bytes));
    ASSERT_EQ(put(origin, reached, address(memory, offset), sent), Code::ok);
    ASSERT_EQ(flush(origin), Code::ok);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.memory + offset)) << bytes;
    EXPECT_EQ(memory.memory[offset - 1], std::byte{0x5a});
    EXPECT_EQ(memory.memory[offset + bytes], std::byte{0x5a});
    std::vector<std::byte> received(bytes + 2, std::byte{0x77});
    ASSERT_EQ(get(origin, reached, address(memory, offset), std::span(received).subspan(1, bytes)), Code::ok);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), received.begin() + 1)) << bytes;
    EXPECT_EQ(received.front(), std::byte{0x77});
    EXPECT_EQ(received.back(), std::byte{0x77});
  }
}

TEST_P(RdmaContract, every_update_changes_its_word_and_no_other) {
  const CardMemory memory = exposed(4096);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  for (const std::uint8_t bytes : {std::uint8_t{8}, std::uint8_t{4}}) {
    for (const UpdateCase& test : update_cases) {
      std::array<std::uint64_t, 3> words = {beside, test.before, beside};
      std::memcpy(memory.memory, words.data(), sizeof words);
      ASSERT_TRUE(at(origin).update(reached, {address(memory, 8), bytes}, test.update, test.operand).is_ok());
      ASSERT_EQ(flush(origin), Code::ok);
      EXPECT_EQ(word_there(memory, 8, bytes), low_bytes(test.after, bytes)) << static_cast<int>(test.update);
      EXPECT_EQ(word_there(memory, 0), beside);
      EXPECT_EQ(word_there(memory, 16), beside);
      if (bytes == 4) {
        EXPECT_EQ(word_there(memory, 12, 4), test.before >> 32);
      }
    }
  }
}

TEST_P(RdmaContract, a_fetch_brings_what_was_there) {
  const CardMemory memory = exposed(4096);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  for (const std::uint8_t bytes : {std::uint8_t{8}, std::uint8_t{4}}) {
    for (const UpdateCase& test : update_cases) {
      std::memcpy(memory.memory, &test.before, sizeof test.before);
      const CardWord word{address(memory), bytes};
      // No more than the word is written: fetched() begins with zero.
      EXPECT_EQ(fetched(origin, reached, word, test.update, test.operand), low_bytes(test.before, bytes));
      EXPECT_EQ(word_there(memory, 0, bytes), low_bytes(test.after, bytes)) << static_cast<int>(test.update);
    }
  }
}

TEST_P(RdmaContract, compare_and_swap_changes_only_what_is_as_expected) {
  const CardMemory memory = exposed(4096);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  for (const std::uint8_t bytes : {std::uint8_t{8}, std::uint8_t{4}}) {
    const CardWord word{address(memory, 16), bytes};
    std::fill_n(memory.memory, 32, std::byte{0});
    EXPECT_EQ(fetched(origin, reached, word, CardUpdate::compare_and_swap, 7, 0), 0u);
    EXPECT_EQ(word_there(memory, 16), 7u);
    EXPECT_EQ(fetched(origin, reached, word, CardUpdate::compare_and_swap, 9, 8), 7u);
    EXPECT_EQ(word_there(memory, 16), 7u);
    EXPECT_EQ(fetched(origin, reached, word, CardUpdate::compare_and_swap, 0xffffffff, 7), 7u);
    EXPECT_EQ(word_there(memory, 16), 0xffffffffu);
    EXPECT_EQ(word_there(memory, 8), 0u);
    EXPECT_EQ(word_there(memory, 24), 0u);
  }
}

TEST_P(RdmaContract, the_own_memory_is_reached_like_that_of_others) {
  const CardMemory memory = exposed(4096);
  const Rdma::Reached own = at(owner).reach(owner, memory.key);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  ASSERT_EQ(put_word(owner, own, address(memory), 40), Code::ok);
  ASSERT_EQ(flush(owner), Code::ok);
  EXPECT_EQ(fetched(origin, reached, {address(memory), 8}, CardUpdate::add, 1), 40u);
  EXPECT_EQ(fetched(owner, own, {address(memory), 8}, CardUpdate::add, 1), 41u);
  EXPECT_EQ(word_there(memory, 0), 42u);
}

TEST_P(RdmaContract, what_was_flushed_is_seen_by_others) {
  const CardMemory memory = exposed(1 << 16);
  const Rdma::Reached from_origin = at(origin).reach(owner, memory.key);
  const Rdma::Reached from_other = at(other_origin).reach(owner, memory.key);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    const std::vector<std::byte> sent = card_pattern(1 << 16, static_cast<std::uint32_t>(i));
    ASSERT_EQ(put(origin, from_origin, address(memory), sent), Code::ok);
    ASSERT_EQ(flush(origin), Code::ok);
    std::vector<std::byte> received(sent.size());
    ASSERT_EQ(get(other_origin, from_other, address(memory), received), Code::ok);
    ASSERT_EQ(sent, received);
  }
}

TEST_P(RdmaContract, what_follows_a_fence_takes_effect_afterwards) {
  const CardMemory memory = exposed(1 << 16);
  const Rdma::Reached from_origin = at(origin).reach(owner, memory.key);
  const Rdma::Reached from_other = at(other_origin).reach(owner, memory.key);
  constexpr std::uint64_t flag = 0, data = 4096;
  constexpr std::uint64_t steps = 200;
  in_threads(2, [&](Rank rank, int) {
    if (rank == origin) {
      CardCompletion over;
      std::vector<std::uint64_t> sent(4096);
      for (std::uint64_t i = 1; i <= steps; ++i) {
        sent.assign(sent.size(), i);
        ASSERT_TRUE(at(origin).put(from_origin, address(memory, data), std::as_bytes(std::span(sent)), over).is_ok());
        ASSERT_TRUE(at(origin).fence(owner).is_ok());
        ASSERT_TRUE(at(origin).update(from_origin, {address(memory, flag), 8}, CardUpdate::add, 1).is_ok());
        ASSERT_TRUE(at(origin).fence(owner).is_ok());
        job_->until_over(origin, over);
      }
      ASSERT_EQ(flush(origin), Code::ok);
    } else {
      for (std::uint64_t seen = 0; seen < steps;) {
        seen = got_word(rank, from_other, address(memory, flag));
        std::vector<std::uint64_t> received(4096);
        ASSERT_EQ(get(rank, from_other, address(memory, data), std::as_writable_bytes(std::span(received))), Code::ok);
        ASSERT_GE(*std::min_element(received.begin(), received.end()), seen);
      }
    }
  });
}

TEST_P(RdmaContract, concurrent_adds_are_all_counted) {
  constexpr int threads = 4;
  constexpr std::uint64_t adds = 2000;
  const CardMemory memory = exposed(4096);
  const std::array<Rdma::Reached, 2> reached = reached_by_both(memory);
  in_threads(threads, [&](Rank rank, int) {
    for (std::uint64_t i = 0; i < adds; ++i) {
      ASSERT_TRUE(at(rank).update(reached[rank], {address(memory), 8}, CardUpdate::add, 3).is_ok());
      ASSERT_TRUE(at(rank).update(reached[rank], {address(memory, 8), 4}, CardUpdate::add, 5).is_ok());
      if (i % 4 == 0) fetched(rank, reached[rank], {address(memory), 8}, CardUpdate::add, 1);
    }
    ASSERT_EQ(flush(rank), Code::ok);
  });
  EXPECT_EQ(word_there(memory, 0), threads * (3 * adds + adds / 4));
  EXPECT_EQ(word_there(memory, 8), threads * 5 * adds);
}

TEST_P(RdmaContract, a_chain_of_swaps_hands_every_value_on_once) {
  constexpr int threads = 4;
  constexpr std::uint64_t swaps = 500;
  const CardMemory memory = exposed(4096);
  const std::array<Rdma::Reached, 2> reached = reached_by_both(memory);
  for (const std::uint8_t bytes : {std::uint8_t{8}, std::uint8_t{4}}) {
    std::fill_n(memory.memory, 8, std::byte{0});
    std::array<std::vector<std::uint64_t>, threads> taken;
    in_threads(threads, [&](Rank rank, int thread) {
      for (std::uint64_t i = 0; i < swaps; ++i) {
        taken[thread].push_back(
            fetched(rank, reached[rank], {address(memory), bytes}, CardUpdate::swap, thread * swaps + i + 1));
      }
    });
    std::vector<std::uint64_t> all = {word_there(memory, 0)};
    for (const auto& some : taken) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    std::vector<std::uint64_t> expected(threads * swaps + 1);
    std::iota(expected.begin(), expected.end(), std::uint64_t{0});
    EXPECT_EQ(all, expected);
  }
}

TEST_P(RdmaContract, counting_by_compare_and_swap_loses_nothing) {
  constexpr int threads = 4;
  constexpr std::uint64_t counts = 300;
  const CardMemory memory = exposed(4096);
  const std::array<Rdma::Reached, 2> reached = reached_by_both(memory);
  in_threads(threads, [&](Rank rank, int) {
    std::uint64_t seen = 0;
    for (std::uint64_t i = 0; i < counts;) {
      const std::uint64_t there =
          fetched(rank, reached[rank], {address(memory), 8}, CardUpdate::compare_and_swap, seen + 1, seen);
      if (there == seen) ++i;
      seen = there == seen ? seen + 1 : there;
    }
  });
  EXPECT_EQ(word_there(memory, 0), threads * counts);
}

TEST_P(RdmaContract, many_operations_may_be_under_one_completion) {
  const CardMemory memory = exposed(1 << 16);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  std::vector<std::uint64_t> sent(1000), received(1000);
  std::iota(sent.begin(), sent.end(), std::uint64_t{1});
  CardCompletion puts, gets;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_TRUE(
        at(origin).put(reached, address(memory, 8 * i), std::as_bytes(std::span(sent).subspan(i, 1)), puts).is_ok());
  }
  job_->until_over(origin, puts);
  ASSERT_EQ(flush(origin), Code::ok);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_TRUE(
        at(origin)
            .get(reached, address(memory, 8 * i), std::as_writable_bytes(std::span(received).subspan(i, 1)), gets)
            .is_ok());
  }
  job_->until_over(origin, gets);
  EXPECT_EQ(sent, received);
  EXPECT_EQ(gets.failure.load(std::memory_order_relaxed), Code::ok);
}

TEST_P(RdmaContract, memory_is_exposed_and_reached_anew_after_it_was_concealed) {
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const CardMemory memory = exposed(8192 * round);
    const Rdma::Reached reached = at(origin).reach(owner, memory.key);
    EXPECT_EQ(fetched(origin, reached, {address(memory, 8192 * round - 8), 8}, CardUpdate::add, round), 0u);
    EXPECT_EQ(word_there(memory, 8192 * round - 8), round);
    at(origin).let_go(reached);
    at(owner).conceal(memory);
  }
}

TEST_P(RdmaContract, parts_of_one_owner_are_told_apart) {
  const CardMemory one = exposed(4096), two = exposed(4096);
  const Rdma::Reached to_one = at(origin).reach(owner, one.key), to_two = at(origin).reach(owner, two.key);
  EXPECT_NE(to_one, to_two);
  ASSERT_EQ(put_word(origin, to_one, address(one), 1), Code::ok);
  ASSERT_EQ(put_word(origin, to_two, address(two), 2), Code::ok);
  ASSERT_EQ(flush(origin), Code::ok);
  EXPECT_EQ(word_there(one, 0), 1u);
  EXPECT_EQ(word_there(two, 0), 2u);
}

TEST_P(RdmaContract, a_flush_towards_a_peer_that_nothing_was_started_towards_is_over) {
  EXPECT_EQ(flush(origin, owner), Code::ok);
  EXPECT_TRUE(at(origin).fence(owner).is_ok());
}

TEST_P(RdmaContract, nothing_is_started_once_the_job_is_over) {
  const CardMemory memory = exposed(1 << 20);
  const Rdma::Reached reached = at(origin).reach(owner, memory.key);
  std::vector<std::byte> sent(1 << 20);
  CardCompletion over;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(at(origin).put(reached, address(memory), sent, over).is_ok());
  at(origin).abandon();
  EXPECT_EQ(over.pending.load(std::memory_order_acquire), 0u);
  EXPECT_EQ(put(origin, reached, address(memory), sent), Code::peer_failed);
  EXPECT_EQ(at(origin).update(reached, {address(memory), 8}, CardUpdate::add, 1).code(), Code::peer_failed);
}

}  // namespace farsum
