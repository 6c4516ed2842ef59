#include "cost/meeting_model.hpp"

#include <gtest/gtest.h>

namespace farsum::cost {
namespace {

LinkModel link_of(double send_us, double latency_us, double receive_us) {
  LinkModel link;
  link.send_us = send_us;
  link.latency_us = latency_us;
  link.receive_us = receive_us;
  return link;
}

TEST(MeetingModel, counts_letters_of_one_round_and_rounds_of_one_letter) {
  const LinkModel link = link_of(1, 10, 2);
  EXPECT_EQ(flat_meeting_us(link, 1), 0);
  EXPECT_EQ(dissemination_us(link, 1), 0);
  EXPECT_EQ(flat_meeting_us(link, 2), 13);
  EXPECT_EQ(dissemination_us(link, 2), 13);
  EXPECT_EQ(flat_meeting_us(link, 9), 34);
  EXPECT_EQ(dissemination_us(link, 8), 39);
  EXPECT_EQ(dissemination_us(link, 9), 52);
}

TEST(MeetingModel, has_up_to_12_nodes_meet_at_once_and_more_in_rounds) {
  for (std::uint32_t nodes = 1; nodes <= 12; ++nodes) EXPECT_TRUE(meet_at_once(nodes)) << nodes;
  for (std::uint32_t nodes = 13; nodes <= 5000; ++nodes) EXPECT_FALSE(meet_at_once(nodes)) << nodes;
}

TEST(MeetingModel, gives_rounds_a_degree_of_all_nodes_or_of_two) {
  EXPECT_EQ(meeting_degree(12), 12u);
  EXPECT_EQ(meeting_degree(13), 2u);
}

}  // namespace
}  // namespace farsum::cost
