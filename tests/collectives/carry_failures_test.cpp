// Collectives that nobody waits for, where memory is lacking or what other nodes tell breaks the group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "carrying_threads.hpp"

namespace farsum {
namespace {

TEST(Carry, takes_no_number_where_there_is_no_memory) {
  CarryingThreads threads({0, 0, 1});
  threads.run([](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    CarriedBytes result(mine.size());
    auto request = std::make_shared<CarriedRequest>();
    request->call = carried_call_of(3, 5'000, 0);
    request->mine = mine.data();
    member.help.is_full = member.rank == 1;
    if (member.rank == 1) {
      EXPECT_EQ(member.carry.begin(request, 0, "begin").code(), Code::no_memory);
    }
    member.help.is_full = false;
    EXPECT_TRUE(member.wait(*member.begin(request->call, mine.data(), result.data())).is_ok());
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// Rank 1 maps nothing that others bring, but for the last call. Where it comes last it looks for all.
void carry_where_rank_1_maps_nothing(bool comes_last) {
  CarryingThreads threads({0, 0, 1});
  threads.run([&](CarryingMember member) {
    constexpr std::size_t count = 5'000;
    const CarriedBytes mine = doubles_of(member.rank, count, 1);
    CarriedBytes result(mine.size(), std::byte{7});
    const CarriedBytes untouched = result;
    std::shared_ptr<CarriedRequest> request;
    const auto begin = [&] { request = member.begin(carried_call_of(3, count, 0), mine.data(), result.data()); };
    const bool is_poor = member.rank == 1;
    member.help.can_reach = !is_poor;
    if (is_poor != comes_last) begin();
    member.meeting.arrive_and_wait();
    if (is_poor == comes_last) begin();
    member.meeting.arrive_and_wait();
    const Status status = member.wait(*request);
    if (is_poor || comes_last) {
      EXPECT_EQ(status.code(), Code::no_memory);
      EXPECT_THAT(std::string(status.text()), testing::HasSubstr("rank 1 of the group has no room"));
      EXPECT_EQ(result, untouched);
    } else {
      EXPECT_TRUE(status.is_ok());
    }
    member.meeting.arrive_and_wait();
    EXPECT_EQ(threads.open_extents(), 1) << "of which rank 1 cannot say that it has fetched from it";
    member.meeting.arrive_and_wait();
    member.help.can_reach = true;
    CarriedBytes sum(3 * sizeof(double));
    EXPECT_TRUE(member.wait(*member.begin(carried_call_of(3, 3, 0), mine.data(), sum.data())).is_ok());
    member.meeting.arrive_and_wait();
    EXPECT_EQ(threads.open_extents(), 0);
  });
}

TEST(Carry, tells_who_could_not_map_what_others_bring_and_gives_all_back_once_it_can) {
  carry_where_rank_1_maps_nothing(true);
  carry_where_rank_1_maps_nothing(false);
}

// The first rank walks with what others bring, though it maps none of that. Of several nodes all are told.
TEST(Carry, tells_all_that_the_first_rank_of_a_node_cannot_map_what_it_sends_by_ranks) {
  CarryingThreads threads({0, 0, 1}, {.order = ReduceOrder::ranks});
  threads.run([&](CarryingMember member) {
    CarriedCall call = carried_call_of(3, 5'000, 0);
    call.order = ReduceOrder::ranks;
    const CarriedBytes mine = doubles_of(member.rank, call.count, 1);
    CarriedBytes result(mine.size(), std::byte{7});
    const CarriedBytes untouched = result;
    std::shared_ptr<CarriedRequest> request;
    for (const std::uint32_t rank : {2, 0, 1}) {
      member.help.can_reach = member.rank != 0;
      if (member.rank == rank) request = member.begin(call, mine.data(), result.data());
      member.meeting.arrive_and_wait();
    }
    const Status status = member.wait(*request);
    EXPECT_EQ(status.code(), Code::no_memory);
    EXPECT_THAT(std::string(status.text()), testing::HasSubstr("rank 0 of the group has no room"));
    EXPECT_EQ(result, untouched);
    member.help.can_reach = true;
    EXPECT_TRUE(member.wait(*member.begin(call, mine.data(), result.data())).is_ok());
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// What node 0 sends to node 1 makes no sense there. Rank 2 has begun calls to which others do not come any more.
void break_group_beside_calls(std::size_t begun_by_rank_1) {
  CarryingThreads threads({0, 1, 1});
  threads.boxes().spoil = [](const Mailboxes::Key& key, std::vector<std::byte>& letter) {
    if (std::get<0>(key) == 1) letter.front() ^= std::byte{1};
  };
  threads.run([&](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    std::vector<CarriedBytes> results(member.rank == 0 ? 1 : member.rank == 1 ? begun_by_rank_1 : 7);
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    if (member.rank == 0) member.meeting.arrive_and_wait();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::size_t count = i % 2 == 0 ? 3 : 5'000;
      results[i].resize(count * sizeof(double));
      requests.push_back(member.begin(carried_call_of(3, count, 0), mine.data(), results[i].data()));
    }
    if (member.rank != 0) member.meeting.arrive_and_wait();
    for (std::size_t i = requests.size(); i-- > 0;) {
      const Status status = member.wait(*requests[i]);
      EXPECT_EQ(status.code(), member.rank == 0 ? Code::ok : Code::system);
      if (member.rank == 0) continue;
      EXPECT_THAT(std::string(status.text()), testing::HasSubstr("the node of rank 0 of the group has sent"));
    }
    if (member.rank == 0) return;
    auto another = std::make_shared<CarriedRequest>();
    another->call = carried_call_of(3, 5'000, 0);
    another->mine = mine.data();
    const Status refused = member.carry.begin(another, 0, "begin");
    EXPECT_EQ(refused.code(), Code::system);
    EXPECT_THAT(std::string(refused.text()), testing::HasSubstr("the group is of no further use"));
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

TEST(Carry, tells_all_ranks_of_a_node_that_their_group_is_broken_whatever_they_have_begun) {
  for (const std::size_t begun : {1, 2, 3, 7}) break_group_beside_calls(begun);
}

// Rank 1 comes to walk when two calls are whole, and finds in the first what breaks the group.
TEST(Carry, tells_other_nodes_nothing_more_of_a_group_that_is_broken) {
  CarryingThreads threads({0, 1, 1});
  threads.boxes().spoil = [](const Mailboxes::Key& key, std::vector<std::byte>& letter) {
    if (std::get<0>(key) == 1) letter.front() ^= std::byte{1};
  };
  threads.run([&](CarryingMember member) {
    member.agent.set_away(member.rank == 1);
    const CarriedBytes mine = doubles_of(member.rank, 3, 1);
    std::vector<CarriedBytes> results(member.rank == 0 ? 1 : 2, CarriedBytes(mine.size()));
    std::vector<std::shared_ptr<CarriedRequest>> requests;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      member.meeting.arrive_and_wait();
      if (member.rank != rank) continue;
      for (CarriedBytes& result : results)
        requests.push_back(member.begin(carried_call_of(3, 3, 0), mine.data(), result.data()));
    }
    member.meeting.arrive_and_wait();
    for (const auto& request : requests)
      EXPECT_EQ(member.wait(*request).code(), member.rank == 0 ? Code::ok : Code::system);
    member.agent.set_away(false);
  });
  EXPECT_EQ(threads.boxes().sent_by(1), 1u);
}

TEST(Carry, is_of_no_further_use_where_no_letter_leaves) {
  CarryingThreads threads({0, 1, 1, 0});
  threads.boxes().cut();
  threads.run([&](CarryingMember member) {
    const CarriedBytes mine = doubles_of(member.rank, 5'000, 1);
    CarriedBytes one(mine.size()), other(mine.size());
    const auto first = member.begin(carried_call_of(3, 5'000, 0), mine.data(), one.data());
    member.meeting.arrive_and_wait();
    const Status status = member.wait(*first);
    EXPECT_EQ(status.code(), Code::system);
    EXPECT_THAT(std::string(status.text()), testing::HasSubstr("a rank of another host has refused"));
    auto another = std::make_shared<CarriedRequest>();
    another->call = carried_call_of(0, 0, 0);
    EXPECT_EQ(member.carry.begin(another, 0, "begin").code(), Code::system);
  });
  EXPECT_EQ(threads.open_extents(), 0);
}

// Rank 1, which comes last, has no more to do with the call; the program of rank 0 does something else.

}  // namespace
}  // namespace farsum
