#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "transport/contract_suite.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum {
namespace {

using Bytes = std::vector<std::byte>;

std::span<const std::byte> bytes_of(const std::uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

std::uint64_t number_in(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

// Bytes that differ from message to message and from place to place.
Bytes pattern(std::size_t bytes, std::uint64_t seed) {
  Bytes made(bytes);
  SimRandom random(seed);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random.next());
  return made;
}

std::vector<std::uint64_t> counting_up(std::uint64_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  return numbers;
}

// A target that keeps what it finishes and answers as its rule says; without one, at once and with nothing.
class Target final : public RequestHandler {
 public:
  using Rule = std::function<Served(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                                    ReplyToken token)>;
  struct Seen {
    Rank from;
    Bytes message;
    std::size_t reply_room_bytes;
  };

  Target() = default;
  explicit Target(Rule rule) : rule_(std::move(rule)) {}

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override {
    EXPECT_EQ(from, token.peer);
    ++calls;
    const Served served = rule_ ? rule_(from, message, reply_room, token) : Served{};
    if (served.kind != Served::Kind::again) {
      finished.push_back({from, Bytes(message.begin(), message.end()), reply_room.size()});
    }
    return served;
  }

  std::vector<std::uint64_t> numbers_from(Rank from) const {
    std::vector<std::uint64_t> numbers;
    for (const Seen& seen : finished) {
      if (seen.from == from) numbers.push_back(number_in(seen.message));
    }
    return numbers;
  }

  std::vector<Seen> finished;
  std::size_t calls = 0;

 private:
  Rule rule_;
};

class Replies final : public ReplyHandler {
 public:
  struct Reply {
    Rank from;
    std::uint64_t ticket;
    Code code;
    Bytes bytes;
  };
  void on_reply(Rank from, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    all.push_back({from, ticket, code, Bytes(reply.begin(), reply.end())});
  }
  std::vector<std::uint64_t> tickets() const {
    std::vector<std::uint64_t> found;
    for (const Reply& reply : all) found.push_back(reply.ticket);
    return found;
  }
  std::vector<Reply> all;
};

Served echo(Rank, std::span<const std::byte> message, std::span<std::byte> reply_room, ReplyToken) {
  const std::size_t bytes = std::min(message.size(), reply_room.size());
  if (bytes != 0) std::memcpy(reply_room.data(), message.data(), bytes);
  return {.reply_bytes = static_cast<std::uint32_t>(bytes)};
}

// --- Requests. ---

// No set-up of a program may be able to do one of these.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransferContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OwnTransferContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BadAddressContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransferDeathContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LateReplyContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LetterContract);

TEST_P(TransportContract, can_what_its_set_up_says_and_no_more) {
  const Abilities& can = GetParam().can;
  EXPECT_EQ(at(receiver).capabilities(sender).late_replies, can.late_replies);
  EXPECT_EQ(at(sender).capabilities(receiver).transfers, can.transfers);
  EXPECT_EQ(at(sender).capabilities(sender).transfers, can.own_transfers);
  EXPECT_EQ(at(sender).capabilities(receiver).max_letter_bytes != 0, can.letters);
  if (!can.letters) {
    EXPECT_DEATH((void)at(sender).try_letter(receiver, {}, {}), "letter");
  }
  if (can.transfers) {
    EXPECT_EQ(job_->bad_address(receiver) != 0, can.bad_addresses);
  }
  EXPECT_EQ(job_->kill(bystander), can.deaths);
}

TEST_P(TransportContract, counts_tickets_up_from_zero_for_each_peer) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(at(sender).try_post(receiver, bytes_of(i), {}, {}), i);
    EXPECT_EQ(at(sender).try_post(other_sender, bytes_of(i), {}, {}), i);
  }
}

TEST_P(TransportContract, serves_the_requests_of_each_sender_in_the_order_they_were_posted) {
  constexpr std::uint64_t count = 300;
  Target target;
  Replies replies;
  Replies other_replies;
  for (std::uint64_t i = 0; i < count; ++i) {
    post(sender, bytes_of(i), {}, 0, target, replies);
    post(other_sender, bytes_of(i), {}, 0, target, other_replies);
  }
  EXPECT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == count; }));
  EXPECT_TRUE(rounds_until(target, other_sender, other_replies, [&] { return other_replies.all.size() == count; }));
  EXPECT_EQ(target.numbers_from(sender), counting_up(count));
  EXPECT_EQ(target.numbers_from(other_sender), counting_up(count));
}

TEST_P(TransportContract, serves_each_request_and_gives_each_reply_exactly_once) {
  Target target(echo);
  Replies replies;
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(i), {}, {.reply_capacity = 8}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 5; }));
  for (int i = 0; i < 10; ++i) round(target, sender, replies);
  EXPECT_EQ(target.calls, 5u);
  EXPECT_EQ(replies.tickets(), counting_up(5));
}

TEST_P(TransportContract, joins_head_and_body_and_keeps_neither) {
  Target target;
  Replies replies;
  Bytes head = pattern(24, 1);
  Bytes body = pattern(100, 2);
  Bytes whole = head;
  whole.insert(whole.end(), body.begin(), body.end());
  ASSERT_TRUE(at(sender).try_post(receiver, head, body, {}));
  std::fill(head.begin(), head.end(), std::byte{0});
  std::fill(body.begin(), body.end(), std::byte{0});
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return !target.finished.empty(); }));
  EXPECT_EQ(target.finished[0].message, whole);
  EXPECT_EQ(target.finished[0].from, sender);
}

TEST_P(TransportContract, carries_a_message_of_no_bytes) {
  Target target;
  Replies replies;
  const std::uint64_t number = 7;
  ASSERT_TRUE(at(sender).try_post(receiver, {}, {}, {}));
  ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(number), {}, {}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 2; }));
  EXPECT_TRUE(target.finished[0].message.empty());
  EXPECT_EQ(target.numbers_from(sender)[1], 7u);
  EXPECT_TRUE(replies.all[0].bytes.empty());
}

TEST_P(TransportContract, carries_every_size_up_to_its_limit_whole) {
  Target target;
  Replies replies;
  const std::size_t limit = at(sender).capabilities(receiver).max_message_bytes;
  std::vector<std::size_t> sizes = {limit, limit - 1, 0, limit};
  for (std::size_t size = 1; size < limit; size *= 2) sizes.insert(sizes.end(), {size - 1, size, size + 1});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Bytes message = pattern(sizes[i], i);
    const std::span<const std::byte> all(message);
    post(sender, all.first(sizes[i] / 3), all.subspan(sizes[i] / 3), 0, target, replies);
  }
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == sizes.size(); }));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(target.finished[i].message, pattern(sizes[i], i)) << sizes[i] << " bytes";
}

TEST_P(TransportContract, refuses_or_carries_whole_what_is_above_its_limit) {
  Target target;
  Replies replies;
  const std::size_t limit = at(sender).capabilities(receiver).max_message_bytes;
  for (const std::size_t size : {limit + 1, limit + 64, 8 * limit}) {
    const Bytes message = pattern(size, size);
    const bool is_taken = at(sender).try_post(receiver, message, {}, {}).has_value();
    const std::size_t expected = replies.all.size() + (is_taken ? 1 : 0);
    ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == expected; }));
    EXPECT_TRUE(!is_taken || target.finished.back().message == message);
  }
  EXPECT_FALSE(at(sender).try_post(receiver, pattern(8 * limit, 0), {}, {}));
  // It has not come to harm.
  const std::uint64_t number = 7;
  post(sender, bytes_of(number), {}, 0, target, replies);
  ASSERT_TRUE(rounds_until(target, sender, replies,
                           [&] { return !target.finished.empty() && number_in(target.finished.back().message) == 7; }));
}

TEST_P(TransportContract, refuses_when_there_is_no_room_and_goes_on_when_there_is) {
  Target target;
  Replies replies;
  std::uint64_t posted = 0;
  while (posted < 1'000'000 && at(sender).try_post(receiver, bytes_of(posted), {}, {})) ++posted;
  ASSERT_LT(posted, 1'000'000u) << "a bounded room was expected";
  // Another pair has room of its own.
  EXPECT_TRUE(at(other_sender).try_post(receiver, bytes_of(posted), {}, {}));
  const std::uint64_t all = 3 * posted + 1;
  for (; posted < all; ++posted) EXPECT_EQ(post(sender, bytes_of(posted), {}, 0, target, replies), posted);
  EXPECT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == all; }));
  EXPECT_EQ(target.numbers_from(sender), counting_up(all));
  EXPECT_EQ(replies.tickets(), counting_up(all));
}

TEST_P(TransportContract, continues_a_send_that_stopped_halfway) {
  Target target;
  Replies replies;
  const Bytes payload = pattern(40 * at(sender).capabilities(receiver).max_message_bytes + 13, 5);
  const std::size_t piece_bytes = at(sender).capabilities(receiver).max_message_bytes - 8;
  std::size_t sent = 0;
  std::size_t refusals = 0;
  for (int i = 0; i < most_rounds && sent < payload.size(); ++i) {
    const std::size_t bytes = std::min(piece_bytes, payload.size() - sent);
    if (at(sender).try_post(receiver, bytes_of(sent), std::span(payload).subspan(sent, bytes), {})) {
      sent += bytes;
      continue;
    }
    ++refusals;
    round(target, sender, replies);
  }
  EXPECT_GT(refusals, 0u);
  ASSERT_TRUE(
      rounds_until(target, sender, replies, [&] { return replies.all.size() * piece_bytes >= payload.size(); }));
  Bytes received;
  for (const Target::Seen& seen : target.finished) {
    EXPECT_EQ(number_in(seen.message), received.size());
    received.insert(received.end(), seen.message.begin() + 8, seen.message.end());
  }
  EXPECT_TRUE(received == payload);
}

TEST_P(TransportContract, finishes_no_more_requests_than_it_was_allowed) {
  Target target;
  Replies replies;
  for (std::uint64_t i = 0; i < 7; ++i) ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(i), {}, {}));
  std::size_t finished = 0;
  for (int i = 0; i < most_rounds && finished < 7; ++i) {
    const std::size_t now = serve(target, 2);
    EXPECT_LE(now, 2u);
    finished += now;
    EXPECT_EQ(target.finished.size(), finished);
  }
  EXPECT_EQ(finished, 7u);
}

TEST_P(TransportContract, finishes_no_more_requests_of_several_senders_than_it_was_allowed) {
  constexpr std::uint64_t each = 6;
  constexpr std::size_t allowed = 3;
  Target target;
  for (std::uint64_t i = 0; i < each; ++i) {
    for (const Rank from : {sender, other_sender, bystander})
      ASSERT_TRUE(at(from).try_post(receiver, bytes_of(i), {}, {}));
  }
  std::size_t finished = 0;
  for (int i = 0; i < most_rounds && finished < 3 * each; ++i) {
    const std::size_t now = serve(target, allowed);
    EXPECT_LE(now, allowed);
    finished += now;
  }
  EXPECT_EQ(finished, 3 * each);
  for (const Rank from : {sender, other_sender, bystander}) EXPECT_EQ(target.numbers_from(from), counting_up(each));
}

// --- Again. ---

TEST_P(TransportContract, serves_a_request_again_and_keeps_the_order_behind_it) {
  int refusals_left = 3;
  Target target([&](Rank, std::span<const std::byte> message, std::span<std::byte>, ReplyToken) {
    const bool is_put_off = number_in(message) == 1 && refusals_left-- > 0;
    return Served{.kind = is_put_off ? Served::Kind::again : Served::Kind::done};
  });
  Replies replies;
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(i), {}, {}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 4; }));
  EXPECT_EQ(target.calls, 4u + 3u);
  EXPECT_EQ(target.numbers_from(sender), counting_up(4));
}

TEST_P(TransportContract, says_whether_a_request_is_put_off) {
  bool is_open = false;
  Target target([&](Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) {
    return Served{.kind = is_open ? Served::Kind::done : Served::Kind::again};
  });
  Replies replies;
  EXPECT_FALSE(at(receiver).has_unfinished_request());
  ASSERT_TRUE(at(sender).try_post(receiver, {}, {}, {}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return target.calls > 0; }));
  EXPECT_TRUE(at(receiver).has_unfinished_request());
  is_open = true;
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return !replies.all.empty(); }));
  EXPECT_FALSE(at(receiver).has_unfinished_request());
}

TEST_P(TransportContract, serves_other_senders_while_one_is_put_off) {
  bool is_open = false;
  Target target([&](Rank from, std::span<const std::byte>, std::span<std::byte>, ReplyToken) {
    return Served{.kind = from == sender && !is_open ? Served::Kind::again : Served::Kind::done};
  });
  Replies replies;
  Replies other_replies;
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(i), {}, {}));
  for (std::uint64_t i = 0; i < 50; ++i) post(other_sender, bytes_of(i), {}, 0, target, other_replies);
  ASSERT_TRUE(rounds_until(target, other_sender, other_replies, [&] { return other_replies.all.size() == 50; }));
  EXPECT_TRUE(target.numbers_from(sender).empty());
  is_open = true;
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 3; }));
  EXPECT_EQ(target.numbers_from(sender), counting_up(3));
}

TEST_P(TransportContract, shows_the_same_message_and_keeps_what_was_written_to_the_reply_room) {
  // Writes one more byte of the reply each time it is shown the request.
  std::uint32_t written = 0;
  const Bytes message = pattern(200, 3);
  Target target([&](Rank, std::span<const std::byte> seen, std::span<std::byte> reply_room, ReplyToken) {
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), message.begin(), message.end()));
    reply_room[written] = message[written];
    ++written;
    if (written < 20) return Served{.kind = Served::Kind::again};
    return Served{.reply_bytes = 20};
  });
  Replies replies;
  ASSERT_TRUE(at(sender).try_post(receiver, message, {}, {.reply_capacity = 20}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return !replies.all.empty(); }));
  EXPECT_EQ(replies.all[0].bytes, Bytes(message.begin(), message.begin() + 20));
}

// --- Replies. ---

TEST_P(TransportContract, brings_the_reply_to_the_one_who_asked) {
  Target target(echo);
  Replies replies;
  Replies other_replies;
  const std::uint64_t one = 111;
  const std::uint64_t other = 222;
  ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(one), {}, {.reply_capacity = 8}));
  ASSERT_TRUE(at(other_sender).try_post(receiver, bytes_of(other), {}, {.reply_capacity = 8}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 1; }));
  ASSERT_TRUE(rounds_until(target, other_sender, other_replies, [&] { return other_replies.all.size() == 1; }));
  EXPECT_EQ(number_in(replies.all[0].bytes), 111u);
  EXPECT_EQ(number_in(other_replies.all[0].bytes), 222u);
  EXPECT_EQ(replies.all[0].from, receiver);
}

TEST_P(TransportContract, brings_the_code_and_only_the_bytes_that_count) {
  Target target([](Rank, std::span<const std::byte>, std::span<std::byte> reply_room, ReplyToken) {
    std::fill(reply_room.begin(), reply_room.end(), std::byte{9});
    return Served{.code = Code::range, .reply_bytes = 3};
  });
  Replies replies;
  ASSERT_TRUE(at(sender).try_post(receiver, {}, {}, {.reply_capacity = 10}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return !replies.all.empty(); }));
  EXPECT_EQ(replies.all[0].code, Code::range);
  EXPECT_EQ(replies.all[0].bytes, Bytes(3, std::byte{9}));
}

TEST_P(TransportContract, gives_the_handler_at_least_the_reply_room_that_was_asked_for) {
  Target target;
  Replies replies;
  const std::vector<std::size_t> capacities = {0, 1, 8, 63, 64, 65, at(sender).capabilities(receiver).max_reply_bytes};
  for (const std::size_t capacity : capacities) post(sender, {}, {}, capacity, target, replies);
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == capacities.size(); }));
  for (std::size_t i = 0; i < capacities.size(); ++i) EXPECT_GE(target.finished[i].reply_room_bytes, capacities[i]);
}

TEST_P(TransportContract, carries_replies_of_every_size_up_to_its_limit) {
  const std::size_t limit = at(sender).capabilities(receiver).max_reply_bytes;
  Target target([](Rank, std::span<const std::byte> message, std::span<std::byte> reply_room, ReplyToken) {
    const Bytes reply = pattern(number_in(message), number_in(message));
    std::copy(reply.begin(), reply.end(), reply_room.begin());
    return Served{.reply_bytes = static_cast<std::uint32_t>(reply.size())};
  });
  Replies replies;
  // The request itself takes a part of what one record holds where both share it.
  const std::vector<std::size_t> sizes = {0, 1, 63, 64, 65, limit / 2, limit - 9, limit - 8, 0, limit - 8};
  for (const std::uint64_t size : sizes) post(sender, bytes_of(size), {}, size, target, replies);
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == sizes.size(); }));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(replies.all[i].bytes, pattern(sizes[i], sizes[i])) << sizes[i] << " bytes";
  EXPECT_FALSE(at(sender).try_post(receiver, {}, {}, {.reply_capacity = 8 * limit}));
}

TEST_P(TransportContract, hands_over_nothing_when_nothing_has_come) {
  Replies replies;
  EXPECT_EQ(at(sender).poll_replies(receiver, replies), 0u);
  ASSERT_TRUE(at(sender).try_post(receiver, {}, {}, {}));
  job_->settle();
  EXPECT_EQ(at(sender).poll_replies(receiver, replies), 0u);
  EXPECT_TRUE(replies.all.empty());
}

// --- Letters. ---

TEST_P(LetterContract, hands_over_each_letter_once_and_in_the_order_of_its_sender) {
  constexpr std::uint64_t count = 1000;
  Target target;
  Replies replies;
  for (const Rank from : {sender, other_sender}) {
    if (at(from).capabilities(receiver).max_letter_bytes == 0) continue;
    for (std::uint64_t number = 0; number != count; ++number) {
      ASSERT_TRUE(send_letter(from, bytes_of(number), target, replies));
    }
    EXPECT_TRUE(rounds_until(target, from, replies, [&] { return came(from).size() == count; }));
    std::vector<std::uint64_t> numbers;
    for (const Bytes& letter : came(from)) numbers.push_back(number_in(letter));
    EXPECT_EQ(numbers, counting_up(count));
  }
  EXPECT_EQ(target.calls, 0u);
  EXPECT_TRUE(replies.all.empty()) << "letters are not answered";
}

TEST_P(LetterContract, joins_header_and_body_of_every_size_up_to_the_limit_and_keeps_neither) {
  Target target;
  Replies replies;
  const std::size_t limit = at(sender).capabilities(receiver).max_letter_bytes;
  std::vector<Bytes> sent;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, limit - 1, limit}) {
    Bytes letter = pattern(size, size + 1);
    sent.push_back(letter);
    const auto whole = std::span(letter);
    ASSERT_TRUE(at(sender).try_letter(receiver, whole.first(size / 3), whole.subspan(size / 3)));
    std::fill(letter.begin(), letter.end(), std::byte{0xdb});
  }
  const Bytes longer(limit + 1);
  EXPECT_DEATH((void)at(sender).try_letter(receiver, {}, longer), "longer");
  EXPECT_TRUE(rounds_until(target, sender, replies, [&] { return came().size() == sent.size(); }));
  EXPECT_EQ(came(), sent);
}

TEST_P(LetterContract, hands_over_letters_while_requests_are_put_off_and_find_no_room) {
  bool is_put_off = true;
  Target target([&](Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) -> Served {
    return {.kind = is_put_off ? Served::Kind::again : Served::Kind::done};
  });
  Replies replies;
  const Bytes message(at(sender).capabilities(receiver).max_message_bytes);
  std::size_t posted = 0;
  while (at(sender).try_post(receiver, message, {}, {.reply_capacity = 0})) {
    ++posted;
    serve(target);
    ASSERT_LT(posted, 10'000u);
  }
  for (std::uint64_t number = 0; number != 100; ++number) {
    ASSERT_TRUE(send_letter(sender, bytes_of(number), target, replies));
  }
  EXPECT_TRUE(rounds_until(target, sender, replies, [&] { return came().size() == 100; }));
  EXPECT_TRUE(target.finished.empty());
  is_put_off = false;
  EXPECT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == posted; }));
}

// Neither polls until both have taken all that they will.
TEST_P(LetterContract, takes_letters_both_ways_until_it_is_full_and_goes_on_when_both_have_polled) {
  Target target;
  std::uint64_t there = 0, back = 0;
  for (int i = 0; i < 5; ++i) {
    while (at(sender).try_letter(receiver, bytes_of(there), {})) ASSERT_LT(++there, 10'000u);
    while (at(receiver).try_letter(sender, bytes_of(back), {})) ASSERT_LT(++back, 10'000u);
    for (int rounds = 0; rounds < most_rounds && (came().size() < there || letters_[sender].of[receiver].size() < back);
         ++rounds) {
      serve(target);
      at(sender).poll_requests(target, 64);
      job_->settle();
    }
    EXPECT_EQ(came().size(), there);
    EXPECT_EQ(letters_[sender].of[receiver].size(), back);
  }
  EXPECT_GE(there, 100u);
  EXPECT_GE(back, 100u);
}

TEST_P(LateReplyContract, gives_late_replies_in_the_order_they_are_completed) {
  std::vector<ReplyToken> tokens;
  Target target([&](Rank, std::span<const std::byte> message, std::span<std::byte>, ReplyToken token) {
    if (number_in(message) == 2) return Served{};
    tokens.push_back(token);
    return Served{.kind = Served::Kind::later};
  });
  Replies replies;
  for (std::uint64_t i = 0; i < 4; ++i)
    ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(i), {}, {.reply_capacity = 8}));
  // A request answered late holds up nobody behind it.
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 1 && tokens.size() == 3; }));
  EXPECT_EQ(replies.all[0].ticket, 2u);
  for (const std::size_t which : {1u, 2u, 0u}) {
    const std::uint64_t number = 100 + tokens[which].ticket;
    const std::size_t before = replies.all.size();
    at(receiver).complete(tokens[which], Code::ok, bytes_of(number));
    ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == before + 1; }));
    EXPECT_EQ(replies.all.back().ticket, tokens[which].ticket);
    EXPECT_EQ(number_in(replies.all.back().bytes), number);
  }
  EXPECT_EQ(target.calls, 4u);
}

TEST_P(LateReplyContract, lets_one_request_complete_another) {
  std::optional<ReplyToken> waiting;
  Target target([&](Rank from, std::span<const std::byte>, std::span<std::byte>, ReplyToken token) {
    if (from == other_sender) {
      at(receiver).complete(*waiting, Code::ok, {});
      return Served{};
    }
    waiting = token;
    return Served{.kind = Served::Kind::later};
  });
  Replies replies;
  ASSERT_TRUE(at(sender).try_post(receiver, {}, {}, {}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return waiting.has_value(); }));
  ASSERT_TRUE(at(other_sender).try_post(receiver, {}, {}, {}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return !replies.all.empty(); }));
  EXPECT_EQ(replies.all[0].code, Code::ok);
}

// --- All of it at once, drawn from seeds. ---

// Takes seconds: random traffic over TCP.
TEST_P(TransportContract, keeps_its_promises_under_random_traffic) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    job_ = GetParam().make();
    SimRandom random(seed);
    const std::size_t most = std::min(at(sender).capabilities(receiver).max_message_bytes,
                                      at(sender).capabilities(receiver).max_reply_bytes) /
                             2;
    Target target(
        [&random](Rank from, std::span<const std::byte> message, std::span<std::byte> room, ReplyToken token) {
          if (random.once_in(4)) return Served{.kind = Served::Kind::again};
          return echo(from, message, room, token);
        });
    constexpr Rank senders[] = {sender, other_sender, bystander};
    std::vector<Bytes> sent[contract_ranks];
    Replies replies[contract_ranks];
    for (int step = 0; step < 2'000; ++step) {
      const Rank from = senders[random.below(3)];
      switch (random.below(4)) {
        case 0:
        case 1: {
          Bytes message = pattern(random.below(random.once_in(10) ? most : 200), random.next());
          if (at(from).try_post(receiver, message, {}, {.reply_capacity = message.size()}))
            sent[from].push_back(std::move(message));
          break;
        }
        case 2:
          serve(target, 1 + random.below(5));
          break;
        default:
          at(from).poll_replies(receiver, replies[from]);
          break;
      }
    }
    for (const Rank from : senders) {
      ASSERT_TRUE(
          rounds_until(target, from, replies[from], [&] { return replies[from].all.size() == sent[from].size(); }));
      EXPECT_EQ(replies[from].tickets(), counting_up(sent[from].size()));
      for (std::size_t i = 0; i < sent[from].size(); ++i)
        ASSERT_TRUE(replies[from].all[i].bytes == sent[from][i]) << "reply " << i;
    }
  }
}

// --- Transfers. ---

TEST_P(TransferContract, copies_to_and_from_a_peers_memory) {
  const std::span<std::byte> memory = job_->memory(receiver, 200'000);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  std::uint64_t cookie = 0;
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, memory.size()}) {
    const Bytes sent = pattern(size, size);
    const std::uint64_t shift = memory.size() - size;
    ++cookie;
    ASSERT_EQ(end_of(sender, cookie, at(sender).write(receiver, address + shift, sent, cookie)), Transfer::done);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin() + static_cast<std::ptrdiff_t>(shift)));
    Bytes back(size);
    ++cookie;
    ASSERT_EQ(end_of(other_sender, cookie, at(other_sender).read(receiver, address + shift, back, cookie)),
              Transfer::done);
    EXPECT_TRUE(back == sent);
  }
}

TEST_P(OwnTransferContract, copies_its_own_memory_at_once) {
  const std::span<std::byte> memory = job_->memory(sender, 64);
  const Bytes sent = pattern(64, 1);
  ASSERT_EQ(at(sender).write(sender, reinterpret_cast<std::uintptr_t>(memory.data()), sent, 1), Transfer::done);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin()));
}

TEST_P(BadAddressContract, answers_a_bad_address_instead_of_faulting) {
  const std::uint64_t address = job_->bad_address(receiver);
  Bytes buffer(64);
  EXPECT_EQ(end_of(sender, 1, at(sender).read(receiver, address, buffer, 1)), Transfer::bad_address);
  EXPECT_EQ(end_of(sender, 2, at(sender).write(receiver, address, buffer, 2)), Transfer::bad_address);
}

// --- A dead peer. ---

TEST_P(DeathContract, answers_requests_to_a_dead_peer_with_peer_failed) {
  Target target;
  Replies replies;
  Replies other_replies;
  ASSERT_TRUE(at(sender).try_post(receiver, {}, {}, {}));
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 1; }));
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_TRUE(at(sender).try_post(receiver, bytes_of(i), {}, {.reply_capacity = 8}));
  ASSERT_TRUE(job_->kill(receiver));
  job_->settle();
  for (int i = 0; i < 10; ++i) {
    job_->settle();
    at(sender).poll_replies(receiver, replies);
  }
  ASSERT_EQ(replies.all.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(replies.all[i].ticket, i);
    EXPECT_EQ(replies.all[i].code, Code::peer_failed);
    EXPECT_TRUE(replies.all[i].bytes.empty());
  }
  // Those posted later too, by whomever.
  ASSERT_TRUE(at(other_sender).try_post(receiver, {}, {}, {}));
  job_->settle();
  at(other_sender).poll_replies(receiver, other_replies);
  ASSERT_EQ(other_replies.all.size(), 1u);
  EXPECT_EQ(other_replies.all[0].code, Code::peer_failed);
}

TEST_P(TransferDeathContract, ends_transfers_with_a_dead_peer) {
  const std::span<std::byte> memory = job_->memory(receiver, 64);
  ASSERT_TRUE(job_->kill(receiver));
  job_->settle();
  Bytes buffer(64);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  EXPECT_EQ(end_of(sender, 1, at(sender).read(receiver, address, buffer, 1)), Transfer::peer_dead);
}

TEST_P(DeathContract, goes_on_between_the_living_after_a_death) {
  Target target(echo);
  Replies replies;
  ASSERT_TRUE(job_->kill(bystander));
  job_->settle();
  for (std::uint64_t i = 0; i < 100; ++i) post(sender, bytes_of(i), {}, 8, target, replies);
  ASSERT_TRUE(rounds_until(target, sender, replies, [&] { return replies.all.size() == 100; }));
  EXPECT_EQ(target.numbers_from(sender), counting_up(100));
}

}  // namespace
}  // namespace farsum
