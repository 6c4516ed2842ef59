// One ring and both its ends in one thread: capacity, order, wrap, and peers that write nonsense.
#include "lockfree/ring.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace farsum {
namespace {

constexpr std::size_t capacity = 1024;

class RingTest : public ::testing::Test {
 protected:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  static std::span<const std::byte> bytes_of(const void* from, std::size_t bytes) {
    return {static_cast<const std::byte*>(from), bytes};
  }

  std::optional<std::uint64_t> push(std::size_t message, std::size_t reply) {
    const std::vector<std::byte> body(message, std::byte{7});
    return sender_.try_push({}, body, reply);
  }

  std::size_t serve_all() {
    return receiver_.serve([](std::span<const std::byte>, std::span<std::byte>) { return RecordAnswer{}; }, 1000);
  }

  std::size_t reap_all() {
    return sender_.reap([](std::uint64_t, std::uint32_t, std::span<const std::byte>) {});
  }

  // The words of the first record's header.
  std::uint32_t* header() { return reinterpret_cast<std::uint32_t*>(ring().storage()); }
  RingShared& ring() { return *reinterpret_cast<RingShared*>(memory_.data()); }

  std::vector<Line> memory_{RingShared::footprint(capacity) / sizeof(Line)};
  RingSender sender_{ring(), capacity};
  RingReceiver receiver_{ring(), capacity};
};

constexpr std::size_t header_bytes = 32;
constexpr std::size_t record_bytes_word = 1;
constexpr std::size_t message_bytes_word = 2;
constexpr std::size_t reply_bytes_word = 5;

TEST_F(RingTest, passes_head_body_status_and_reply) {
  const std::uint64_t head = 11;
  const std::uint64_t body = 22;
  EXPECT_EQ(sender_.try_push(bytes_of(&head, 8), bytes_of(&body, 8), 8), 0U);
  EXPECT_TRUE(receiver_.pending());
  EXPECT_FALSE(sender_.oldest_done());
  const auto add = [](std::span<const std::byte> message, std::span<std::byte> room) {
    std::uint64_t both[2];
    EXPECT_EQ(message.size(), sizeof(both));
    std::memcpy(both, message.data(), sizeof(both));
    const std::uint64_t sum = both[0] + both[1];
    std::memcpy(room.data(), &sum, sizeof(sum));
    return RecordAnswer{.status = 5, .reply_bytes = 8};
  };
  EXPECT_EQ(receiver_.serve(add, 10), 1U);
  EXPECT_FALSE(receiver_.pending());
  EXPECT_TRUE(sender_.oldest_done());
  std::uint64_t sum = 0;
  const auto take = [&](std::uint64_t ticket, std::uint32_t status, std::span<const std::byte> reply) {
    EXPECT_EQ(ticket, 0U);
    EXPECT_EQ(status, 5U);
    ASSERT_EQ(reply.size(), 8U);
    std::memcpy(&sum, reply.data(), 8);
  };
  EXPECT_EQ(sender_.reap(take), 1U);
  EXPECT_EQ(sum, 33U);
  EXPECT_TRUE(sender_.empty());
}

TEST_F(RingTest, takes_records_up_to_a_quarter_of_its_capacity) {
  EXPECT_EQ(sender_.max_record_bytes(), capacity / 4);
  EXPECT_TRUE(push(capacity / 4 - header_bytes, 0).has_value());
  EXPECT_FALSE(push(capacity / 4 - header_bytes + 1, 0).has_value());
  EXPECT_TRUE(push(0, capacity / 4 - header_bytes).has_value());
  EXPECT_FALSE(push(0, capacity / 4 - header_bytes + 1).has_value());
}

TEST_F(RingTest, takes_an_empty_message_without_reply) {
  EXPECT_TRUE(push(0, 0).has_value());
  EXPECT_EQ(serve_all(), 1U);
  EXPECT_EQ(reap_all(), 1U);
}

TEST_F(RingTest, is_full_at_capacity_and_has_room_again_only_after_reaping) {
  for (std::uint64_t i = 0; i < capacity / 64; ++i) {
    EXPECT_EQ(push(32, 0), i);
  }
  EXPECT_FALSE(push(0, 0).has_value());
  EXPECT_EQ(serve_all(), capacity / 64);
  EXPECT_FALSE(push(0, 0).has_value());
  EXPECT_EQ(reap_all(), capacity / 64);
  EXPECT_EQ(push(0, 0), capacity / 64);
}

TEST_F(RingTest, shows_a_record_again_and_holds_back_those_behind_it) {
  push(1, 0);
  push(2, 0);
  std::vector<std::size_t> shown;
  const auto busy_once = [&](std::span<const std::byte> message, std::span<std::byte>) {
    shown.push_back(message.size());
    return RecordAnswer{.kind = shown.size() == 1 ? RecordAnswer::Kind::again : RecordAnswer::Kind::done};
  };
  EXPECT_EQ(receiver_.serve(busy_once, 10), 0U);
  EXPECT_TRUE(receiver_.pending());
  EXPECT_EQ(receiver_.serve(busy_once, 10), 2U);
  EXPECT_EQ(shown, (std::vector<std::size_t>{1, 1, 2}));
}

TEST_F(RingTest, serves_no_more_than_the_budget) {
  push(1, 0);
  push(1, 0);
  push(1, 0);
  const auto done = [](std::span<const std::byte>, std::span<std::byte>) { return RecordAnswer{}; };
  EXPECT_EQ(receiver_.serve(done, 2), 2U);
  EXPECT_TRUE(receiver_.pending());
  EXPECT_EQ(receiver_.serve(done, 2), 1U);
}

TEST_F(RingTest, passes_records_of_every_length_round_and_round) {
  std::uint64_t posted = 0;
  for (std::size_t round = 0; round < 2000; ++round) {
    const std::size_t bytes = round * 37 % 200;
    while (push(bytes, round % 25).has_value()) {
      ++posted;
    }
    serve_all();
    reap_all();
  }
  EXPECT_EQ(sender_.posted(), posted);
  EXPECT_TRUE(sender_.empty());
  EXPECT_FALSE(sender_.corrupt());
  EXPECT_FALSE(receiver_.corrupt());
}

// A capacity that no test of lengths could accept by chance.
constexpr std::uint32_t nonsense[] = {0, 1, 63, 65, 128, 2048, 0x7fffffff, 0xffffffc0, 0xffffffff};

TEST_F(RingTest, receiver_reports_a_record_length_that_cannot_be) {
  for (const std::uint32_t length : nonsense) {
    SCOPED_TRACE(length);
    RingReceiver receiver(ring(), capacity);
    header()[record_bytes_word] = 64;
    if (sender_.posted() == 0) {
      push(32, 0);
    }
    header()[record_bytes_word] = length;
    EXPECT_EQ(receiver.serve([](std::span<const std::byte>, std::span<std::byte>) { return RecordAnswer{}; }, 1), 0U);
    EXPECT_TRUE(receiver.corrupt());
    EXPECT_FALSE(receiver.pending());
  }
}

TEST_F(RingTest, receiver_reports_a_message_that_does_not_fit_its_record) {
  push(32, 0);
  header()[message_bytes_word] = 33;
  EXPECT_EQ(serve_all(), 0U);
  EXPECT_TRUE(receiver_.corrupt());
}

TEST_F(RingTest, receiver_reports_positions_that_cannot_be) {
  for (const std::uint64_t published : {std::uint64_t{capacity + 64}, std::uint64_t{1}, ~std::uint64_t{63}}) {
    RingReceiver receiver(ring(), capacity);
    ring().published.store(published, std::memory_order_relaxed);
    EXPECT_FALSE(receiver.pending());
    EXPECT_TRUE(receiver.corrupt());
  }
}

TEST_F(RingTest, sender_reports_a_reply_larger_than_its_room) {
  push(8, 8);
  serve_all();
  header()[reply_bytes_word] = 9;
  EXPECT_EQ(reap_all(), 0U);
  EXPECT_TRUE(sender_.corrupt());
}

TEST_F(RingTest, sender_reports_a_record_length_overwritten_by_the_receiver) {
  push(8, 8);
  serve_all();
  header()[record_bytes_word] = 512;
  EXPECT_EQ(reap_all(), 0U);
  EXPECT_TRUE(sender_.corrupt());
}

}  // namespace
}  // namespace farsum
