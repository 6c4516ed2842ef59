// What is taken of a card that came from another host, and what is said of one that is not.
#include "liveness/network_card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "golden.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

TEST(NetworkCards, of_a_rank_of_this_job_with_these_versions_are_taken) {
  NetworkCard card = versioned_card();
  card.rank = 3;
  card.address_bytes = sizeof card.address;
  EXPECT_EQ(why_unreachable(card, 4), "");
}

TEST(NetworkCards, are_the_bytes_that_were_recorded) {
  NetworkCard card = versioned_card();
  card.rank = 0x0a;
  card.code = Code::unsupported;
  card.node.boot.fill('b');
  card.node.network_namespace = 0x0b;
  card.node.process_namespace = 0x0c;
  card.node.user_namespace = 0x0d;
  card.node.name.fill('n');
  card.node.host.fill('h');
  card.machine = 0x0e;
  card.hosts.fill(0x0f);
  card.address_bytes = 0x10;
  card.address.fill(std::byte{0xad});
  expect_golden("network_card", words_of(std::as_bytes(std::span(&card, 1))));
}

TEST(NetworkCards, of_other_versions_are_refused) {
  for (std::uint16_t NetworkCard::*version : {&NetworkCard::link_version, &NetworkCard::message_version}) {
    NetworkCard card = versioned_card();
    ++(card.*version);
    EXPECT_THAT(why_unreachable(card, 4), HasSubstr("another version"));
  }
  NetworkCard card = versioned_card();
  ++card.layout;
  card.code = Code::system;
  EXPECT_THAT(why_unreachable(card, 4), HasSubstr("another version"));
}

TEST(NetworkCards, that_make_no_sense_are_refused) {
  NetworkCard card = versioned_card();
  card.rank = 4;
  EXPECT_THAT(why_unreachable(card, 4), HasSubstr("no sense"));
  card.rank = 3;
  card.address_bytes = sizeof card.address + 1;
  EXPECT_THAT(why_unreachable(card, 4), HasSubstr("no sense"));
}

TEST(NetworkCards, of_ranks_without_a_network_say_why_in_words_that_end) {
  NetworkCard card;
  card.code = Code::unsupported;
  EXPECT_FALSE(why_unreachable(card, 4).empty());
  std::memcpy(card.address.data(), "no libucp", 10);
  EXPECT_EQ(why_unreachable(card, 4), "no libucp");
  std::memset(card.address.data(), 'x', card.address.size());
  EXPECT_EQ(why_unreachable(card, 4).size(), card.address.size());
}

TEST(NetworkCards, that_are_refused_name_the_rank_and_its_host_where_these_can_be_read) {
  NetworkCard card = versioned_card();
  card.rank = 3;
  std::memcpy(card.node.host.data(), "far", 4);
  EXPECT_EQ(refusal_of(card, 4), "");
  ++card.link_version;
  EXPECT_EQ(refusal_of(card, 4), "rank 3 of the job on host far cannot be reached: it runs another version of Farsum");
  ++card.layout;
  EXPECT_EQ(refusal_of(card, 4),
            "a rank of the job on another host cannot be reached: it runs another version of Farsum");
}

}  // namespace
}  // namespace farsum
