// What the origin's half keeps back, to send fewer messages, and when that leaves.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "protocol/messages.hpp"
#include "protocol/origin/engine.hpp"
#include "scripted_transport.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t ones[] = {1, 2, 3, 4, 5};

class OriginKeeps : public testing::Test {
 protected:
  OriginKeeps() { transport_.can.keeps = true; }

  OriginEngine::Options options() {
    OriginEngine::Options made;
    made.peers = 200;
    made.on_coalescing = [this] { ++asked_to_come_; };
    made.on_progress = [this] {
      ++told_of_progress_;
      left_when_told_ = outstanding_.count.load(std::memory_order_relaxed);
    };
    return made;
  }

  static Operation update(std::uint64_t offset, std::uint64_t elements = 1) {
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::uint64;
    operation.op = ops::Operator::sum;
    operation.offset = offset;
    operation.bytes = 8 * elements;
    operation.operand = reinterpret_cast<const std::byte*>(ones);
    return operation;
  }
  Operation put(std::uint64_t bytes) {
    Operation operation;
    operation.bytes = bytes;
    operation.operand = buffer_.data();
    return operation;
  }
  Operation get(std::uint64_t bytes) {
    Operation operation;
    operation.kind = OperationKind::get;
    operation.bytes = bytes;
    operation.result = buffer_.data();
    return operation;
  }
  bool submit(const Operation& operation, RequestState* request = nullptr, Rank to = peer) {
    return engine_.submit(to, window, operation, outstanding_, request);
  }
  // From here on one is not alone.
  void submit_the_first() { ASSERT_TRUE(submit(update(0))); }

  wire::Message posted(std::size_t ticket) const {
    const auto message = wire::decode(transport_.posted.at(ticket).bytes);
    return message.value_or(wire::Message());
  }
  static std::vector<std::uint64_t> words(std::span<const std::byte> bytes) {
    std::vector<std::uint64_t> made(bytes.size() / 8);
    std::memcpy(made.data(), bytes.data(), bytes.size());
    return made;
  }
  std::vector<std::uint64_t> offsets_of(std::size_t ticket) const { return words(posted(ticket).offsets); }
  std::size_t count() const { return transport_.posted.size(); }
  bool ask_for_lock(std::uint8_t flags) {
    wire::MessageHeader lock;
    lock.kind = wire::MessageKind::lock;
    lock.flags = flags;
    return engine_.submit_control(peer, lock, {}, outstanding_, nullptr);
  }

  unsigned asked_to_come_ = 0, told_of_progress_ = 0;
  std::uint64_t left_when_told_ = 0;
  Scripted transport_;
  OriginEngine engine_{options(), transport_};
  Outstanding outstanding_;
  Bytes buffer_ = Bytes(8192);
};

TEST_F(OriginKeeps, nothing_of_what_is_alone) {
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(submit(update(0)));
    EXPECT_EQ(count(), i + 1);
    EXPECT_FALSE(transport_.posted.back().options.may_keep);
    transport_.reply(i);  // which nobody has looked at yet
  }
  EXPECT_EQ(asked_to_come_, 0u);
}

TEST_F(OriginKeeps, updates_until_progress_is_asked_for_and_sends_them_as_one_message) {
  submit_the_first();
  for (std::uint64_t offset = 8; offset <= 80; offset += 8) ASSERT_TRUE(submit(update(offset)));
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(asked_to_come_, 1u);
  engine_.progress(peer);
  ASSERT_EQ(count(), 2u);
  EXPECT_EQ(posted(1).header.kind, wire::MessageKind::scatter);
  EXPECT_EQ(posted(1).header.op, ops::Operator::sum);
  EXPECT_EQ(offsets_of(1), (std::vector<std::uint64_t>{8, 16, 24, 32, 40, 48, 56, 64, 72, 80}));
  transport_.reply(0);
  transport_.reply(1);
  EXPECT_NE(outstanding_.count.load(std::memory_order_relaxed), 0u);
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.count.load(std::memory_order_relaxed), 0u);
}

// Their offsets take eight times the room of the elements, in buffers that have been used before.
TEST_F(OriginKeeps, updates_of_many_small_elements_in_whatever_order_of_sizes) {
  const auto of_bytes = [&](std::uint64_t offset, std::uint64_t elements) {
    Operation operation = update(offset);
    operation.type = ops::ElementType::int8;
    operation.bytes = elements;
    operation.operand = buffer_.data();
    return operation;
  };
  for (std::size_t i = 0; i < 32; ++i) buffer_[i] = static_cast<std::byte>(i + 1);
  submit_the_first();
  std::size_t ticket = 0;
  for (const std::vector<std::uint64_t>& sizes :
       std::vector<std::vector<std::uint64_t>>{{16}, {16, 32}, {1, 32, 17, 32}, {3}, {31, 32, 2}}) {
    std::uint64_t all = 0;
    for (const std::uint64_t size : sizes) {
      ASSERT_TRUE(submit(of_bytes(100 * all, size)));
      all += size;
    }
    engine_.progress(peer);
    ASSERT_EQ(count(), ++ticket + 1);
    const std::vector<std::uint64_t> offsets = offsets_of(ticket);
    const std::span<const std::byte> elements = posted(ticket).operand;
    ASSERT_EQ(offsets.size(), all);
    ASSERT_EQ(elements.size(), all);
    std::uint64_t before = 0;
    for (const std::uint64_t size : sizes) {
      for (std::uint64_t i = 0; i < size; ++i) {
        EXPECT_EQ(offsets[before + i], 100 * before + i);
        EXPECT_EQ(elements[before + i], buffer_[i]);
      }
      before += size;
    }
    transport_.reply(ticket);
    engine_.progress(peer);
  }
}

TEST_F(OriginKeeps, updates_before_the_get_that_comes_after_them) {
  submit_the_first();
  ASSERT_TRUE(submit(update(8)));
  ASSERT_TRUE(submit(update(16)));
  ASSERT_TRUE(submit(get(8)));
  ASSERT_TRUE(submit(update(24)));
  RequestState request;
  ASSERT_TRUE(submit(put(8), &request));
  ASSERT_EQ(count(), 5u);
  EXPECT_EQ(offsets_of(1), (std::vector<std::uint64_t>{8, 16}));
  EXPECT_EQ(posted(2).header.operation, OperationKind::get);
  EXPECT_TRUE(transport_.posted[2].options.may_keep);
  EXPECT_EQ(offsets_of(3), std::vector<std::uint64_t>{24});
  EXPECT_EQ(posted(4).header.operation, OperationKind::put);
  EXPECT_FALSE(transport_.posted[4].options.may_keep);
}

TEST_F(OriginKeeps, few_elements_as_updates_of_one_each_and_no_more) {
  submit_the_first();
  ASSERT_TRUE(submit(update(8, 4)));
  ASSERT_TRUE(submit(update(64, 5)));
  EXPECT_EQ(offsets_of(1), (std::vector<std::uint64_t>{8, 16, 24, 32}));
  EXPECT_EQ(words(posted(1).operand), (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(posted(2).header.kind, wire::MessageKind::operate);
}

// Each time after it has happened.
TEST_F(OriginKeeps, nobody_asleep_for_what_has_come_to_its_end) {
  submit_the_first();
  engine_.progress(peer);
  EXPECT_EQ(told_of_progress_, 0u) << "nothing has come";
  transport_.reply(0);
  engine_.progress(peer);
  EXPECT_EQ(told_of_progress_, 1u) << "a reply";
  EXPECT_EQ(left_when_told_, 0u);

  submit_the_first();
  transport_.reply(1);
  ASSERT_TRUE(submit(update(8)));
  EXPECT_EQ(told_of_progress_, 2u) << "one that was found when the next was to be kept";
  transport_.reply(2);
  engine_.progress(peer);
  EXPECT_EQ(told_of_progress_, 3u);

  submit_the_first();
  ASSERT_TRUE(submit(update(8)));
  transport_.reply(3);
  engine_.send_coalesced();
  engine_.send_coalesced();
  EXPECT_EQ(told_of_progress_, 4u) << "one that came while what was kept was sent";
  transport_.reply(4);
  engine_.progress(peer);
  EXPECT_EQ(told_of_progress_, 5u);

  transport_.room = 0;
  ASSERT_TRUE(submit(put(5'000)));
  engine_.progress(peer);
  EXPECT_EQ(told_of_progress_, 5u) << "there is no room";
  transport_.room = 1;
  engine_.progress(peer);
  EXPECT_EQ(told_of_progress_, 6u) << "a local flush has got its operand back";
}

TEST_F(OriginKeeps, no_two_kinds_of_updates_in_one_message) {
  Outstanding other_outstanding;
  submit_the_first();
  Operation other_op = update(8), other_type = update(8);
  other_op.op = ops::Operator::bxor;
  other_type.type = ops::ElementType::int64;
  for (const Operation& operation : {update(8), other_op, other_type}) ASSERT_TRUE(submit(operation));
  ASSERT_TRUE(engine_.submit(peer, window + 1, update(8), outstanding_, nullptr));
  ASSERT_TRUE(engine_.submit(peer, window + 1, update(8), other_outstanding, nullptr));
  engine_.progress(peer);
  EXPECT_EQ(count(), 6u);
  EXPECT_EQ(other_outstanding.count.load(std::memory_order_relaxed), 1u);
}

TEST_F(OriginKeeps, scaled_updates_of_one_factor_together) {
  submit_the_first();
  const double half = 0.5, third = 1.0 / 3;
  Operation scaled = update(8);
  scaled.type = ops::ElementType::float64;
  scaled.op = ops::Operator::scaled_sum;
  for (const double* alpha : {&half, &half, &third}) {
    scaled.alpha = alpha;
    ASSERT_TRUE(submit(scaled));
  }
  engine_.progress(peer);
  ASSERT_EQ(count(), 3u);
  EXPECT_EQ(offsets_of(1).size(), 2u);
  const auto alpha_of = [this](std::size_t ticket) {
    double alpha = 0;
    std::memcpy(&alpha, posted(ticket).header.alpha, sizeof alpha);
    return alpha;
  };
  EXPECT_EQ(alpha_of(1), half);
  EXPECT_EQ(alpha_of(2), third);
}

// The owner begins with the first 8 KiB while the next come, and is not woken for as little when it has more to do.
TEST_F(OriginKeeps, no_more_than_8_kib_of_updates_at_first_and_24_behind_others) {
  for (std::uint64_t i = 0; i < 8'000; ++i) ASSERT_TRUE(submit(update(8 * i)));
  ASSERT_GE(count(), 6u);
  for (std::size_t ticket = 1; ticket < count(); ++ticket) {
    const std::size_t bytes = transport_.posted[ticket].bytes.size();
    const std::size_t most = 8'192 * std::min<std::size_t>(ticket, 3);
    EXPECT_LE(bytes, sizeof(wire::MessageHeader) + most);
    EXPECT_GT(bytes, most - 512);
    EXPECT_FALSE(transport_.posted[ticket].options.may_keep);
  }
  engine_.progress(peer);
  std::uint64_t next = 8;
  for (std::size_t ticket = 1; ticket < count(); ++ticket) {
    for (const std::uint64_t offset : offsets_of(ticket)) EXPECT_EQ(offset, std::exchange(next, next + 8));
  }
  EXPECT_EQ(next, 8u * 8'000);
}

TEST_F(OriginKeeps, no_more_than_8_kib_of_updates_once_all_others_were_answered) {
  for (std::uint64_t i = 0; i < 4'000; ++i) ASSERT_TRUE(submit(update(8 * i)));
  for (std::size_t ticket = 0; ticket + 1 < count(); ++ticket) transport_.reply(ticket);
  engine_.progress(peer);
  transport_.reply(count() - 2);
  engine_.progress(peer);
  const std::size_t before = count();
  for (std::uint64_t i = 0; i < 600; ++i) ASSERT_TRUE(submit(update(8 * i)));
  ASSERT_EQ(count(), before + 1);
  EXPECT_LE(transport_.posted.back().bytes.size(), sizeof(wire::MessageHeader) + 8'192);
}

TEST_F(OriginKeeps, the_operand_as_it_was) {
  submit_the_first();
  std::uint64_t value = 7;
  Operation operation = update(8);
  operation.operand = reinterpret_cast<const std::byte*>(&value);
  ASSERT_TRUE(submit(operation));
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
  value = 8;
  engine_.progress(peer);
  EXPECT_EQ(words(posted(1).operand), std::vector<std::uint64_t>{7});
}

TEST_F(OriginKeeps, nothing_for_longer_than_two_visits) {
  submit_the_first();
  ASSERT_TRUE(submit(update(8)));
  engine_.send_coalesced();
  EXPECT_EQ(count(), 1u);
  engine_.send_coalesced();
  EXPECT_EQ(count(), 2u);
  ASSERT_TRUE(submit(get(8)));
  EXPECT_EQ(asked_to_come_, 1u);
  const std::uint64_t polls = transport_.polls[peer];
  engine_.send_coalesced();
  EXPECT_EQ(transport_.polls[peer], polls);
  engine_.send_coalesced();
  EXPECT_EQ(transport_.polls[peer], polls + 1) << "which sends what the transport was told it may keep";
}

TEST_F(OriginKeeps, no_visitor_who_has_nothing_to_do) {
  submit_the_first();
  ASSERT_TRUE(submit(update(8)));
  unsigned visits = 0;
  for (; engine_.is_coalescing() && visits < 100; ++visits) engine_.send_coalesced();
  EXPECT_LT(visits, 10u);
  ASSERT_TRUE(submit(update(16)));
  EXPECT_EQ(asked_to_come_, 2u);
}

TEST_F(OriginKeeps, what_a_thread_sends_for_the_next_visits_no_longer) {
  submit_the_first();
  ASSERT_TRUE(submit(update(8)));
  engine_.send_coalesced();
  engine_.progress(peer);
  ASSERT_TRUE(submit(update(16)));
  engine_.send_coalesced();
  EXPECT_EQ(count(), 2u);
}

TEST_F(OriginKeeps, what_finds_no_room_for_later) {
  submit_the_first();
  for (std::uint64_t offset : {8, 16}) ASSERT_TRUE(submit(update(offset)));
  transport_.room = 0;
  ASSERT_TRUE(submit(get(8)));
  EXPECT_GE(transport_.handed_over, 1u);
  ASSERT_TRUE(submit(update(24)));
  EXPECT_EQ(count(), 1u);
  transport_.room = 100;
  engine_.progress(peer);
  ASSERT_EQ(count(), 4u);
  EXPECT_EQ(offsets_of(1), (std::vector<std::uint64_t>{8, 16}));
  EXPECT_EQ(posted(2).header.operation, OperationKind::get);
  EXPECT_EQ(posted(3).header.offset, 24u);
}

TEST_F(OriginKeeps, nothing_for_a_peer_that_has_failed) {
  submit_the_first();
  ASSERT_TRUE(submit(update(8)));
  engine_.fail_peer(peer);
  EXPECT_EQ(outstanding_.count.load(std::memory_order_relaxed), 0u);
  EXPECT_EQ(outstanding_.failure.load(), Code::peer_failed);
  ASSERT_TRUE(submit(update(16)));
  EXPECT_EQ(outstanding_.count.load(std::memory_order_relaxed), 0u);
}

TEST_F(OriginKeeps, nothing_for_peers_that_were_never_asked_when_all_have_failed) {
  engine_.fail_all();
  for (const Rank to : {Rank{5}, Rank{6}}) ASSERT_TRUE(submit(update(8), nullptr, to));
  EXPECT_EQ(count(), 0u);
  EXPECT_EQ(outstanding_.count.load(std::memory_order_relaxed), 0u);
  EXPECT_EQ(outstanding_.failure.load(), Code::peer_failed);
}

TEST_F(OriginKeeps, nothing_where_the_transport_sends_each_on_its_own) {
  transport_.can.keeps = false;
  for (std::size_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(submit(update(8)));
    EXPECT_EQ(count(), i);
  }
  EXPECT_EQ(asked_to_come_, 0u);
}

TEST_F(OriginKeeps, nothing_that_somebody_waits_for) {
  submit_the_first();
  RequestState request;
  ASSERT_TRUE(submit(update(8), &request));
  Operation notifying = update(8), behind_a_lock = update(8);
  notifying.notify = true;
  behind_a_lock.may_wait = true;
  ASSERT_TRUE(submit(notifying));
  ASSERT_TRUE(submit(behind_a_lock));
  ASSERT_TRUE(ask_for_lock(wire::flag_at_once));
  EXPECT_EQ(count(), 5u);
  for (const Scripted::Posted& posted : transport_.posted) EXPECT_FALSE(posted.options.may_keep);
  outstanding_.goes_alone = true;
  ASSERT_TRUE(submit(update(8)));
  EXPECT_EQ(count(), 6u);
  EXPECT_EQ(posted(5).header.kind, wire::MessageKind::operate);
}

TEST_F(OriginKeeps, a_lock_and_what_leaves_with_its_end) {
  ASSERT_TRUE(ask_for_lock(0));
  Operation behind = update(8);
  behind.may_wait = behind.leaves_with_end = true;
  ASSERT_TRUE(submit(behind));
  Operation notifying = behind;
  notifying.notify = true;
  ASSERT_TRUE(submit(notifying));
  RequestState request;
  ASSERT_TRUE(submit(behind, &request));
  wire::MessageHeader unlock;
  unlock.kind = wire::MessageKind::unlock;
  ASSERT_TRUE(engine_.submit_control(peer, unlock, {}, outstanding_, nullptr));
  const std::vector<Scripted::Posted>& all = transport_.posted;
  ASSERT_EQ(count(), 5u);
  EXPECT_TRUE(all[0].options.may_keep && all[1].options.may_keep);
  EXPECT_FALSE(all[2].options.may_keep || all[3].options.may_keep || all[4].options.may_keep);
  EXPECT_EQ(asked_to_come_, 0u);
}

TEST_F(OriginKeeps, nothing_that_is_longer_than_4_kib) {
  submit_the_first();
  const std::uint64_t most = 4096 - sizeof(wire::MessageHeader);
  for (const std::uint64_t bytes : {most, most + 1}) ASSERT_TRUE(submit(put(bytes)));
  for (const std::uint64_t bytes : {4096, 4097}) ASSERT_TRUE(submit(get(bytes)));
  const std::vector<Scripted::Posted>& all = transport_.posted;
  EXPECT_TRUE(all[1].options.may_keep && all[3].options.may_keep);
  EXPECT_FALSE(all[2].options.may_keep || all[4].options.may_keep);
}

}  // namespace
}  // namespace farsum
