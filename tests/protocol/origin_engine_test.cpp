// What the origin's half posts, keeps back and lends, over a transport that the test answers for.
#include "protocol/origin/engine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "ops/layout.hpp"
#include "protocol/messages.hpp"
#include "scripted_transport.hpp"

namespace farsum {
namespace {

// The other side: applies what was posted to `memory`, and answers in order.
void serve(Scripted& transport, std::size_t from, std::vector<std::byte>& memory) {
  for (std::size_t ticket = from; ticket < transport.posted.size(); ++ticket) {
    const auto message = wire::decode(transport.posted[ticket].bytes);
    ASSERT_TRUE(message) << "message " << ticket;
    const wire::MessageHeader& header = message->header;
    Bytes reply(transport.posted[ticket].options.reply_capacity);
    ops::PieceCursor cursor(message->layout.view(), header.bytes);
    std::uint64_t done = 0;
    for (ops::Piece piece = cursor.next(); piece.bytes != 0; piece = cursor.next()) {
      std::byte* const at = memory.data() + header.offset + piece.offset;
      if (!reply.empty()) std::memcpy(reply.data() + done, at, piece.bytes);
      if (!message->operand.empty()) std::memcpy(at, message->operand.data() + done, piece.bytes);
      done += piece.bytes;
    }
    EXPECT_EQ(done, header.bytes);
    transport.reply(ticket, Code::ok, std::move(reply));
  }
}

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes made(count);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

class OriginEngineTest : public testing::Test {
 protected:
  static OriginEngine::Options options() {
    OriginEngine::Options made;
    made.peers = 200;
    return made;
  }

  Operation put(std::uint64_t bytes) {
    buffer_.resize(std::max<std::size_t>(buffer_.size(), bytes));
    Operation operation;
    operation.bytes = bytes;
    operation.operand = buffer_.data();
    return operation;
  }
  Operation get(std::uint64_t bytes) {
    buffer_.resize(std::max<std::size_t>(buffer_.size(), bytes));
    Operation operation;
    operation.kind = OperationKind::get;
    operation.bytes = bytes;
    operation.result = buffer_.data();
    return operation;
  }
  Operation exchange(std::uint64_t bytes) {
    Operation operation = get(bytes);
    operation.kind = OperationKind::get_accumulate;
    operation.operand = buffer_.data();
    operation.type = ops::ElementType::uint64;
    return operation;
  }
  bool submit(const Operation& operation, RequestState* request = nullptr, Rank to = peer) {
    return engine_.submit(to, window, operation, outstanding_, request);
  }
  bool lock() {
    wire::MessageHeader header;
    header.kind = wire::MessageKind::lock;
    header.window = window;
    return engine_.submit_control(peer, header, {}, outstanding_, nullptr);
  }

  Scripted transport_;
  OriginEngine engine_{options(), transport_};
  Outstanding outstanding_;
  Bytes buffer_;
};

// ---- How operations are cut.

constexpr std::uint64_t mebibyte = 1 << 20;

TEST_F(OriginEngineTest, puts_a_mebibyte_between_hosts_in_19_messages) {
  ASSERT_TRUE(submit(put(mebibyte)));
  EXPECT_EQ(transport_.posted.size(), 19u);
}

TEST_F(OriginEngineTest, gets_a_mebibyte_between_hosts_in_19_messages) {
  ASSERT_TRUE(submit(get(mebibyte)));
  EXPECT_EQ(transport_.posted.size(), 19u);
  ASSERT_TRUE(submit(exchange(mebibyte)));
  EXPECT_EQ(transport_.posted.size(), 2 * 19u);
}

TEST_F(OriginEngineTest, leaves_room_for_the_reply_where_both_share_it) {
  transport_.can.separate_replies = false;
  ASSERT_TRUE(submit(put(mebibyte)));
  EXPECT_EQ(transport_.posted.size(), 19u);
  ASSERT_TRUE(submit(exchange(mebibyte)));
  EXPECT_EQ(transport_.posted.size(), 19u + 37u);
}

TEST_F(OriginEngineTest, lets_the_owner_pull_what_is_long_where_it_can) {
  transport_.can.transfers = true;
  ASSERT_TRUE(submit(put(mebibyte)));
  ASSERT_TRUE(submit(get(mebibyte)));
  EXPECT_EQ(transport_.posted.size(), 2u);
  EXPECT_EQ(transport_.posted[1].options.reply_capacity, 0u);
}

TEST_F(OriginEngineTest, scatters_as_many_elements_at_once_as_fit) {
  const std::vector<std::uint64_t> offsets(5'000);
  const Bytes elements(offsets.size() * 8);
  ASSERT_TRUE(engine_.submit_scatter(peer, window, ops::ElementType::uint64, ops::Operator::sum, nullptr, offsets,
                                     elements, outstanding_));
  EXPECT_EQ(transport_.posted.size(), 2u);
}

// ---- Elements all over the target.

class ScatteredAccumulate : public OriginEngineTest {
 protected:
  Operation accumulate(std::span<const ops::Piece> pieces, std::uint64_t offset = 0) {
    Operation operation;
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::uint64;
    operation.op = ops::Operator::bxor;
    operation.offset = offset;
    for (const ops::Piece& piece : pieces) operation.bytes += piece.bytes;
    operand_ = random_bytes(operation.bytes, 5);
    operation.operand = operand_.data();
    operation.target_layout = ops::LayoutView::indexed(pieces);
    return operation;
  }
  wire::Message posted(std::size_t ticket) const { return wire::decode(transport_.posted.at(ticket).bytes).value(); }
  // Of all messages, one behind the other.
  std::vector<std::uint64_t> places() const {
    std::vector<std::uint64_t> all;
    for (std::size_t ticket = 0; ticket < transport_.posted.size(); ++ticket) {
      const wire::Message message = posted(ticket);
      const std::size_t before = all.size();
      all.resize(before + message.offsets.size() / wire::place_bytes);
      std::memcpy(all.data() + before, message.offsets.data(), message.offsets.size());
    }
    return all;
  }
  Bytes elements() const {
    Bytes all;
    for (std::size_t ticket = 0; ticket < transport_.posted.size(); ++ticket) {
      const wire::Message message = posted(ticket);
      all.insert(all.end(), message.operand.begin(), message.operand.end());
    }
    return all;
  }

  Bytes operand_;
};

TEST_F(ScatteredAccumulate, tells_the_place_of_each_element_and_no_length) {
  const std::vector<ops::Piece> pieces = {{800, 8}, {-16, 8}, {0, 0}, {80, 16}, {800, 8}};
  ASSERT_TRUE(submit(accumulate(pieces, 1'000)));
  ASSERT_EQ(transport_.posted.size(), 1u);
  const wire::Message message = posted(0);
  EXPECT_EQ(message.header.kind, wire::MessageKind::scatter);
  EXPECT_EQ(message.header.op, ops::Operator::bxor);
  EXPECT_EQ(places(), (std::vector<std::uint64_t>{1'800, 984, 1'080, 1'088, 1'800}));
  EXPECT_EQ(elements(), operand_);
}

TEST_F(ScatteredAccumulate, is_cut_by_what_fits_a_message_and_told_once_at_its_end) {
  for (const ops::ElementType type :
       {ops::ElementType::uint8, ops::ElementType::uint64, ops::ElementType::complex128}) {
    for (const std::uint64_t most_bytes : {1'024u, 8'000u, 57'264u}) {
      for (const std::size_t room : {std::size_t{1'000'000}, std::size_t{2}}) {
        SCOPED_TRACE(testing::Message() << ops::name_of(type) << ", messages of " << most_bytes << ", room " << room);
        transport_ = Scripted();
        transport_.can.max_message_bytes = most_bytes;
        transport_.room = room;
        OriginEngine engine(options(), transport_);
        const std::uint64_t size = ops::size_of(type);
        std::vector<ops::Piece> pieces;
        std::vector<std::uint64_t> expected;
        for (std::uint64_t i = 0; i < 10'000; ++i) {
          expected.push_back(i * 7'919 % 10'000 * 3 * size);
          pieces.push_back({static_cast<std::int64_t>(expected.back()), size});
        }
        Operation operation = accumulate(pieces);
        operation.type = type;
        operation.op = ops::Operator::sum;
        RequestState request;
        ASSERT_TRUE(engine.submit(peer, window, operation, outstanding_, &request));
        transport_.room = 1'000'000;
        engine.progress(peer);
        for (std::size_t ticket = 0; ticket < transport_.posted.size(); ++ticket) {
          EXPECT_FALSE(request.done.load());
          transport_.reply(ticket);
          engine.progress(peer);
        }
        EXPECT_TRUE(request.done.load());
        EXPECT_EQ(places(), expected);
        EXPECT_EQ(elements(), operand_);
      }
    }
  }
}

TEST_F(ScatteredAccumulate,
       is_a_layout_where_that_is_shorter_or_the_owner_pulls_or_a_result_or_notification_is_wanted) {
  const std::vector<ops::Piece> single(100, {64, 8}), rows(100, {64, 16});
  std::vector<ops::Piece> touching;
  for (std::int64_t offset = 0; offset < 800; offset += 8) touching.push_back({offset, 8});
  ASSERT_TRUE(submit(accumulate(rows)));
  ASSERT_TRUE(submit(accumulate(touching)));
  Operation fetching = accumulate(single);
  fetching.kind = OperationKind::get_accumulate;
  Bytes result(fetching.bytes);
  fetching.result = result.data();
  ASSERT_TRUE(submit(fetching));
  Operation notifying = accumulate(single);
  notifying.notify = true;
  ASSERT_TRUE(submit(notifying));
  transport_.can.transfers = true;
  ASSERT_TRUE(submit(accumulate(single)));
  ASSERT_EQ(transport_.posted.size(), 5u);
  for (std::size_t ticket = 0; ticket < 5; ++ticket)
    EXPECT_EQ(posted(ticket).header.kind, wire::MessageKind::operate) << ticket;
}

// ---- Layouts.

// Rows of any lengths at any distances, none over another.
std::vector<ops::Piece> random_pieces(std::mt19937& random, std::size_t count, std::size_t most_bytes) {
  std::vector<ops::Piece> pieces;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at += 8 * static_cast<std::int64_t>(1 + random() % 5);
    const std::uint64_t bytes = 8 * (1 + random() % (most_bytes / 8));
    pieces.push_back({at, bytes});
    at += static_cast<std::int64_t>(bytes);
  }
  return pieces;
}

TEST_F(OriginEngineTest, reaches_every_byte_of_a_layout_whatever_the_room) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    transport_ = Scripted();
    OriginEngine engine(options(), transport_);
    transport_.can.max_message_bytes = 1'024u << random() % 7;
    transport_.can.max_reply_bytes = 512u << random() % 7;
    transport_.can.separate_replies = random() % 2 == 0;
    const auto pieces = random_pieces(random, 1 + random() % 300, random() % 2 == 0 ? 16 : 4'000);
    const ops::LayoutView layout = ops::LayoutView::indexed(pieces);
    const std::size_t end = static_cast<std::size_t>(pieces.back().offset) + pieces.back().bytes;
    const Bytes before = random_bytes(end + 64, seed);
    Bytes memory = before, sent = random_bytes(layout.total_bytes().value(), seed + 1), got(sent.size());

    Operation operation;
    operation.kind = OperationKind::get_accumulate;
    operation.type = ops::ElementType::uint64;
    operation.offset = 64;
    operation.bytes = sent.size();
    operation.operand = sent.data();
    operation.result = got.data();
    operation.target_layout = layout;
    if (random() % 3 == 0) operation.kind = OperationKind::put;
    if (random() % 3 == 0) operation.kind = OperationKind::get;
    ASSERT_TRUE(engine.submit(peer, window, operation, outstanding_, nullptr));
    serve(transport_, 0, memory);
    engine.progress(peer);
    ASSERT_EQ(outstanding_.count.load(), 0u);

    std::uint64_t at = 0;
    for (const ops::Piece& piece : pieces) {
      const auto offset = 64 + static_cast<std::size_t>(piece.offset);
      if (operation.kind != OperationKind::put) {
        ASSERT_EQ(std::memcmp(got.data() + at, before.data() + offset, piece.bytes), 0);
      }
      if (operation.kind != OperationKind::get) {
        ASSERT_EQ(std::memcmp(memory.data() + offset, sent.data() + at, piece.bytes), 0);
      }
      at += piece.bytes;
    }
  }
}

TEST_F(OriginEngineTest, sends_a_layout_whole_where_it_fits) {
  const ops::Piece pieces[] = {{0, 8}, {16, 8}};
  Operation operation = put(16);
  operation.target_layout = ops::LayoutView::indexed(pieces);
  ASSERT_TRUE(submit(operation));
  ASSERT_EQ(transport_.posted.size(), 1u);
  EXPECT_EQ(transport_.posted[0].bytes.size(), sizeof(wire::MessageHeader) + 3 * 16 + 16);
}

// ---- Control messages.

TEST_F(OriginEngineTest, sends_control_messages_as_they_are_and_delivers_what_is_answered) {
  wire::MessageHeader header;
  header.kind = wire::MessageKind::team;
  header.window = window;
  header.offset = 5;
  header.bytes = 11;
  Bytes body = random_bytes(11, 1), answer(4);
  RequestState request;
  ASSERT_TRUE(engine_.submit_control(peer, header, body, outstanding_, &request, answer));
  const Bytes kept = std::exchange(body, {});
  ASSERT_EQ(transport_.posted.size(), 1u);
  EXPECT_EQ(transport_.posted[0].options.reply_capacity, 4u);
  wire::MessageHeader sent;
  std::memcpy(&sent, transport_.posted[0].bytes.data(), sizeof sent);
  EXPECT_EQ(sent.kind, wire::MessageKind::team);
  EXPECT_EQ(sent.offset, 5u);
  EXPECT_EQ(sent.bytes, 11u);
  EXPECT_EQ(sent.sequence, 1u);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), transport_.posted[0].bytes.begin() + sizeof sent));
  transport_.reply(0, Code::ok, Bytes(4, std::byte{7}));
  engine_.progress(peer);
  EXPECT_TRUE(request.done.load());
  EXPECT_EQ(answer, Bytes(4, std::byte{7}));
}

TEST_F(OriginEngineTest, posts_what_waits_for_others_as_such) {
  ASSERT_TRUE(lock());
  Operation behind = put(8);
  behind.may_wait = true;
  ASSERT_TRUE(submit(behind));
  ASSERT_TRUE(submit(put(8)));
  ASSERT_EQ(transport_.posted.size(), 3u);
  EXPECT_TRUE(transport_.posted[0].options.may_wait);
  EXPECT_TRUE(transport_.posted[1].options.may_wait);
  EXPECT_FALSE(transport_.posted[2].options.may_wait);
}

TEST_F(OriginEngineTest, keeps_nothing_that_waits_for_others_in_the_way) {
  transport_.room = 0;
  EXPECT_FALSE(lock());
  EXPECT_EQ(outstanding_.count.load(), 0u);
  ASSERT_TRUE(submit(put(8)));
  EXPECT_FALSE(lock());
  transport_.room = 2;
  engine_.progress(peer);
  EXPECT_TRUE(lock());
  EXPECT_EQ(transport_.posted.size(), 2u);
}

// ---- Replies.

TEST_F(OriginEngineTest, matches_replies_that_overtake_each_other) {
  RequestState requests[6];
  for (RequestState& request : requests) ASSERT_TRUE(submit(put(8), &request));
  for (const std::uint64_t ticket : {3u, 5u, 1u, 0u, 4u, 2u}) {
    transport_.reply(ticket, ticket == 4 ? Code::range : Code::ok);
    engine_.progress(peer);
    EXPECT_TRUE(requests[ticket].done.load());
    EXPECT_EQ(requests[ticket].code.load(), ticket == 4 ? Code::range : Code::ok);
  }
  EXPECT_EQ(outstanding_.count.load(), 0u);
}

TEST_F(OriginEngineTest, takes_no_reply_twice) {
  ASSERT_TRUE(submit(put(8)));
  ASSERT_TRUE(submit(put(8)));
  for (int i = 0; i < 2; ++i) transport_.reply(1);
  transport_.reply(7);
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.count.load(), 1u);
}

// ---- The program's buffers.

TEST_F(OriginEngineTest, needs_no_buffer_of_a_short_put_that_was_posted) {
  ASSERT_TRUE(submit(put(32'767)));
  EXPECT_EQ(outstanding_.count.load(), 1u);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
}

TEST_F(OriginEngineTest, needs_the_buffer_of_a_long_put_until_it_is_answered) {
  ASSERT_TRUE(submit(put(32'768)));
  EXPECT_EQ(outstanding_.borrowing.load(), 1u);
  transport_.reply(0);
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
}

TEST_F(OriginEngineTest, needs_the_buffer_of_a_put_until_all_of_it_is_posted) {
  transport_.can.max_message_bytes = 16'384;
  transport_.room = 1;
  ASSERT_TRUE(submit(put(32'000)));
  EXPECT_EQ(outstanding_.borrowing.load(), 1u);
  transport_.room = 1;
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
  EXPECT_EQ(outstanding_.count.load(), 1u);
}

TEST_F(OriginEngineTest, needs_the_buffer_of_a_get_until_the_last_reply) {
  ASSERT_TRUE(submit(get(100'000)));
  EXPECT_EQ(outstanding_.borrowing.load(), 1u);
  transport_.reply(0);
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.borrowing.load(), 1u);
  transport_.reply(1);
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
}

TEST_F(OriginEngineTest, needs_an_operand_that_is_pulled_until_the_reply) {
  transport_.can.transfers = true;
  ASSERT_TRUE(submit(put(mebibyte)));
  EXPECT_EQ(outstanding_.borrowing.load(), 1u);
  transport_.reply(0);
  engine_.progress(peer);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
}

TEST_F(OriginEngineTest, needs_no_operand_that_it_has_packed) {
  transport_.room = 0;
  Operation operation = put(64);
  const ops::Piece pieces[] = {{0, 8}, {16, 8}};
  operation.bytes = 16;
  operation.operand_layout = ops::LayoutView::indexed(pieces);
  operation.target_layout = ops::LayoutView::contiguous(16);
  ASSERT_TRUE(submit(operation));
  EXPECT_EQ(outstanding_.count.load(), 1u);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
}

TEST_F(OriginEngineTest, gives_all_buffers_back_when_the_peer_has_failed) {
  ASSERT_TRUE(submit(get(8)));
  transport_.room = 0;
  ASSERT_TRUE(submit(put(8)));
  EXPECT_EQ(outstanding_.borrowing.load(), 2u);
  engine_.fail_peer(peer);
  EXPECT_EQ(outstanding_.borrowing.load(), 0u);
  EXPECT_EQ(outstanding_.count.load(), 0u);
  EXPECT_EQ(outstanding_.failure.load(), Code::peer_failed);
}

// ---- Hearing of other ranks.

class OriginEngineHears : public OriginEngineTest {
 protected:
  // Whether the answer is taken for a hearing.
  bool hears(bool submitted) {
    EXPECT_TRUE(submitted);
    const std::size_t posted = transport_.posted.size();
    EXPECT_EQ(posted, ++sent_);
    const std::uint64_t before = hearing_.times();
    hearing_engine_.progress(peer);
    EXPECT_EQ(hearing_.times(), before);
    transport_.reply(posted - 1, Code::ok, Bytes(transport_.posted.back().options.reply_capacity));
    hearing_engine_.progress(peer);
    EXPECT_EQ(outstanding_.count.load(), 0u);
    return hearing_.times() != before;
  }
  bool hears(const Operation& operation) {
    const bool submitted = hearing_engine_.submit(peer, window, operation, outstanding_, nullptr);
    hearing_engine_.progress(peer);
    return hears(submitted);
  }
  bool hears_of_control(wire::MessageKind kind) {
    wire::MessageHeader header;
    header.kind = kind;
    header.window = window;
    return hears(hearing_engine_.submit_control(peer, header, {}, outstanding_, nullptr));
  }
  Operation swap() {
    Operation operation = exchange(8);
    operation.kind = OperationKind::compare_and_swap;
    operation.compare = buffer_.data();
    return operation;
  }
  Operation exchange_by(ops::Operator op) {
    Operation operation = exchange(8);
    operation.op = op;
    return operation;
  }
  Operation accumulate(std::uint64_t bytes) {
    Operation operation = put(bytes);
    operation.kind = OperationKind::accumulate;
    operation.op = ops::Operator::sum;
    operation.type = ops::ElementType::uint64;
    return operation;
  }
  static OriginEngine::Options hearing_options(Hearing& hearing) {
    OriginEngine::Options made = options();
    made.hearing = &hearing;
    return made;
  }

  Hearing hearing_;
  OriginEngine hearing_engine_{hearing_options(hearing_), transport_};
  std::size_t sent_ = 0;
};

TEST_F(OriginEngineHears, by_results_of_what_reads_and_changes) {
  EXPECT_TRUE(hears(swap()));
  EXPECT_TRUE(hears(exchange_by(ops::Operator::sum)));
  EXPECT_TRUE(hears(exchange_by(ops::Operator::replace)));
}

TEST_F(OriginEngineHears, by_answers_to_locks_and_their_kin) {
  for (const wire::MessageKind kind : {wire::MessageKind::lock, wire::MessageKind::unlock, wire::MessageKind::complete,
                                       wire::MessageKind::post, wire::MessageKind::team})
    EXPECT_TRUE(hears_of_control(kind)) << static_cast<int>(kind);
}

TEST_F(OriginEngineHears, not_by_what_only_reads_or_only_changes) {
  EXPECT_FALSE(hears(put(8)));
  EXPECT_FALSE(hears(get(8)));
  EXPECT_FALSE(hears(accumulate(8)));
  EXPECT_FALSE(hears(accumulate(64)));
  EXPECT_FALSE(hears(exchange_by(ops::Operator::no_op)));
  const std::vector<std::uint64_t> offsets(4);
  const Bytes elements(offsets.size() * 8);
  EXPECT_FALSE(hears(hearing_engine_.submit_scatter(peer, window, ops::ElementType::uint64, ops::Operator::sum, nullptr,
                                                    offsets, elements, outstanding_)));
}

TEST_F(OriginEngineHears, before_anybody_who_waits_has_the_answer) {
  for (std::size_t round = 0; round < 200; ++round) {
    const std::uint64_t before = hearing_.times();
    RequestState request;
    ASSERT_TRUE(hearing_engine_.submit(peer, window, swap(), outstanding_, &request));
    std::uint64_t after_flush = before, after_request = before;
    const auto times_after = [this](std::uint64_t& times, auto&& is_done) {
      return std::thread([this, &times, is_done] {
        while (!is_done()) std::this_thread::yield();
        times = hearing_.times();
      });
    };
    std::thread flushes =
        times_after(after_flush, [this] { return outstanding_.count.load(std::memory_order_acquire) == 0; });
    std::thread waits = times_after(after_request, [&] { return request.done.load(std::memory_order_acquire); });
    transport_.reply(round, Code::ok, Bytes(8));
    hearing_engine_.progress(peer);
    flushes.join();
    waits.join();
    ASSERT_GT(after_flush, before);
    ASSERT_GT(after_request, before);
  }
}

TEST_F(OriginEngineHears, where_the_peer_fails_under_way) {
  const std::uint64_t before = hearing_.times();
  ASSERT_TRUE(hearing_engine_.submit(peer, window, swap(), outstanding_, nullptr));
  hearing_engine_.fail_peer(peer);
  EXPECT_EQ(outstanding_.count.load(), 0u);
  EXPECT_GT(hearing_.times(), before);
}

// ---- While the threads compute.

TEST_F(OriginEngineTest, goes_on_for_threads_that_compute) {
  transport_.room = 1;
  ASSERT_TRUE(submit(put(8)));
  ASSERT_TRUE(submit(put(8)));
  EXPECT_EQ(transport_.posted.size(), 1u);
  transport_.room = 1;
  transport_.reply(0);
  EXPECT_EQ(engine_.progress_unattended(), 1u);
  EXPECT_EQ(transport_.posted.size(), 2u);
  transport_.reply(1);
  EXPECT_EQ(engine_.progress_unattended(), 1u);
  EXPECT_EQ(outstanding_.count.load(), 0u);
}

TEST_F(OriginEngineTest, looks_only_at_peers_with_something_under_way) {
  for (const Rank to : {0u, 63u, 64u, 199u}) ASSERT_TRUE(submit(put(8), nullptr, to));
  engine_.progress_unattended();
  EXPECT_EQ(transport_.polls, (std::map<Rank, std::uint64_t>{{0, 1}, {63, 1}, {64, 1}, {199, 1}}));
  transport_.replies[64].push_back({0, Code::ok, {}});
  engine_.progress_unattended();
  engine_.progress_unattended();
  EXPECT_EQ(transport_.polls[63], 3u);
  EXPECT_EQ(transport_.polls[64], 2u);
  ASSERT_TRUE(submit(put(8), nullptr, 64));
  engine_.progress_unattended();
  EXPECT_EQ(transport_.polls[64], 3u);
}

TEST_F(OriginEngineTest, says_once_that_it_leaves_something_behind) {
  ASSERT_TRUE(submit(put(8)));
  EXPECT_EQ(transport_.handed_over, 0u);
  transport_.room = 0;
  ASSERT_TRUE(submit(put(8)));
  EXPECT_EQ(transport_.handed_over, 1u);
  ASSERT_TRUE(submit(put(8)));
  engine_.progress(peer);
  EXPECT_EQ(transport_.handed_over, 1u);
}

TEST_F(OriginEngineTest, asks_again_for_an_agent_that_came_while_a_thread_was_at_the_peer) {
  transport_.room = 0;
  ASSERT_TRUE(submit(put(8)));
  EXPECT_EQ(transport_.handed_over, 1u);
  std::size_t taken = 1;
  transport_.on_post = [&] { std::thread([&] { taken = engine_.progress_unattended(); }).join(); };
  engine_.progress(peer);
  transport_.on_post = {};
  EXPECT_EQ(taken, 0u);
  EXPECT_EQ(transport_.handed_over, 2u);
  engine_.progress(peer);
  EXPECT_EQ(transport_.handed_over, 2u);
}

}  // namespace
}  // namespace farsum
