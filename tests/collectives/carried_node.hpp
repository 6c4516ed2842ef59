// Ranks of one node, all in one thread, and the memory in which they carry: for parts of a carry by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "collectives/carried_bells.hpp"
#include "collectives/carried_memory.hpp"
#include "collectives/carried_request.hpp"
#include "collectives/group_team.hpp"
#include "extents_of_test.hpp"
#include "mailboxes.hpp"
#include "sleeping_waiter.hpp"

namespace farsum {

// Remembers what was asked of it.
class NotingHelp final : public CarryHelp {
 public:
  explicit NotingHelp(ExtentsOfTest& extents) : extents_(extents) {}
  Status allocate(std::uint64_t bytes, CarriedExtent& extent) override {
    if (is_full) return {Code::no_memory, "the test has no more"};
    extent = extents_.cut(bytes);
    return {};
  }
  void release(CarriedExtent extent) override { extents_.give_back(extent); }
  std::byte* reach(CarriedExtent extent) override {
    return can_reach ? reinterpret_cast<std::byte*>(extent.offset) : nullptr;
  }
  void ring(std::uint32_t member_here) override { rung.push_back(member_here); }
  void hand_over() override { ++handed_over; }
  void count_under_way(int more) override {
    under_way += more;
    if (when_counting) when_counting();
  }

  bool is_full = false;
  bool can_reach = true;
  std::vector<std::uint32_t> rung;
  int handed_over = 0;
  int under_way = 0;
  std::function<void()> when_counting;

 private:
  ExtentsOfTest& extents_;
};

class CarriedNode {
 public:
  struct Member {
    Member(const GroupPlaces& places, std::uint32_t my_rank, Mailboxes& boxes, ExtentsOfTest& extents)
        : rank(my_rank),
          post(boxes, rank, waiter),
          team(places, rank, &post, waiter),
          help(extents),
          memory(team, rank, help),
          bells(memory, help, waiter) {}
    // The next call of this rank as it lies in its place.
    void leave(const std::shared_ptr<CarriedRequest>& request, std::uint64_t number) {
      request->number = number;
      request->said = said_of(request->call, 0);
      ASSERT_TRUE(memory.stage(*request, "begin").is_ok());
      memory.leave(*request);
    }

    std::uint32_t rank;
    SleepingWaiter waiter;
    Post post;
    GroupTeam team;
    NotingHelp help;
    CarriedMemory memory;
    CarriedBells bells;
  };

  // The ranks that are on node `mine`.
  CarriedNode(const std::vector<std::uint32_t>& node_of, std::uint32_t mine, Mailboxes& boxes) {
    const GroupPlaces places = places_of(node_of, mine);
    block_.resize(CarriedBlock::footprint(static_cast<std::uint32_t>(places.here.size())) / 8 + 32);
    const auto start = reinterpret_cast<std::uintptr_t>(block_.data());
    for (const std::uint32_t rank : places.here) {
      members.emplace_back(places, rank, boxes, extents);
      members.back().memory.open(reinterpret_cast<std::byte*>(round_up(start, 2 * cache_line_bytes)));
    }
  }

  ExtentsOfTest extents;
  std::deque<Member> members;

 private:
  std::vector<std::uint64_t> block_;
};

// Of so many words each, of which the first is what the rank says and each further one more by one.
class WordsOfRank {
 public:
  WordsOfRank(CarriedCall::Kind kind, std::size_t count, std::uint64_t first) : mine(count), result(count) {
    std::iota(mine.begin(), mine.end(), first);
    request->call.kind = kind;
    request->call.type = ops::ElementType::uint64;
    if (request->call.reduces()) request->call.op = ops::Operator::sum;
    request->call.count = count;
    request->mine = reinterpret_cast<const std::byte*>(mine.data());
    request->result = reinterpret_cast<std::byte*>(result.data());
  }

  std::vector<std::uint64_t> mine, result;
  std::shared_ptr<CarriedRequest> request = std::make_shared<CarriedRequest>();
};

inline std::uint64_t word_at(const std::byte* bytes, std::size_t index) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes + index * sizeof word, sizeof word);
  return word;
}

}  // namespace farsum
