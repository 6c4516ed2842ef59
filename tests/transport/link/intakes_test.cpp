// What has come of a stream, requests and letters, without a half of a link.
#include <gtest/gtest.h>

#include "made_frames.hpp"
#include "transport/link/letter_intake.hpp"
#include "transport/link/request_intake.hpp"

namespace farsum::link {
namespace {

LinkOptions options_of_target() {
  LinkOptions options;
  options.me = 1;
  options.peer = 4;
  options.max_frame_bytes = 4096;
  return options;
}

class ComingRequests : public testing::Test {
 protected:
  // The payload lives as long as the test.
  Frame frame(std::uint64_t first, std::uint16_t records, std::uint32_t bytes, std::uint32_t reply_capacity = 0) {
    Bytes& payload = *payloads.emplace_back(std::make_unique<Bytes>());
    for (int i = 0; i < records; ++i) {
      const Bytes one = record(bytes, reply_capacity);
      payload.insert(payload.end(), one.begin(), one.end());
    }
    Frame made{header_of(FrameKind::requests, 4, 1), payload};
    made.header.first = first;
    made.header.records = records;
    return made;
  }

  LinkCounters counters{};
  RequestIntake intake{options_of_target(), counters};
  std::vector<std::unique_ptr<Bytes>> payloads;
};

TEST_F(ComingRequests, are_received_once_in_order) {
  EXPECT_TRUE(intake.receive(0));
  EXPECT_TRUE(intake.receive(1));
  EXPECT_FALSE(intake.receive(0));
  EXPECT_EQ(intake.next(), 2u);
  EXPECT_EQ(counters.doubles, 1u);
}

TEST_F(ComingRequests, cost_what_is_new_of_their_frame) {
  EXPECT_EQ(intake.charge_of_new(frame(0, 3, 8, 16)), 3 * charge(8, 16));
  intake.receive(0);
  EXPECT_EQ(intake.charge_of_new(frame(0, 3, 8, 16)), 2 * charge(8, 16));
}

TEST_F(ComingRequests, make_no_frame_where_they_are_not_whole_or_too_long) {
  EXPECT_FALSE(intake.charge_of_new(frame(0, 0, 0)));
  EXPECT_FALSE(intake.charge_of_new(frame(0, 1, 5000)));
  EXPECT_FALSE(intake.charge_of_new(frame(0, 1, 8, 4096))) << "a reply longer than a frame";
  Frame cut = frame(0, 2, 8);
  cut.payload = cut.payload.first(cut.payload.size() - 1);
  EXPECT_FALSE(intake.charge_of_new(cut));
}

TEST_F(ComingRequests, that_come_early_are_kept_until_it_is_their_turn) {
  const Frame second = frame(1, 1, 8), third = frame(2, 1, 8);
  EXPECT_TRUE(intake.is_early(third));
  intake.keep(third, 100);
  intake.keep(second, 50);
  EXPECT_EQ(intake.early_charge(), 150u);
  EXPECT_EQ(intake.early_bytes(), second.payload.size() + third.payload.size());
  EXPECT_TRUE(intake.knows_early(third));
  EXPECT_EQ(counters.doubles, 1u);
  EXPECT_FALSE(intake.take_early());
  intake.receive(0);
  EXPECT_EQ(intake.take_early()->header.first, 1u);
  intake.receive(1);
  EXPECT_EQ(intake.take_early()->header.first, 2u);
  EXPECT_EQ(intake.early_charge(), 0u);
}

TEST_F(ComingRequests, that_came_early_are_forgotten_with_their_connection) {
  intake.keep(frame(1, 1, 8), 100);
  intake.forget_early();
  EXPECT_EQ(intake.early_charge(), 0u);
  EXPECT_FALSE(intake.knows_early(frame(1, 1, 8)));
}

class ComingLetters : public testing::Test, public LetterHandler {
 protected:
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override {
    EXPECT_EQ(from, 4u);
    came.push_back(static_cast<int>(letter[0]));
  }
  static LinkOptions leaving_out(Omission omission) {
    LinkOptions options = options_of_target();
    options.omission = omission;
    return options;
  }
  Fault send(LetterIntake& to, std::uint64_t number, std::uint64_t asks = 0) {
    const Bytes text(8, static_cast<std::byte>(number));
    Frame frame{header_of(FrameKind::letters, 4, 1), text};
    frame.header.first = number;
    frame.header.stamp = asks;
    return to.on_letter(frame);
  }
  Fault send(std::uint64_t number, std::uint64_t asks = 0) { return send(intake, number, asks); }

  LinkCounters counters{};
  LetterIntake intake{options_of_target(), this, counters};
  std::vector<int> came;
};

TEST_F(ComingLetters, are_handed_over_once_and_in_order) {
  for (const std::uint64_t number : {0, 2, 3, 2, 1, 1, 4}) EXPECT_EQ(send(number), Fault::none);
  EXPECT_EQ(came, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(counters.doubles, 1u);
  EXPECT_EQ(intake.next(), 5u);
  EXPECT_EQ(intake.early_bytes(), 0u);
}

TEST_F(ComingLetters, come_early_by_less_than_a_window) {
  EXPECT_EQ(send(letters_in_window), Fault::malformed);
  EXPECT_EQ(send(letters_in_window - 1), Fault::none);
  EXPECT_EQ(intake.early_bytes(), 8u);
  intake.forget_early();
  EXPECT_EQ(intake.early_bytes(), 0u);
}

TEST_F(ComingLetters, are_malformed_where_nobody_takes_them_or_they_are_too_long) {
  LetterIntake deaf(options_of_target(), nullptr, counters);
  EXPECT_EQ(send(deaf, 0), Fault::malformed);
  EXPECT_EQ(send(0, 2), Fault::malformed) << "which asks for what nobody knows";
  const Bytes text(max_letter_bytes + 1);
  EXPECT_EQ(intake.on_letter({header_of(FrameKind::letters, 4, 1), text}), Fault::malformed);
  EXPECT_TRUE(came.empty());
}

TEST_F(ComingLetters, ask_what_was_received_also_when_they_come_again) {
  send(0, 1);
  EXPECT_TRUE(intake.is_asked());
  intake.note_told();
  EXPECT_FALSE(intake.is_asked());
  send(0, 1);
  EXPECT_TRUE(intake.is_asked()) << "the answer may have been lost";
}

TEST_F(ComingLetters, are_seen_to_come_twice_or_in_disorder_where_a_test_leaves_the_checks_out) {
  LetterIntake doubling(leaving_out(Omission::letter_doubles_check), this, counters);
  for (const std::uint64_t number : {0, 0}) send(doubling, number);
  EXPECT_EQ(came, (std::vector<int>{0, 0}));
  came.clear();
  LetterIntake disorderly(leaving_out(Omission::letter_order), this, counters);
  for (const std::uint64_t number : {1, 0}) send(disorderly, number);
  EXPECT_EQ(came.front(), 1);
}

}  // namespace
}  // namespace farsum::link
