// Contexts in one process: the same engine that ranks in processes use, where a sanitizer can watch all of it.
#include "runtime/context.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <random>

#include "in_process_job.hpp"
#include "runtime/counter.hpp"

namespace farsum::test {
namespace {

enum class Memory { allocated, promising_single_elements, adopted, dynamic };

struct Case {
  const char* name;
  std::vector<Settings> settings;
  std::vector<std::uint32_t> nodes;  // of the ranks; none: all are on one
};

std::vector<Case> cases() {
  const Settings automatic = on_path(PathChoice::automatic);
  const Settings owner = on_path(PathChoice::owner);
  const Settings aggregated = on_path(PathChoice::aggregated);
  const Settings caller = on_path(PathChoice::caller);
  return {
      {"automatic", {automatic, automatic, automatic}, {}},
      {"owner", {owner, owner, owner}, {}},
      {"aggregated", {aggregated, aggregated, aggregated}, {}},
      {"direct_owner_and_caller_by_element", {automatic, owner, on_path(PathChoice::caller, CallerLock::element)}, {}},
      {"aggregated_attach_and_caller_by_region",
       {aggregated, on_path(PathChoice::attach), on_path(PathChoice::caller, CallerLock::region)},
       {}},
      {"owner_over_nodes", {automatic, owner, aggregated}, {0, 1, 1}},
      {"caller_over_nodes", {caller, automatic, caller, owner}, {0, 0, 1, 2}},
  };
}

const char* name_of(Memory memory) {
  switch (memory) {
    case Memory::allocated:
      return "allocated";
    case Memory::promising_single_elements:
      return "single_element";
    case Memory::adopted:
      return "adopted";
    case Memory::dynamic:
      return "attached";
  }
  return "unknown";
}

using MixedCase = std::tuple<Case, Memory>;
class MixedUpdates : public testing::TestWithParam<MixedCase> {};
std::string mixed_name(const testing::TestParamInfo<MixedCase>& tested) {
  return std::string(std::get<0>(tested.param).name) + "_on_" + name_of(std::get<1>(tested.param)) + "_memory";
}
INSTANTIATE_TEST_SUITE_P(EachPath, MixedUpdates,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::Values(Memory::allocated, Memory::promising_single_elements,
                                                          Memory::adopted, Memory::dynamic)),
                         mixed_name);

// More than ride in a message, so that operands are pulled; across stripes.
constexpr std::size_t words_of_a_part = 6000;

TEST_P(MixedUpdates, of_single_and_many_elements_add_up_exactly) {
  const auto& [which, kind] = GetParam();
  const std::size_t ranks = which.settings.size();
  std::vector<std::vector<std::uint64_t>> blocks(ranks, std::vector<std::uint64_t>(words_of_a_part));
  std::vector<std::uint64_t> added(ranks * words_of_a_part, 0);
  std::mutex added_mutex;
  const auto update = [&, kind = kind](InProcessRank me) {
    WindowOptions options;
    if (kind == Memory::promising_single_elements) options.promises = promise_single_element;
    Group& world = me.context.world();
    const std::uint64_t bytes = words_of_a_part * 8;
    Result<WindowObject*> made = kind == Memory::adopted
                                     ? me.context.windows().adopt(world, blocks[me.rank].data(), bytes, options)
                                 : kind == Memory::dynamic ? me.context.windows().create_dynamic(world, options)
                                                           : me.context.windows().allocate(world, bytes, options);
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    Window& window = *made.value()->window;
    if (kind == Memory::dynamic) {
      // In two regions that touch.
      auto* const block = reinterpret_cast<std::byte*>(blocks[me.rank].data());
      ASSERT_GOOD(me.context.windows().attach(*made.value(), block, bytes / 2));
      ASSERT_GOOD(me.context.windows().attach(*made.value(), block + bytes / 2, bytes - bytes / 2));
      ASSERT_GOOD(world.team().barrier("test"));
    }
    ASSERT_GOOD(window.all_locks().lock());
    std::mt19937_64 random(me.rank);
    std::vector<std::uint64_t> mine(added.size(), 0);
    const std::vector<std::uint64_t> ones(words_of_a_part, 1);
    std::vector<std::uint64_t> old(words_of_a_part);
    for (int i = 0; i < 120; ++i) {
      const auto target = static_cast<std::uint32_t>(random() % ranks);
      const bool single = kind == Memory::promising_single_elements || random() % 3 != 0;
      const std::size_t first = single ? random() % 4 : random() % 100;
      const std::size_t count = single ? 1 : 1 + random() % (words_of_a_part - first);
      const std::uint64_t base = kind == Memory::dynamic ? reinterpret_cast<std::uintptr_t>(blocks[target].data()) : 0;
      const bool fetches = random() % 3 == 0;
      const Operation add =
          words_operation(fetches ? OperationKind::get_accumulate : OperationKind::accumulate, base + 8 * first, count,
                          ops::Operator::sum, ones.data(), fetches ? old.data() : nullptr);
      if (single && random() % 4 == 0) {
        // One by compare and swap.
        std::uint64_t seen = random() % 8;
        for (std::uint64_t found = ~seen; found != seen;) {
          const std::uint64_t next = seen + 1;
          Operation swap = words_operation(OperationKind::compare_and_swap, base + 8 * first, 1, ops::Operator::replace,
                                           &next, &found);
          swap.compare = reinterpret_cast<const std::byte*>(&seen);
          const std::uint64_t expected = seen;
          ASSERT_GOOD(window.operate(swap, target, Completion::blocking, nullptr));
          if (found == expected) break;
          seen = found;
          found = ~seen;
        }
      } else if (single && !fetches &&
                 window.hot().reduce(target, base + 8 * first, ones.data(), nullptr, 1, ops::ElementType::uint64,
                                     ops::Operator::sum)) {
        // Done on the hot path.
      } else {
        ASSERT_GOOD(window.operate(add, target, fetches ? Completion::blocking : Completion::implicit, nullptr));
      }
      for (std::size_t k = 0; k < count; ++k) ++mine[target * words_of_a_part + first + k];
    }
    ASSERT_GOOD(window.all_locks().unlock());
    {
      const std::lock_guard lock(added_mutex);
      for (std::size_t k = 0; k < mine.size(); ++k) added[k] += mine[k];
    }
    ASSERT_GOOD(world.team().barrier("test"));
    const auto* const held = kind == Memory::adopted || kind == Memory::dynamic
                                 ? blocks[me.rank].data()
                                 : reinterpret_cast<const std::uint64_t*>(made.value()->memory);
    for (std::size_t k = 0; k < words_of_a_part; ++k)
      ASSERT_EQ(held[k], added[me.rank * words_of_a_part + k]) << "word " << k;
    ASSERT_GOOD(me.context.windows().free(made.value()));
  };
  which.nodes.empty() ? run_in_process(which.settings, update) : run_on_nodes(which.nodes, which.settings, update);
}

std::vector<Settings> ranks_on(PathChoice path, std::size_t ranks) {
  return std::vector<Settings>(ranks, on_path(path));
}

class SynchronisationOn : public testing::TestWithParam<PathChoice> {};
INSTANTIATE_TEST_SUITE_P(EachPath, SynchronisationOn,
                         testing::Values(PathChoice::automatic, PathChoice::owner, PathChoice::aggregated,
                                         PathChoice::caller),
                         [](const auto& tested) { return std::string(farsum::name_of(tested.param)); });

TEST_P(SynchronisationOn, orders_plain_memory_between_origin_and_target) {
  // The targets read and write their own memory without atomics: only epochs stand between that and the origins' puts.
  run_in_process(ranks_on(GetParam(), 3), [](InProcessRank me) {
    Group& world = me.context.world();
    Result<WindowObject*> made = me.context.windows().allocate(world, 3 * 8, {});
    ASSERT_TRUE(made.is_ok());
    Window& window = *made.value()->window;
    auto* const words = reinterpret_cast<std::uint64_t*>(made.value()->memory);
    const auto put = [&](std::uint32_t target, std::uint64_t value) {
      return window.operate(words_operation(OperationKind::put, 8 * me.rank, 1, ops::Operator::replace, &value), target,
                            Completion::blocking, nullptr);
    };
    ASSERT_GOOD(window.fence(false, true));
    for (std::uint64_t round = 1; round <= 20; ++round) {
      for (std::uint32_t target = 0; target < 3; ++target) ASSERT_GOOD(put(target, round));
      ASSERT_GOOD(window.fence(true, true));
      for (int word = 0; word < 3; ++word) ASSERT_EQ(words[word], round);
      words[me.rank] = 0;
      ASSERT_GOOD(window.fence(true, round != 20));
    }
    const std::uint32_t next = (me.rank + 1) % 3;
    const std::uint32_t before = (me.rank + 2) % 3;
    for (std::uint64_t round = 1; round <= 20; ++round) {
      ASSERT_GOOD(window.posts().post(std::array{before}));
      ASSERT_GOOD(window.posts().start(std::array{next}));
      ASSERT_GOOD(put(next, round));
      ASSERT_GOOD(window.posts().complete());
      ASSERT_GOOD(window.posts().wait());
      ASSERT_EQ(words[before], round);
      words[before] = 0;
    }
    ASSERT_GOOD(me.context.windows().free(made.value()));
  });
}

TEST_P(SynchronisationOn, excludes_under_locks_and_mutexes) {
  std::uint64_t under_mutex = 0;
  run_in_process(ranks_on(GetParam(), 3), [&](InProcessRank me) {
    Group& world = me.context.world();
    Result<WindowObject*> made = me.context.windows().allocate(world, 8, {});
    Result<Mutexes*> mutexes = me.context.mutexes().create(world, 2);
    ASSERT_TRUE(made.is_ok() && mutexes.is_ok());
    Window& window = *made.value()->window;
    for (int i = 0; i < 60; ++i) {
      ASSERT_GOOD(window.locks().lock(1, LockMode::exclusive));
      std::uint64_t value = 0;
      ASSERT_GOOD(window.operate(words_operation(OperationKind::get, 0, 1, ops::Operator::replace, nullptr, &value), 1,
                                 Completion::blocking, nullptr));
      ++value;
      ASSERT_GOOD(window.operate(words_operation(OperationKind::put, 0, 1, ops::Operator::replace, &value), 1,
                                 Completion::blocking, nullptr));
      ASSERT_GOOD(window.locks().unlock(1));
      ASSERT_GOOD(mutexes.value()->lock(2, 1));
      ++under_mutex;
      ASSERT_GOOD(mutexes.value()->unlock(2, 1));
    }
    ASSERT_GOOD(world.team().barrier("test"));
    EXPECT_EQ(under_mutex, 180u);
    if (me.rank == 1) {
      EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(made.value()->memory), 180u);
    }
    ASSERT_GOOD(me.context.mutexes().free(mutexes.value()));
    ASSERT_GOOD(me.context.windows().free(made.value()));
  });
}

TEST_P(SynchronisationOn, tells_with_a_notification_that_the_data_is_there) {
  run_in_process(ranks_on(GetParam(), 2), [](InProcessRank me) {
    constexpr std::size_t count = 3000;
    Group& world = me.context.world();
    Result<WindowObject*> made = me.context.windows().allocate(world, count * 8, {});
    ASSERT_TRUE(made.is_ok());
    Window& window = *made.value()->window;
    const auto* const words = reinterpret_cast<const std::uint64_t*>(made.value()->memory);
    ASSERT_GOOD(window.all_locks().lock());
    // Ping and pong: each writes only after the other's data has come.
    for (std::uint64_t round = 1; round <= 20; ++round) {
      const std::vector<std::uint64_t> data(count, round);
      Operation put = words_operation(OperationKind::put, 0, count, ops::Operator::replace, data.data());
      put.type = ops::ElementType::byte;
      put.notify = true;
      put.notify_slot = 5;
      const auto await = [&] {
        ASSERT_GOOD(window.notifications().wait(5, round));
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(words[i], round);
      };
      if (me.rank == 1) await();
      ASSERT_GOOD(window.operate(put, 1 - me.rank, Completion::implicit, nullptr));
      if (me.rank == 0) await();
      ASSERT_GOOD(window.flush_one_target(1 - me.rank));
    }
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(me.context.windows().free(made.value()));
  });
}

class CountersOf : public testing::TestWithParam<CounterKind> {};
INSTANTIATE_TEST_SUITE_P(EachKind, CountersOf, testing::Values(CounterKind::strict, CounterKind::leased));

TEST_P(CountersOf, hand_out_each_ticket_once_to_several_threads_of_each_rank) {
  constexpr std::uint64_t limit = 600;
  std::vector<std::atomic<int>> times(limit);
  run_in_process(ranks_on(PathChoice::automatic, 3), [&](InProcessRank me) {
    Counter::Options options;
    options.kind = GetParam();
    options.limit = limit;
    Result<std::shared_ptr<Counter>> counter = Counter::create(me.context.windows(), me.context.world(), options);
    ASSERT_TRUE(counter.is_ok());
    const auto take = [&] {
      for (;;) {
        Result<std::uint64_t> ticket = counter.value()->next();
        ASSERT_TRUE(ticket.is_ok());
        if (ticket.value() >= limit) return;
        times[ticket.value()].fetch_add(1);
      }
    };
    std::thread second(take);
    take();
    second.join();
    ASSERT_GOOD(me.context.world().team().barrier("test"));
    ASSERT_GOOD(counter.value()->free());
  });
  for (std::uint64_t ticket = 0; ticket < limit; ++ticket) ASSERT_EQ(times[ticket].load(), 1) << "ticket " << ticket;
}

// A page that nobody may write, in which whatever is written is refused.
class ReadOnlyWord {
 public:
  ReadOnlyWord() : word_(static_cast<std::uint64_t*>(mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0))) {
    *word_ = 5;
  }
  ~ReadOnlyWord() { munmap(word_, page_bytes); }
  ReadOnlyWord(const ReadOnlyWord&) = delete;
  ReadOnlyWord& operator=(const ReadOnlyWord&) = delete;
  std::uint64_t* get() { return word_; }
  void close() { ASSERT_EQ(mprotect(word_, page_bytes, PROT_READ), 0); }

 private:
  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  std::uint64_t* word_;
};

TEST(ContextTest, writes_an_element_of_user_memory_only_where_it_changes) {
  ReadOnlyWord word;
  run_in_process(ranks_on(PathChoice::attach, 2), [&](InProcessRank me) {
    Group& world = me.context.world();
    Result<WindowObject*> made = me.context.windows().adopt(world, word.get(), me.rank == 0 ? 8 : 0, {});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    Window& window = *made.value()->window;
    ASSERT_GOOD(window.all_locks().lock());
    if (me.rank == 0) word.close();
    ASSERT_GOOD(world.team().barrier("test"));
    const auto swap = [&](std::uint64_t expected, std::uint64_t desired, std::uint64_t& found) {
      Operation operation =
          words_operation(OperationKind::compare_and_swap, 0, 1, ops::Operator::replace, &desired, &found);
      operation.compare = reinterpret_cast<const std::byte*>(&expected);
      return window.operate(operation, 0, Completion::blocking, nullptr);
    };
    const auto add = [&](std::uint64_t addend, std::uint64_t& found) {
      return window.operate(words_operation(OperationKind::get_accumulate, 0, 1, ops::Operator::sum, &addend, &found),
                            0, Completion::blocking, nullptr);
    };
    if (me.rank == 1) {
      std::uint64_t found = 0;
      EXPECT_GOOD(swap(6, 7, found));
      EXPECT_EQ(found, 5u);
      found = 0;
      EXPECT_GOOD(add(0, found));
      EXPECT_EQ(found, 5u);
      EXPECT_EQ(swap(5, 7, found).code(), Code::unreachable);
      EXPECT_EQ(add(1, found).code(), Code::unreachable);
    }
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(me.context.windows().free(made.value()));
  });
  EXPECT_EQ(*word.get(), 5u);
}

TEST(ContextTest, updates_an_element_of_user_memory_with_less_to_look_at_where_it_may) {
  using ops::ElementType;
  using ops::Operator;
  std::array<std::uint64_t, 3> words = {1, 2, 3};
  run_in_process(ranks_on(PathChoice::automatic, 2), [&](InProcessRank me) {
    Group& world = me.context.world();
    Result<WindowObject*> made = me.context.windows().adopt(world, words.data(), me.rank == 0 ? sizeof words : 0, {});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    Window& window = *made.value()->window;
    EXPECT_FALSE(window.may_update_by_copy(0, 0, ElementType::uint64, Operator::sum)) << "in no epoch";
    ASSERT_GOOD(window.all_locks().lock());
    if (me.rank == 1) {
      for (const std::uint64_t offset : {0, 8, 16})
        EXPECT_TRUE(window.may_update_by_copy(0, offset, ElementType::uint64, Operator::sum)) << offset;
      for (const std::uint64_t offset : {std::uint64_t{17}, std::uint64_t{24}, ~std::uint64_t{0}})
        EXPECT_FALSE(window.may_update_by_copy(0, offset, ElementType::uint64, Operator::sum)) << offset;
      EXPECT_FALSE(window.may_update_by_copy(1, 0, ElementType::uint64, Operator::sum)) << "an empty part";
      EXPECT_FALSE(window.may_update_by_copy(2, 0, ElementType::uint64, Operator::sum)) << "no rank";
      EXPECT_FALSE(window.may_update_by_copy(0, 0, ElementType::float64, Operator::bxor)) << "no such pair";
      EXPECT_FALSE(window.may_update_by_copy(0, 0, ElementType::uint64, Operator::scaled_sum)) << "alpha";
      const std::uint64_t ten = 10;
      const std::uint64_t expected = 13;
      std::uint64_t old = 0;
      const auto* const addend = reinterpret_cast<const std::byte*>(&ten);
      auto* const result = reinterpret_cast<std::byte*>(&old);
      EXPECT_GOOD(window.update_by_copy(0, 8, {ElementType::uint64, Operator::sum, addend}));
      EXPECT_GOOD(window.update_by_copy(0, 16, {ElementType::uint64, Operator::sum, addend, result}));
      EXPECT_EQ(old, 3u);
      const Window::ElementUpdate swap{ElementType::uint64, Operator::replace, addend, result,
                                       reinterpret_cast<const std::byte*>(&expected)};
      EXPECT_GOOD(window.update_by_copy(0, 0, swap));
      EXPECT_EQ(old, 1u);
      EXPECT_GOOD(window.update_by_copy(0, 16, swap));
      EXPECT_EQ(old, 13u);
      EXPECT_EQ(window.traffic_to(0).operations, 4u);
    }
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(me.context.windows().free(made.value()));
  });
  EXPECT_EQ(words, (std::array<std::uint64_t, 3>{1, 12, 10}));
}

TEST(ContextTest, gives_all_memory_of_windows_groups_and_mutexes_back) {
  run_in_process(ranks_on(PathChoice::automatic, 2), [](InProcessRank me) {
    Group& world = me.context.world();
    std::vector<std::uint64_t> block(512);
    const auto make_and_free = [&](int rounds) {
      for (int i = 0; i < rounds; ++i) {
        Result<WindowObject*> made = i % 3 == 0   ? me.context.windows().allocate(world, 100'000 * (me.rank + 1), {})
                                     : i % 3 == 1 ? me.context.windows().adopt(world, block.data(), 4096, {})
                                                  : me.context.windows().create_dynamic(world, {});
        ASSERT_TRUE(made.is_ok());
        ASSERT_GOOD(me.context.windows().free(made.value()));
      }
      Result<Group*> group = me.context.groups().create(world, std::array<std::uint32_t, 2>{1, 0});
      ASSERT_TRUE(group.is_ok());
      ASSERT_GOOD(me.context.groups().free(group.value()));
      Result<Mutexes*> mutexes = me.context.mutexes().create(world, 5);
      ASSERT_TRUE(mutexes.is_ok());
      ASSERT_GOOD(me.context.mutexes().free(mutexes.value()));
      ASSERT_GOOD(world.team().barrier("test"));
    };
    make_and_free(3);
    const std::uint64_t before = me.context.segment().heap().allocated_bytes();
    ASSERT_GOOD(world.team().barrier("test"));
    make_and_free(300);
    EXPECT_EQ(me.context.segment().heap().allocated_bytes(), before);
    ASSERT_GOOD(world.team().barrier("test"));
  });
}

TEST(ContextTest, lets_disjoint_groups_make_windows_at_once) {
  run_in_process(ranks_on(PathChoice::automatic, 4), [](InProcessRank me) {
    const std::vector<std::uint32_t> members =
        me.rank < 2 ? std::vector<std::uint32_t>{0, 1} : std::vector<std::uint32_t>{3, 2};
    for (int round = 0; round < 10; ++round) {
      Result<Group*> group = me.context.groups().create(me.context.world(), members);
      ASSERT_TRUE(group.is_ok());
      Result<WindowObject*> made = me.context.windows().allocate(*group.value(), 4096, {});
      ASSERT_TRUE(made.is_ok());
      Window& window = *made.value()->window;
      ASSERT_GOOD(window.fence(false, true));
      const std::uint64_t one = 1;
      for (std::uint32_t target = 0; target < 2; ++target) {
        ASSERT_GOOD(window.operate(words_operation(OperationKind::accumulate, 8, 1, ops::Operator::sum, &one), target,
                                   Completion::implicit, nullptr));
      }
      ASSERT_GOOD(window.fence(true, false));
      EXPECT_EQ(reinterpret_cast<const std::uint64_t*>(made.value()->memory)[1], 2u);
      ASSERT_GOOD(me.context.windows().free(made.value()));
      ASSERT_GOOD(me.context.groups().free(group.value()));
    }
  });
}

TEST(ContextTest, keeps_what_threads_gather_apart_by_operator) {
  run_in_process(ranks_on(PathChoice::aggregated, 2), [](InProcessRank me) {
    Result<WindowObject*> made = me.context.windows().allocate(me.context.world(), 64, {});
    ASSERT_TRUE(made.is_ok());
    Window& window = *made.value()->window;
    ASSERT_GOOD(window.all_locks().lock());
    const auto update = [&](std::uint64_t offset, ops::Operator op) {
      const std::uint64_t one = 1;
      for (int i = 0; i < 300; ++i) {
        ASSERT_GOOD(window.operate(words_operation(OperationKind::accumulate, offset, 1, op, &one), 0,
                                   Completion::implicit, nullptr));
      }
    };
    // 1 is the identity of prod and of band on ones, and counts in sum: a mix-up would show.
    std::thread multiplies([&] { update(8, ops::Operator::prod); });
    std::thread raises([&] { update(16, ops::Operator::max); });
    update(0, ops::Operator::sum);
    multiplies.join();
    raises.join();
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(me.context.world().team().barrier("test"));
    if (me.rank == 0) {
      const auto* const words = reinterpret_cast<const std::uint64_t*>(made.value()->memory);
      EXPECT_EQ(words[0], 600u);
      EXPECT_EQ(words[1], 0u);
      EXPECT_EQ(words[2], 1u);
    }
    ASSERT_GOOD(me.context.windows().free(made.value()));
  });
}

}  // namespace
}  // namespace farsum::test
