// Reductions of one number, for tests that are about who waits for whom and who tells whom.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "group_of_threads.hpp"

namespace farsum {

constexpr std::uint32_t most_nodes_at_once = 12;

inline GroupReduction one_sum(const std::uint64_t& mine, std::uint64_t& result) {
  return {.type = ops::ElementType::uint64,
          .op = ops::Operator::sum,
          .count = 1,
          .mine = reinterpret_cast<const std::byte*>(&mine),
          .result = reinterpret_cast<std::byte*>(&result)};
}

inline GroupReduction one_sum_to(std::uint32_t root, const std::uint64_t& mine, std::uint64_t& result) {
  GroupReduction reduction = one_sum(mine, result);
  reduction.kind = GroupReduction::Kind::reduce;
  reduction.root = root;
  return reduction;
}

// Of a leaf before its root.
struct Lead {
  std::uint64_t calls;
  std::uint64_t each, phase;  // in one call of so many the root waits
  std::uint64_t least;        // until its leaf has returned from so many calls behind that
  std::uint64_t most;
};

// Of two ranks, the second is the leaf.
inline void expect_lead(GroupOfThreads group, const Lead& lead) {
  std::atomic<std::uint64_t> returned = 0, entered = 0;
  group.run([&](Member member) {
    for (std::uint64_t call = 1; call <= lead.calls; ++call) {
      std::uint64_t result = 0;
      if (member.rank == 0) {
        if (call % lead.each == lead.phase)
          while (returned < call + lead.least) std::this_thread::yield();
        entered = call;
      }
      const std::uint64_t mine = call * 2 + member.rank;
      ASSERT_TRUE(member.run(one_sum_to(0, mine, result)).is_ok());
      if (member.rank == 0) {
        ASSERT_EQ(result, call * 4 + 1);
      } else {
        returned = call;
        ASSERT_LE(call, entered + lead.most);
      }
    }
  });
}

}  // namespace farsum
