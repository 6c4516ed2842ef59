// Letters over a link: what is promised over connections that lose, double, reorder and break, and one half at a time.
#include <gtest/gtest.h>

#include <string>

#include "failing_memory.hpp"
#include "link_world.hpp"
#include "sim/seeds.hpp"
#include "test_length.hpp"

namespace farsum::link {
namespace {

constexpr std::uint64_t asking_gap = letters_in_window / 2;

WorldOptions letters_and_requests(std::uint64_t seed) {
  WorldOptions options;
  options.seed = seed;
  options.links = {{.from = 0, .to = 1, .letters = 160}, {.from = 1, .to = 0, .letters = 160}};
  return options;
}

WorldOptions broken_often(std::uint64_t seed) {
  WorldOptions options = letters_and_requests(seed);
  for (LinkPlan& plan : options.links) plan.letters = 400;
  return cut_often(options);
}

// Nothing else goes either way, so that only what letters ask for tells that they were received.
WorldOptions letters_alone(std::uint64_t seed) {
  WorldOptions options;
  options.seed = seed;
  options.links = {{.from = 0, .to = 1, .requests = 0, .letters = 100 * asking_gap},
                   {.from = 1, .to = 0, .requests = 0, .letters = 100 * asking_gap}};
  return options;
}

// All room of the requests is taken by those that wait for later ones.
WorldOptions beside_requests_that_wait(std::uint64_t seed) {
  WorldOptions options = letters_and_requests(seed);
  options.most_window = 4096;
  options.may_wait_bytes = 2048;
  options.budget_bytes = 0;
  options.peers = 2000;
  for (LinkPlan& plan : options.links) {
    plan.most_message_bytes = 200;
    plan.most_reply_bytes = 200;
    plan.waits = 50;
    plan.letters = 600;
  }
  options.frames_in_wire = 2;
  return options;
}

std::uint64_t frames(const LinkCounters& counters, FrameKind kind) {
  return counters.sent[static_cast<std::size_t>(kind)].frames;
}

TEST(Letters, come_once_and_in_order_beside_requests) {
  for_each_seed(200, [](std::uint64_t seed) { EXPECT_EQ(LinkWorld(letters_and_requests(seed)).run(), ""); });
}

// In full in make test-all: 200 seeds.
TEST(Letters, come_once_and_in_order_though_connections_break) {
  for_each_seed(test::in_full_or(200, 40),
                [](std::uint64_t seed) { EXPECT_EQ(LinkWorld(broken_often(seed)).run(), ""); });
}

// Takes seconds: requests wait for room again and again.
TEST(Letters, pass_where_requests_have_no_room) {
  for_each_seed(100, [](std::uint64_t seed) {
    WorldOptions options = beside_requests_that_wait(seed);
    options.cuts = seed % 3;
    EXPECT_EQ(LinkWorld(options).run(), "");
  });
}

TEST(Letters, need_no_ping_and_few_frames_back_where_nothing_is_lost) {
  for_each_seed(40, [](std::uint64_t seed) {
    WorldOptions options = letters_alone(seed);
    options.doubled_once_in = 0;
    LinkWorld world(options);
    EXPECT_EQ(world.run(), "");
    for (const auto& link : world.links) {
      const LinkCounters& back = link->receiver.counters();
      EXPECT_EQ(frames(link->sender.counters(), FrameKind::ping), 0u);
      EXPECT_EQ(frames(link->sender.counters(), FrameKind::letters), 100 * asking_gap);
      EXPECT_LE(frames(back, FrameKind::replies), 100u) << "one for each that asks";
    }
  });
}

// It has taken in the letters, and is stopped before anybody has asked.
TEST(Letters, leave_their_target_alone_that_is_stopped_for_longer_than_the_timeout) {
  for_each_seed(40, [](std::uint64_t seed) {
    WorldOptions options = letters_alone(seed);
    for (LinkPlan& plan : options.links) plan.letters = asking_gap - 1;
    options.stopped_from_ns = 1 * s;
    options.stopped_until_ns = 100 * s;
    LinkWorld world(options);
    EXPECT_EQ(world.run(), "");
    EXPECT_GT(world.now, 100 * s) << "it was waited for";
    for (const auto& link : world.links) EXPECT_EQ(link->sender.end(), LinkEnd::none);
  });
}

// What went wrong, and a ping where nothing was lost: its answer would mend what was not told.
std::string fault_of(const WorldOptions& options) {
  LinkWorld world(options);
  const std::string fault = world.run();
  if (!fault.empty() || options.cuts != 0) return fault;
  for (const auto& link : world.links) {
    if (frames(link->sender.counters(), FrameKind::ping) != 0) return "a ping was needed";
  }
  return {};
}

struct NoticedOmission {
  const char* name;
  WorldOptions (*make)(std::uint64_t seed);
  Omission omission;
};

class LetterChecks : public testing::TestWithParam<NoticedOmission> {};

TEST_P(LetterChecks, notice) {
  bool is_noticed = false;
  for (std::uint64_t seed = 1; seed <= 40 && !is_noticed; ++seed) {
    WorldOptions options = GetParam().make(seed);
    options.omission = GetParam().omission;
    is_noticed = !fault_of(options).empty();
  }
  EXPECT_TRUE(is_noticed);
}

INSTANTIATE_TEST_SUITE_P(
    That, LetterChecks,
    testing::Values(NoticedOmission{"a_letter_is_forgotten_before_it_was_received", broken_often,
                                    Omission::keep_letter_until_received},
                    NoticedOmission{"a_double_is_handed_over", letters_and_requests, Omission::letter_doubles_check},
                    NoticedOmission{"a_letter_is_handed_over_before_its_turn", letters_and_requests,
                                    Omission::letter_order},
                    NoticedOmission{"letters_of_old_connections_are_obeyed", broken_often, Omission::epoch_check},
                    NoticedOmission{"no_letter_asks_what_was_received", letters_alone, Omission::asking_letters}),
    [](const auto& noticed) { return std::string(noticed.param.name); });

// ---- the target's half

class KeptLetters final : public LetterHandler {
 public:
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override {
    EXPECT_EQ(from, 0u);
    letters.emplace_back(letter.begin(), letter.end());
  }
  std::vector<Bytes> letters;
};

class LetterReceiver : public testing::Test {
 protected:
  LetterReceiver() {
    say(bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79)));
    let_go();
  }

  ReceiverOptions options() {
    ReceiverOptions options;
    options.me = 1;
    options.secret = secret_of_tests();
    options.letters = &kept;
    return options;
  }
  Fault say(const Bytes& bytes) { return receiver.on_frame(frame_of(bytes), handler); }
  Fault say_letter(std::uint64_t number, std::size_t bytes = 8) {
    FrameHeader header = header_of(FrameKind::letters, 0, 1);
    header.first = number;
    header.stamp = asks_what_was_received(number) ? 1 : 0;
    return say(bytes_of(header, Bytes(bytes)));
  }
  void let_go() {
    wire.let_go([this](FrameId id) { receiver.on_sent(id, true); });
  }

  CreditPool pool{1 << 20, 4};
  RecordingWire wire;
  CountingHandler handler;
  KeptLetters kept;
  LinkReceiver receiver{options(), wire, pool};
};

TEST_F(LetterReceiver, takes_no_letter_that_is_impossible) {
  EXPECT_EQ(say_letter(0, max_letter_bytes + 1), Fault::malformed);
  EXPECT_EQ(say_letter(letters_in_window), Fault::malformed) << "more than a window ahead";
  FrameHeader header = header_of(FrameKind::letters, 0, 1);
  header.stamp = 2;
  EXPECT_EQ(say(bytes_of(header)), Fault::malformed);
  header = header_of(FrameKind::letters, 0, 1, 2);
  EXPECT_EQ(say(bytes_of(header)), Fault::stale);
  EXPECT_TRUE(kept.letters.empty());
  EXPECT_EQ(say_letter(0, max_letter_bytes), Fault::none);
  EXPECT_EQ(say_letter(1, 0), Fault::none);
  EXPECT_EQ(kept.letters.size(), 2u);
}

TEST_F(LetterReceiver, takes_none_where_nobody_files_them) {
  ReceiverOptions without = options();
  without.letters = nullptr;
  LinkReceiver deaf(without, wire, pool);
  deaf.on_frame(frame_of(bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79))), handler);
  EXPECT_EQ(deaf.on_frame(frame_of(bytes_of(header_of(FrameKind::letters, 0, 1))), handler), Fault::malformed);
}

TEST_F(LetterReceiver, keeps_less_than_a_window_of_what_comes_early) {
  for (std::uint64_t number = letters_in_window - 1; number != 0; --number) {
    EXPECT_EQ(say_letter(number), Fault::none);
    EXPECT_EQ(say_letter(number), Fault::none) << "twice";
  }
  EXPECT_EQ(receiver.early_letter_bytes(), (letters_in_window - 1) * 8);
  EXPECT_TRUE(kept.letters.empty());
  EXPECT_EQ(say_letter(0), Fault::none);
  EXPECT_EQ(kept.letters.size(), letters_in_window);
  EXPECT_EQ(receiver.early_letter_bytes(), 0u);
}

TEST_F(LetterReceiver, says_nothing_until_it_is_asked_and_then_in_one_frame_a_turn) {
  for (std::uint64_t number = 0; number != asking_gap - 1; ++number) {
    say_letter(number);
    receiver.end_turn();
  }
  EXPECT_EQ(wire.count(FrameKind::replies), 0u);
  say_letter(asking_gap - 1);
  say_letter(asking_gap);
  receiver.end_turn();
  receiver.end_turn();
  ASSERT_EQ(wire.count(FrameKind::replies), 1u);
  EXPECT_EQ(received_letters(wire.sent.back().header), asking_gap + 1);
  let_go();
  say_letter(asking_gap - 1);
  receiver.end_turn();
  EXPECT_EQ(wire.count(FrameKind::replies), 2u) << "the answer may have been lost";
  EXPECT_EQ(kept.letters.size(), asking_gap + 1);
}

TEST_F(LetterReceiver, tells_of_letters_with_whatever_goes_back) {
  say_letter(0);
  FrameHeader header = header_of(FrameKind::requests, 0, 1);
  header.records = 1;
  say(bytes_of(header, record(8, 8)));
  receiver.end_turn();
  ASSERT_EQ(wire.sent.back().header.kind, FrameKind::replies);
  EXPECT_EQ(wire.sent.back().header.first, 0u) << "the number of the reply";
  EXPECT_EQ(received_letters(wire.sent.back().header), 1u);
  say_letter(1);
  say(bytes_of(header_of(FrameKind::ping, 0, 1)));
  ASSERT_EQ(wire.sent.back().header.kind, FrameKind::pong);
  EXPECT_EQ(received_letters(wire.sent.back().header), 2u);
  say(bytes_of(header_of(FrameKind::hello, 0, 1, 2), Bytes(79)));
  let_go();
  receiver.on_disconnected(1);
  ASSERT_EQ(wire.sent.back().header.kind, FrameKind::hello_ack);
  EXPECT_EQ(received_letters(wire.sent.back().header), 2u);
}

TEST_F(LetterReceiver, hands_over_nothing_of_the_dead) {
  receiver.forget_peer();
  EXPECT_EQ(say_letter(0), Fault::stale);
  EXPECT_TRUE(kept.letters.empty());
}

// ---- the origin's half

class LetterSender : public testing::Test {
 protected:
  static SenderOptions options() {
    SenderOptions options;
    options.peer = 1;
    options.secret = secret_of_tests();
    return options;
  }
  Fault hear(FrameHeader header, std::uint64_t now) { return sender.on_frame(frame_of(bytes_of(header)), now); }
  Fault hear_received(FrameKind kind, std::uint64_t letters, std::uint64_t now = 0) {
    FrameHeader header = header_of(kind, 1, 0);
    header.first = letters;
    return hear(header, now);
  }
  void greet(std::uint32_t epoch = 1, std::uint64_t letters = 0, std::uint64_t now = 0) {
    FrameHeader header = header_of(FrameKind::hello_ack, 1, 0, epoch);
    header.stamp = epoch;  // hellos are numbered like connections as long as no ping leaves
    header.first = letters;
    ASSERT_EQ(hear(header, now), Fault::none);
    ASSERT_EQ(sender.state(), LinkState::open);
  }
  bool post(std::uint64_t now = 0) { return sender.post_letter(head, body, now); }
  void let_go(bool ok = true, std::uint64_t now = 0) {
    wire.let_go([&](FrameId id) { sender.on_sent(id, ok, now); });
  }

  // One is taken and gone, and nothing says that it was received.
  bool leaves_a_letter() {
    sender.open(0);
    greet();
    let_go();
    const bool is_taken = post();
    let_go();
    return is_taken;
  }

  // The target says nothing, before this instant; connections are closed at once.
  void wait_until(std::uint64_t end) {
    let_go();
    for (std::uint64_t now = sender.next_deadline_ns(); now < end; now = sender.next_deadline_ns()) {
      sender.tick(now);
      let_go();
      if (wire.disconnected == wire.connected) sender.on_disconnected(wire.disconnected, now);
    }
  }

  const Bytes head = Bytes(8, std::byte{1}), body = Bytes(16, std::byte{2});
  RecordingWire wire;
  LinkSender sender{options(), wire};
};

TEST_F(LetterSender, takes_a_letter_before_there_is_a_connection_or_credit) {
  EXPECT_TRUE(post());
  EXPECT_EQ(wire.count(FrameKind::hello), 1u);
  EXPECT_EQ(wire.count(FrameKind::letters), 0u);
  greet();
  ASSERT_EQ(wire.count(FrameKind::letters), 1u);
  Bytes whole = head;
  whole.insert(whole.end(), body.begin(), body.end());
  EXPECT_TRUE(std::ranges::equal(frame_of(wire.sent.back().bytes).payload, whole));
  EXPECT_FALSE(sender.wants_credit());
}

TEST_F(LetterSender, keeps_a_window_of_letters_and_goes_on_as_they_are_received) {
  sender.open(0);
  greet();
  for (std::uint64_t number = 0; number != letters_in_window; ++number) ASSERT_TRUE(post());
  EXPECT_FALSE(post());
  EXPECT_EQ(wire.count(FrameKind::letters), letters_in_window);
  EXPECT_EQ(wire.sent.back().header.stamp, 1u) << "the last of a window asks";
  let_go();
  EXPECT_FALSE(post()) << "the target may not have them";
  EXPECT_EQ(hear_received(FrameKind::replies, letters_in_window + 1), Fault::malformed) << "more than were sent";
  EXPECT_EQ(hear_received(FrameKind::replies, 1), Fault::none);
  EXPECT_TRUE(post());
  EXPECT_FALSE(post());
  EXPECT_EQ(wire.sent.back().header.first, letters_in_window);
}

TEST_F(LetterSender, keeps_a_letter_that_was_received_while_the_wire_reads_it) {
  sender.open(0);
  greet();
  ASSERT_TRUE(post());
  EXPECT_EQ(hear_received(FrameKind::replies, 1), Fault::none);
  EXPECT_TRUE(sender.has_unreceived_letters());
  EXPECT_FALSE(sender.is_quiet());
  let_go();
  EXPECT_FALSE(sender.has_unreceived_letters());
  EXPECT_TRUE(sender.is_quiet());
}

TEST_F(LetterSender, sends_again_over_a_new_connection_what_was_not_received) {
  sender.open(0);
  greet();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(post());
  sender.on_broken(1, 0);
  ASSERT_EQ(wire.disconnected, 1u);
  let_go(false);
  sender.on_disconnected(1, 1 * s);
  EXPECT_TRUE(post(1 * s)) << "it waits for the connection";
  const std::size_t before = wire.count(FrameKind::letters);
  greet(2, 3, 1 * s);
  ASSERT_EQ(wire.count(FrameKind::letters) - before, 3u);
  EXPECT_EQ(wire.sent[wire.sent.size() - 3].header.first, 3u);
  EXPECT_EQ(wire.sent.back().header.first, 5u);
  EXPECT_EQ(sender.counters().replayed, 2u);
}

TEST_F(LetterSender, asks_a_silent_target_with_a_ping_and_then_needs_nothing_more) {
  ASSERT_TRUE(leaves_a_letter());
  EXPECT_EQ(sender.next_deadline_ns(), 5 * s);
  sender.tick(5 * s);
  EXPECT_EQ(wire.count(FrameKind::ping), 1u);
  EXPECT_EQ(hear_received(FrameKind::pong, 1, 5 * s), Fault::none);
  EXPECT_EQ(sender.next_deadline_ns(), LinkSender::never);
}

TEST_F(LetterSender, fails_where_a_letter_is_expected_to_be_received_for_too_long_and_then_drops_letters) {
  ASSERT_TRUE(leaves_a_letter());
  sender.tick(1 * s);
  EXPECT_EQ(wire.count(FrameKind::ping), 0u);
  sender.tick(5 * s);
  EXPECT_EQ(wire.count(FrameKind::ping), 1u);
  let_go();
  sender.expect_receipts(7 * s);
  EXPECT_EQ(wire.count(FrameKind::ping), 2u);
  for (const std::uint64_t now : {20 * s, 34 * s}) sender.expect_receipts(now);
  EXPECT_EQ(wire.count(FrameKind::ping), 2u) << "it is asked already";
  sender.tick(37 * s - 1);
  EXPECT_EQ(sender.end(), LinkEnd::none);
  sender.tick(37 * s);
  EXPECT_EQ(sender.end(), LinkEnd::silence);
  for (std::uint64_t number = 0; number <= letters_in_window; ++number) EXPECT_TRUE(post(37 * s));
  let_go(false);
  EXPECT_TRUE(sender.is_quiet());
  EXPECT_FALSE(sender.has_unreceived_letters());
}

TEST_F(LetterSender, tries_on_without_an_end_where_nobody_expects_that_its_letters_were_received) {
  ASSERT_TRUE(leaves_a_letter());
  wait_until(600 * s);
  EXPECT_EQ(sender.end(), LinkEnd::none);
  EXPECT_GE(wire.connected, 2u);
  EXPECT_LE(wire.connected, 61u) << "every ten seconds";
  ASSERT_EQ(sender.state(), LinkState::connecting);
  FrameHeader header = header_of(FrameKind::hello_ack, 1, 0, wire.connected);
  header.stamp = wire.sent.back().header.stamp;
  header.first = 1;
  EXPECT_EQ(hear(header, 600 * s), Fault::none);
  EXPECT_EQ(sender.next_deadline_ns(), LinkSender::never);
}

TEST_F(LetterSender, no_longer_counts_the_silence_when_nobody_has_asked_again_for_long) {
  ASSERT_TRUE(leaves_a_letter());
  sender.expect_receipts(1 * s);
  wait_until(100 * s);
  EXPECT_EQ(sender.end(), LinkEnd::none);
  for (std::uint64_t now = 100 * s; now < 130 * s; now += 5 * s) {
    sender.expect_receipts(now);
    wait_until(now + 5 * s);
  }
  EXPECT_EQ(sender.end(), LinkEnd::none);
  wait_until(130 * s + 1);
  EXPECT_EQ(sender.end(), LinkEnd::silence);
}

TEST_F(LetterSender, counts_the_silence_from_when_the_wire_calls_the_connection_broken) {
  ASSERT_TRUE(leaves_a_letter());
  wait_until(4 * s);
  sender.on_broken(1, 4 * s);
  sender.on_disconnected(1, 4 * s);
  wait_until(34 * s);
  EXPECT_EQ(sender.end(), LinkEnd::none);
  wait_until(34 * s + 1);
  EXPECT_EQ(sender.end(), LinkEnd::silence);
}

TEST_F(LetterSender, counts_the_silence_from_a_request_that_comes_behind_its_letters) {
  ASSERT_TRUE(leaves_a_letter());
  wait_until(100 * s);
  EXPECT_FALSE(sender.post({.head = head}, 100 * s)) << "there is no credit";
  wait_until(130 * s);
  EXPECT_EQ(sender.end(), LinkEnd::none);
  wait_until(130 * s + 1);
  EXPECT_EQ(sender.end(), LinkEnd::silence);
}

// Whoever looks at the time may have been stopped, or had no processor.
TEST_F(LetterSender, asks_before_it_takes_a_silence_for_a_death_however_late_it_looks) {
  ASSERT_TRUE(leaves_a_letter());
  sender.tick(31 * s);
  EXPECT_EQ(wire.count(FrameKind::ping), 1u);
  EXPECT_EQ(wire.disconnected, 0u);
  EXPECT_EQ(sender.state(), LinkState::open);
  EXPECT_EQ(hear_received(FrameKind::pong, 1, 31 * s), Fault::none);
  EXPECT_EQ(sender.next_deadline_ns(), LinkSender::never);
  let_go();
  ASSERT_TRUE(post(100 * s));
  let_go();
  sender.tick(131 * s);
  EXPECT_EQ(wire.count(FrameKind::ping), 2u) << "it is asked anew";
  sender.expect_receipts(131 * s);
  for (const std::uint64_t now : {140 * s, 150 * s}) sender.expect_receipts(now);
  sender.tick(161 * s);
  EXPECT_EQ(sender.end(), LinkEnd::silence);
}

TEST_F(LetterSender, counts_the_silence_from_the_question_of_a_late_goodbye) {
  ASSERT_TRUE(leaves_a_letter());
  EXPECT_FALSE(sender.close(31 * s));
  sender.tick(31 * s);
  EXPECT_EQ(sender.state(), LinkState::open);
  for (const std::uint64_t now : {45 * s, 59 * s}) EXPECT_FALSE(sender.close(now));
  sender.tick(61 * s);
  EXPECT_EQ(sender.end(), LinkEnd::silence);
}

TEST_F(LetterSender, waits_for_more_than_receipts_where_a_letter_was_refused_until_one_is_taken) {
  sender.open(0);
  greet();
  let_go();
  for (std::uint64_t number = 0; number != letters_in_window; ++number) ASSERT_TRUE(post());
  EXPECT_FALSE(sender.waits_for_receipts_only()) << "they have not left";
  let_go();
  EXPECT_TRUE(sender.waits_for_receipts_only());
  EXPECT_FALSE(post());
  EXPECT_FALSE(sender.waits_for_receipts_only());
  EXPECT_FALSE(sender.has_room_for_refused_letter());
  EXPECT_EQ(hear_received(FrameKind::replies, 1), Fault::none);
  EXPECT_TRUE(sender.has_room_for_refused_letter());
  EXPECT_TRUE(post());
  let_go();
  EXPECT_FALSE(sender.has_room_for_refused_letter());
  EXPECT_TRUE(sender.waits_for_receipts_only());
  sender.tick(5 * s);
  EXPECT_FALSE(sender.waits_for_receipts_only()) << "a question has not left";
}

TEST_F(LetterSender, asks_once_more_before_its_goodbye_where_the_answer_tells_of_less) {
  sender.open(0);
  greet();
  let_go();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(post());
  let_go();
  EXPECT_FALSE(sender.close(0));
  let_go();
  EXPECT_EQ(hear_received(FrameKind::pong, 1), Fault::none);
  EXPECT_FALSE(sender.close(0));
  EXPECT_EQ(wire.count(FrameKind::ping), 2u);
  EXPECT_EQ(hear_received(FrameKind::pong, 2), Fault::none);
  EXPECT_TRUE(sender.close(0));
}

TEST_F(LetterSender, says_goodbye_when_all_were_received_which_it_asks_for_once) {
  sender.open(0);
  greet();
  ASSERT_TRUE(post());
  let_go();
  EXPECT_FALSE(sender.close(0));
  EXPECT_FALSE(sender.close(0));
  EXPECT_EQ(wire.count(FrameKind::ping), 1u);
  EXPECT_EQ(hear_received(FrameKind::pong, 1), Fault::none);
  EXPECT_TRUE(sender.close(0));
  EXPECT_EQ(wire.count(FrameKind::bye), 1u);
}

// Each allocation fails once: the post throws, and what has left is what was taken.
TEST_F(LetterSender, has_done_nothing_where_there_is_no_memory) {
  std::size_t failures = 0;
  bool has_failed = true;
  for (std::size_t after = 0; has_failed; ++after) {
    SteadyWire fresh_wire;
    LinkSender fresh(options(), fresh_wire);
    fresh.open(0);
    FrameHeader header = header_of(FrameKind::hello_ack, 1, 0);
    header.stamp = fresh_wire.sent.back().header.stamp;
    ASSERT_EQ(fresh.on_frame(frame_of(bytes_of(header)), 0), Fault::none);
    std::size_t taken = 0;
    {
      const FailingMemory memory(after);
      for (std::uint64_t i = 0; i < letters_in_window; ++i) {
        try {
          taken += fresh.post_letter(head, body, 0) ? 1 : 0;
        } catch (const std::bad_alloc&) {
          ++failures;
        }
      }
      has_failed = FailingMemory::has_failed();
    }
    ASSERT_EQ(fresh_wire.count(FrameKind::letters), taken) << "allocation " << after;
  }
  EXPECT_GT(failures, 3u);
}

// The first opens the link, too.
TEST_F(LetterSender, is_taken_whole_or_not_at_all_where_there_is_no_memory_to_connect) {
  bool has_failed = true;
  std::size_t failures = 0;
  for (std::size_t after = 0; has_failed; ++after) {
    SteadyWire fresh_wire;
    LinkSender fresh(options(), fresh_wire);
    bool is_taken = false;
    {
      const FailingMemory memory(after);
      try {
        is_taken = fresh.post_letter(head, body, 0);
      } catch (const std::bad_alloc&) {
        ++failures;
      }
      has_failed = FailingMemory::has_failed();
    }
    ASSERT_EQ(fresh.has_unreceived_letters(), is_taken) << "allocation " << after;
    ASSERT_EQ(fresh.state(), is_taken ? LinkState::connecting : LinkState::idle);
    ASSERT_NE(is_taken, has_failed);
  }
  EXPECT_GT(failures, 2u);
}

// The buffers of the first window serve all that follow.
TEST_F(LetterSender, asks_for_no_memory_once_a_window_has_passed) {
  SteadyWire fresh_wire;
  LinkSender fresh(options(), fresh_wire);
  fresh.open(0);
  FrameHeader header = header_of(FrameKind::hello_ack, 1, 0);
  header.stamp = fresh_wire.sent.back().header.stamp;
  ASSERT_EQ(fresh.on_frame(frame_of(bytes_of(header)), 0), Fault::none);
  const auto window = [&] {
    for (std::uint64_t i = 0; i < letters_in_window; ++i) ASSERT_TRUE(fresh.post_letter(head, body, 0));
  };
  std::uint64_t received = 0;
  const auto receive = [&] {
    fresh_wire.let_go([&](FrameId id) { fresh.on_sent(id, true, 0); });
    FrameHeader told = header_of(FrameKind::replies, 1, 0);
    told.first = received += letters_in_window;
    ASSERT_EQ(fresh.on_frame(frame_of(bytes_of(told)), 0), Fault::none);
  };
  window();
  receive();
  for (int i = 0; i < 100; ++i) {
    const FailingMemory memory(0);
    window();
    EXPECT_FALSE(FailingMemory::has_failed());
    const FailingMemory::Pause pause;
    receive();
  }
}

}  // namespace
}  // namespace farsum::link
