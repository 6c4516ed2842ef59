// A rank that finds no memory in a call of all ranks leaves no other waiting, and all answer alike: on one node and
// over several. A sanitizer keeps allocations to itself, so there nothing fails.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <new>
#include <ostream>
#include <thread>
#include <vector>

#include "failing_operators.hpp"
#include "in_process_job.hpp"
#include "runtime/counter.hpp"

namespace farsum::test {
namespace {

// As the C interface has it.
template <class Call>
Code answer_of(Call&& call) {
  try {
    return call().code();
  } catch (const std::bad_alloc&) {
    return Code::no_memory;
  }
}

// Where the test's ranks meet beside the library.
class Onlookers {
 public:
  explicit Onlookers(std::uint32_t ranks) : met_(ranks), codes_(ranks) {}

  // Whether all have the same answer, and then whether some rank asks for another try.
  void compare(std::uint32_t rank, Code code, bool asks) {
    codes_[rank] = code;
    met_.arrive_and_wait();
    for (const Code other : codes_) ASSERT_EQ(static_cast<int>(other), static_cast<int>(codes_[0]));
    if (asks) asked_.store(true);
    met_.arrive_and_wait();
    again_[rank % again_.size()] = asked_.load();
    met_.arrive_and_wait();
    asked_.store(false);
    met_.arrive_and_wait();
  }
  bool goes_on(std::uint32_t rank) const { return again_[rank % again_.size()]; }
  void meet() { met_.arrive_and_wait(); }

 private:
  std::barrier<> met_;
  std::vector<Code> codes_;
  std::atomic<bool> asked_{false};
  std::array<bool, 16> again_{};
};

constexpr std::uint32_t every_rank = ~std::uint32_t{0};

struct Trial {
  const char* name;
  std::uint32_t starved;
  FailingMemory::Fails fails;
  std::vector<std::uint32_t> node_of;
};

void PrintTo(const Trial& trial, std::ostream* out) { *out << trial.name; }

// What all ranks call: `begin` with memory for all, `call` with less and less want of it, `end` where it went well.
struct Collective {
  const char* name;
  std::function<Status(InProcessRank)> begin, call, end;
  bool needs_memory = true;
};

// With none, one, two ... allocations granted to one rank, or to each, until that is enough.
void starve(InProcessRank me, const Trial& trial, Onlookers& onlookers, const Collective& tried) {
  int refusals = 0;
  for (std::size_t granted = 0; granted < 10'000; granted += 1 + granted / 20) {
    SCOPED_TRACE(testing::Message() << tried.name << " with " << granted << " allocations on rank " << me.rank);
    ASSERT_EQ(answer_of([&] { return tried.begin(me); }), Code::ok);
    bool has_failed = false;
    const Code code = [&] {
      if (trial.starved != every_rank && trial.starved != me.rank) return answer_of([&] { return tried.call(me); });
      const FailingMemory memory(granted, trial.fails);
      const Code answer = answer_of([&] { return tried.call(me); });
      has_failed = trial.fails == FailingMemory::Fails::once && FailingMemory::has_failed();
      return answer;
    }();
    onlookers.compare(me.rank, code, has_failed || code != Code::ok);
    if (testing::Test::HasFatalFailure()) return;
    if (code == Code::ok) {
      ASSERT_EQ(answer_of([&] { return tried.end(me); }), Code::ok);
    } else {
      ++refusals;
      ASSERT_EQ(static_cast<int>(code), static_cast<int>(Code::no_memory));
    }
    if (!onlookers.goes_on(me.rank)) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
      EXPECT_EQ(refusals > 0, tried.needs_memory);
#endif
      return;
    }
  }
  FAIL() << tried.name << " never went well";
}

Status nothing(InProcessRank) { return {}; }

// What this rank has of the window that is tried.
struct OfRank {
  WindowObject* window = nullptr;
  Group* group = nullptr;
  Mutexes* mutexes = nullptr;
  std::shared_ptr<Counter> counter;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(512);
};

template <class Value>
Status keep(Result<Value> made, Value& where) {
  if (!made.is_ok()) return made.take_status();
  where = std::move(made.value());
  return {};
}

std::vector<Collective> collectives(OfRank& own, std::uint32_t ranks) {
  const auto free_window = [&own](InProcessRank me) { return me.context.windows().free(own.window); };
  const auto allocate = [&own](InProcessRank me) {
    return keep(me.context.windows().allocate(me.context.world(), 4096, {}), own.window);
  };
  return {
      {"allocating a window", nothing, allocate, free_window},
      {"adopting memory", nothing,
       [&own](InProcessRank me) {
         return keep(me.context.windows().adopt(me.context.world(), own.words.data(), 4096, {}), own.window);
       },
       free_window},
      {"making a dynamic window", nothing,
       [&own](InProcessRank me) {
         return keep(me.context.windows().create_dynamic(me.context.world(), {}), own.window);
       },
       free_window},
      {"agreeing that a window goes", allocate,
       [&own](InProcessRank me) { return me.context.windows().prepare_free(*own.window); }, free_window, false},
      {"making a group", nothing,
       [&own, ranks](InProcessRank me) {
         std::array<std::uint32_t, 16> members{};
         for (std::uint32_t i = 0; i < ranks; ++i) members[i] = i ^ 1;
         return keep(me.context.groups().create(me.context.world(), std::span(members).first(ranks)), own.group);
       },
       [&own](InProcessRank me) { return me.context.groups().free(own.group); }},
      {"making mutexes", nothing,
       [&own](InProcessRank me) { return keep(me.context.mutexes().create(me.context.world(), 2), own.mutexes); },
       [&own](InProcessRank me) { return me.context.mutexes().free(own.mutexes); }},
      {"making a counter", nothing,
       [&own](InProcessRank me) {
         return keep(Counter::create(me.context.windows(), me.context.world(), Counter::Options{}), own.counter);
       },
       [&own](InProcessRank) { return own.counter->free(); }},
  };
}

class RanksWithoutMemory : public testing::TestWithParam<Trial> {};
using Fails = FailingMemory::Fails;
INSTANTIATE_TEST_SUITE_P(Each, RanksWithoutMemory,
                         testing::Values(Trial{"on_one_node", 1, Fails::for_good, {0, 0, 0, 0}},
                                         // So that the last to come, which cuts the window's extent, has none.
                                         Trial{"all_on_one_node", every_rank, Fails::for_good, {0, 0, 0, 0}},
                                         Trial{"of_another_node", 3, Fails::for_good, {0, 1, 0, 1}},
                                         Trial{"once_where_it_speaks_for_its_node", 1, Fails::once, {0, 1, 0, 1}}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(RanksWithoutMemory, leave_none_waiting_and_all_answer_alike) {
  const Trial& trial = GetParam();
  const auto ranks = static_cast<std::uint32_t>(trial.node_of.size());
  Onlookers onlookers(ranks);
  const auto body = [&](InProcessRank me) {
    OfRank own;
    for (const Collective& tried : collectives(own, ranks)) {
      starve(me, trial, onlookers, tried);
      if (testing::Test::HasFatalFailure()) return;
    }
  };
  Settings settled = on_path(PathChoice::automatic);
  // A thread that looks serves others' requests meanwhile, and ends the process where there is no memory for one, as
  // its agent would: here only agents serve, whose memory is not short.
  settled.spin_ns = 0;
  const std::vector<Settings> settings(ranks, settled);
  if (ranks == static_cast<std::uint32_t>(std::count(trial.node_of.begin(), trial.node_of.end(), 0u)))
    run_in_process(settings, body);
  else
    run_on_nodes(trial.node_of, settings, body);
}

// The whole begin of a job, with ever more memory for rank 1 of three: all ranks or none.
TEST(RanksWithoutMemoryAtTheBegin, leave_none_waiting_and_all_answer_alike) {
  constexpr std::uint32_t ranks = 3;
  Onlookers onlookers(ranks);
  bool has_begun = false;
  for (std::size_t granted = 0; !has_begun; granted += 1 + granted / 10) {
    ASSERT_LT(granted, 10'000u);
    const std::shared_ptr<NodeSegment> segment = segment_of(ranks);
    ASSERT_NE(segment, nullptr);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::unique_ptr<Context> context;
        Context::Options options;
        options.settings = on_path(PathChoice::automatic);
        Membership membership{rank, ranks, segment};
        const auto create = [&] { return keep(Context::create(std::move(membership), std::move(options)), context); };
        const Code code = [&] {
          if (rank != 1) return answer_of(create);
          const FailingMemory memory(granted, FailingMemory::Fails::for_good);
          return answer_of(create);
        }();
        onlookers.compare(rank, code, false);
        if (rank == 0) has_begun = code == Code::ok;
        if (context != nullptr) EXPECT_GOOD(context->finalize());
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (HasFailure()) return;
  }
}

// What rank 1 has open it cannot say, but that it has.
TEST(RanksWithoutMemoryAtTheEnd, are_waited_for_by_nobody) {
  run_in_process(std::vector<Settings>(3, on_path(PathChoice::automatic)), [](InProcessRank me) {
    Result<WindowObject*> made = me.context.windows().allocate(me.context.world(), 64, {});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    if (me.rank == 1) ASSERT_GOOD(made.value()->window->locks().lock(0, LockMode::exclusive));
    if (me.rank == 1) {
      const FailingMemory none(0, FailingMemory::Fails::for_good);
      [[maybe_unused]] const Code code = answer_of([&] { return me.context.finalize(); });
      const FailingMemory::Pause pause;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
      EXPECT_EQ(static_cast<int>(code), static_cast<int>(Code::no_memory));
#endif
    } else {
      EXPECT_EQ(static_cast<int>(me.context.finalize().code()), static_cast<int>(Code::pending));
    }
    if (me.rank == 1) ASSERT_GOOD(made.value()->window->locks().unlock(0));
  });
}

}  // namespace
}  // namespace farsum::test
