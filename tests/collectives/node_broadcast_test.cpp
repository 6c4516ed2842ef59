// A broadcast on one node, whose root does not wait for those whom it tells.
#include "collectives/node_broadcast.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "failing_memory.hpp"
#include "group_of_threads.hpp"
#include "sim/seeds.hpp"
#include "test_length.hpp"

namespace farsum {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr std::size_t long_bytes = 100'000;  // four meetings

Status broadcast(Member member, std::uint32_t root, std::span<std::byte> buffer) {
  return member.reductions.broadcast(buffer, root, "broadcast");
}

Status reduce_one(Member member, std::uint32_t root, std::uint64_t mine, std::uint64_t& sum) {
  return member.run({.kind = GroupReduction::Kind::reduce,
                     .type = ops::ElementType::uint64,
                     .op = ops::Operator::sum,
                     .root = root,
                     .count = 1,
                     .mine = reinterpret_cast<const std::byte*>(&mine),
                     .result = reinterpret_cast<std::byte*>(&sum)});
}

// What a member is told at last that reduces to rank 0, or has OK: it may be a few calls ahead of who has seen it.
Status reduce_until_that_fails(Member member) {
  std::uint64_t sum = 0;
  Status status;
  for (int call = 0; call < 8 && status.is_ok(); ++call) status = reduce_one(member, 0, 1, sum);
  return status;
}

class BroadcastsOfANode : public testing::TestWithParam<std::tuple<std::uint32_t, bool>> {
 protected:
  static std::uint32_t ranks() { return std::get<0>(GetParam()); }
  static void run(const std::function<void(Member)>& body) {
    GroupOfThreads(Nodes(ranks(), 0), std::get<1>(GetParam())).run(body);
  }
};

INSTANTIATE_TEST_SUITE_P(Ranks, BroadcastsOfANode, testing::Combine(testing::Values(1U, 2U, 3U, 9U), testing::Bool()),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + (std::get<1>(test.param) ? "_crowded" : "");
                         });

TEST_P(BroadcastsOfANode, carry_any_number_of_bytes_from_any_rank) {
  const std::size_t slot = NodeRoundsBlock::slot_bytes(ranks());
  run([&](Member member) {
    std::uint64_t call = 0;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{41}, slot, slot + 1,
                                    std::size_t{32768}, std::size_t{32769}, long_bytes}) {
      for (std::uint32_t root = 0; root < ranks(); ++root) broadcast_and_compare(member, root, ++call, bytes);
      for (int again = 0; again < 3; ++again) broadcast_and_compare(member, 0, ++call, bytes);
    }
  });
}

// Who expects another length is told by name, be its own or the root's one that goes over in meetings, and alone.
TEST_P(BroadcastsOfANode, tell_who_expects_another_length_and_harm_no_other_call) {
  if (ranks() == 1) return;
  constexpr std::array<std::size_t, 5> lengths = {0, 8, 50, long_bytes, 2 * long_bytes};
  run([&](Member member) {
    std::uint64_t call = 0;
    for (const std::size_t right : lengths) {
      for (const std::size_t wrong : lengths) {
        if (right == wrong) continue;
        const std::uint32_t odd_one = ranks() - 1;
        if (member.rank != odd_one) {
          broadcast_and_compare(member, 0, ++call, right);
        } else {
          ++call;
          std::vector<std::byte> buffer(wrong, std::byte{77});
          const Status status = broadcast(member, 0, buffer);
          EXPECT_EQ(status.code(), Code::argument);
          EXPECT_THAT(status.text(), AllOf(HasSubstr("rank 0 of the group has called farsum_broadcast of " +
                                                     std::to_string(right) + " bytes from root 0"),
                                           HasSubstr("farsum_broadcast of " + std::to_string(wrong) + " bytes")));
          EXPECT_EQ(buffer, std::vector<std::byte>(wrong, std::byte{77}));
        }
        broadcast_and_compare(member, odd_one, ++call, right);
      }
    }
  });
}

TEST_P(BroadcastsOfANode, need_no_memory_once_they_have_begun) {
  run([&](Member member) {
    std::vector<std::byte> buffer(long_bytes);
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{200}, long_bytes}) {
      const FailingMemory none(0, FailingMemory::Fails::for_good);
      const Status status = broadcast(member, 0, std::span(buffer).first(bytes));
      const FailingMemory::Pause pause;
      ASSERT_TRUE(status.is_ok());
    }
  });
}

// One thread is both ranks.
TEST(NodeBroadcast, lets_its_root_go_two_calls_ahead_of_the_others_and_no_further) {
  GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([](Member root, Member other) {
    std::uint64_t call = 0;
    for (int turn = 0; turn < 2; ++turn) {
      broadcast_and_compare(root, 1, call + 1, 8);
      broadcast_and_compare(root, 1, call + 2, 100);
      broadcast_and_compare(other, 1, ++call, 8);
      broadcast_and_compare(other, 1, ++call, 100);
    }
    broadcast_and_compare(root, 1, 5, 8);
    broadcast_and_compare(root, 1, 6, 8);
    std::vector<std::byte> buffer(8);
    for (int third = 0; third < 2; ++third) EXPECT_EQ(broadcast(root, 1, buffer).code(), Code::peer_failed);
  });
}

// What a rank has left for its root lies where it leaves the next but one for all.
TEST(NodeBroadcast, goes_in_step_with_the_reduces_that_use_the_same_places) {
  GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([](Member leaf, Member root) {
    std::uint64_t sum = 0;
    EXPECT_TRUE(reduce_one(leaf, 0, 5, sum).is_ok());
    broadcast_and_compare(leaf, 1, 2, 8);
    std::vector<std::byte> buffer(8);
    EXPECT_TRUE(reduce_one(root, 0, 2, sum).is_ok());
    EXPECT_EQ(sum, 7);
    broadcast_and_compare(leaf, 1, 3, 8);
    broadcast_and_compare(root, 1, 2, 8);
    EXPECT_TRUE(reduce_one(leaf, 0, 5, sum).is_ok());
    EXPECT_EQ(broadcast(leaf, 1, buffer).code(), Code::peer_failed);
    broadcast_and_compare(root, 1, 3, 8);
  });
}

// The others begin when the root has returned twice, and go on when it has been ahead again.
// In full in make test-all: a hundred thousand calls, twice.
TEST(NodeBroadcast, of_a_fast_root_is_right_a_hundred_thousand_times) {
  const std::uint64_t calls = test::in_full_or(100'000, 10'000) / seed_share;
  for (const bool is_crowded : {false, true}) {
    std::atomic<std::uint64_t> returned = 0, entered = 0, wrong = 0;
    GroupOfThreads({0, 0}, is_crowded).run([&](Member member) {
      for (std::uint64_t call = 1; call <= calls; ++call) {
        if (member.rank == 0) {
          if (call % 1000 == 1)
            while (returned < call + 1) std::this_thread::yield();
          entered = call;
        }
        std::uint64_t told = member.rank == 1 ? call : 0;
        // It goes on where something is wrong, as the other waits for it.
        const Status status = broadcast(member, 1, std::as_writable_bytes(std::span(&told, 1)));
        if (member.rank == 1) returned = call;
        if (!status.is_ok() || told != call || call > entered + 2) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(NodeBroadcast, fails_at_a_rank_whose_root_is_dead_and_in_whatever_comes_then) {
  GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([](Member, Member other) {
    std::vector<std::byte> buffer(8, std::byte{77});
    std::uint64_t sum = 0;
    EXPECT_EQ(broadcast(other, 1, buffer).code(), Code::peer_failed);
    EXPECT_EQ(buffer, std::vector<std::byte>(8, std::byte{77}));
    EXPECT_EQ(broadcast(other, 0, buffer).code(), Code::peer_failed);
    EXPECT_EQ(reduce_one(other, 1, 1, sum).code(), Code::peer_failed);
  });
}

// Whom nobody tells anything, and who has nothing brought to its reduce, are both told: the one by name, the other too,
// or that the first has gone on.
TEST(NodeBroadcast, tells_of_a_rank_that_reduces_and_harms_no_other_call) {
  for (const std::uint32_t odd_one : {0U, 1U}) {
    GroupOfThreads(Nodes(2, 0)).run([&](Member member) {
      std::vector<std::byte> buffer(8, std::byte{77});
      std::uint64_t sum = 77;
      const bool is_odd = member.rank == odd_one;
      const Status status = is_odd ? reduce_one(member, odd_one, 5, sum) : broadcast(member, odd_one, buffer);
      EXPECT_EQ(status.code(), Code::argument);
      EXPECT_THAT(status.text(), AllOf(HasSubstr("of the group has called"), HasSubstr("farsum_reduce"),
                                       HasSubstr("farsum_broadcast")));
      EXPECT_EQ(sum, 77);
      EXPECT_EQ(buffer, std::vector<std::byte>(8, std::byte{77}));
      broadcast_and_compare(member, 0, 3, 8);
      EXPECT_TRUE(reduce_one(member, 1, 5, sum).is_ok());
      EXPECT_EQ(sum, member.rank == 1 ? 10 : 77);
    });
  }
}

// Rank 0 would take the bytes of the call before the barrier for those of the call behind it.
TEST(NodeBroadcast, sees_who_comes_to_a_barrier_and_a_broadcast_in_another_order) {
  for (const std::size_t bytes : {std::size_t{8}, long_bytes}) {
    GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
      std::vector<std::byte> buffer(bytes, std::byte{77});
      if (member.rank == 1) {
        EXPECT_TRUE(broadcast(member, 1, std::span(buffer).first(8)).is_ok());
      }
      // It fails where others have met, gone on and given up before this one looks.
      (void)member.team.barrier("barrier");
      if (member.rank != 1) {
        EXPECT_THAT(broadcast(member, 1, buffer).text(),
                    AnyOf(HasSubstr("rank 1 of the group has made other calls than rank"), HasSubstr("has failed")));
        EXPECT_EQ(buffer, std::vector<std::byte>(bytes, std::byte{77}));
      }
      EXPECT_THAT(reduce_until_that_fails(member).text(),
                  AnyOf(HasSubstr("has failed"), HasSubstr("has made other calls")));
    });
  }
}

// Rank 0 finds that rank 1 does not come to the meetings.
TEST(NodeBroadcast, ends_for_all_where_one_names_another_root_of_a_long_one) {
  constexpr std::array<const char*, 3> told = {"rank 1 of the group has called farsum_broadcast of 100000 bytes",
                                               "rank 2 of the group has called farsum_broadcast", "has failed"};
  GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
    std::vector<std::byte> buffer(long_bytes, std::byte{77});
    const Status status = broadcast(member, member.rank == 1 ? 2 : 0, buffer);
    EXPECT_THAT(status.text(), HasSubstr(told.at(member.rank)));
    EXPECT_FALSE(broadcast(member, 0, buffer).is_ok());
  });
}

// Rank 2 expects a long one of rank 0, but rank 0 has a short one, and waits for nobody.
TEST(NodeBroadcast, harms_no_other_call_where_the_root_that_one_names_expects_a_long_one_of_another) {
  GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
    std::vector<std::byte> buffer(member.rank == 2 ? long_bytes : 8, std::byte{77});
    EXPECT_EQ(broadcast(member, member.rank == 1 ? 2 : 0, buffer).is_ok(), member.rank == 0);
    broadcast_and_compare(member, 1, 2, 8);
    broadcast_and_compare(member, 0, 3, long_bytes);
  });
}

// Both would write to the place from which rank 2 takes what it is told.
TEST(NodeBroadcast, ends_for_all_where_two_take_themselves_for_the_root_of_a_long_one) {
  for (const std::size_t bytes : {NodeRoundsBlock::slot_bytes(3) + 1, long_bytes}) {
    GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
      const std::vector<std::byte> own(bytes, static_cast<std::byte>(member.rank));
      std::vector<std::byte> buffer = own;
      EXPECT_THAT(broadcast(member, member.rank == 1 ? 1 : 0, buffer).text(),
                  AnyOf(HasSubstr("cannot be used any further"), HasSubstr("has failed")));
      EXPECT_EQ(buffer, own);
      EXPECT_FALSE(broadcast(member, 0, buffer).is_ok());
    });
  }
}

// One thread is both ranks. Each hears of nobody, and does not wait for the other to read.
TEST(NodeBroadcast, lets_two_go_on_that_take_themselves_for_the_root_of_short_ones) {
  GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([](Member second, Member first) {
    for (std::uint64_t call = 1; call <= 5; ++call) {
      broadcast_and_compare(second, 1, call, 8);
      broadcast_and_compare(first, 0, call, 100);
    }
  });
}

// Rank 1 waits for all.
TEST(NodeBroadcast, ends_for_all_where_the_others_of_a_long_one_reduce) {
  for (const std::size_t bytes : {NodeRoundsBlock::slot_bytes(3) + 1, long_bytes}) {
    GroupOfThreads(Nodes(3, 0)).run([&](Member member) {
      std::vector<std::byte> buffer(bytes);
      std::uint64_t sum = 77;
      const Status status = member.rank == 1 ? broadcast(member, 1, buffer) : reduce_one(member, 0, 1, sum);
      if (member.rank != 2) {
        EXPECT_THAT(status.text(), AnyOf(HasSubstr("cannot be used any further"), HasSubstr("has failed")));
      }
      EXPECT_EQ(sum, 77);
      EXPECT_FALSE(reduce_until_that_fails(member).is_ok());
    });
  }
}

// Rank 0 says so itself, and not only the root that waits.
TEST(NodeBroadcast, is_seen_by_the_root_of_a_reduce_to_wait_in_vain_where_it_is_long) {
  const std::size_t slot = NodeRoundsBlock::slot_bytes(2);
  for (const std::size_t bytes : {slot, slot + 1}) {
    GroupOfThreads({0, 0}).be_one_after_the_other<DisappointedWaiter>([&](Member root, Member reducer) {
      std::vector<std::byte> buffer(bytes);
      EXPECT_EQ(broadcast(root, 1, buffer).is_ok(), bytes == slot);
      std::uint64_t sum = 77;
      const std::string told(reduce_one(reducer, 0, 5, sum).text());
      EXPECT_THAT(told, HasSubstr("rank 1 of the group has called farsum_broadcast"));
      EXPECT_EQ(told.find("cannot be used any further") != std::string::npos, bytes > slot) << told;
      EXPECT_EQ(broadcast(reducer, 0, std::span(buffer).first(8)).is_ok(), bytes == slot);
      EXPECT_EQ(sum, 77);
    });
  }
}

}  // namespace
}  // namespace farsum
