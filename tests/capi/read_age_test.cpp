// Reads of other nodes' memory that are answered from copies: that they are, and that no call that tells a rank of
// others leaves it with a copy from before. The copies are a day old at most, so that no clock ends them meanwhile.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "farsum_embed.h"
#include "rank_processes.hpp"
#include "read_age.hpp"
#include "several_nodes.hpp"

namespace farsum::test {
namespace {

constexpr int reader = 0;
constexpr int owner = 1;  // on the other node
constexpr int most_rounds = 10'000;

// Reads the first block until copies answer.
void warm(farsum_window window, int target = owner) {
  const std::uint64_t before = statistics().reads_answered;
  for (int round = 0; round < most_rounds && statistics().reads_answered == before; ++round)
    (void)read(window, target, static_cast<std::size_t>(round) % 16);
  ASSERT_GT(statistics().reads_answered, before) << "no read was answered from a copy";
}

// Two ranks on two nodes, with three windows over the same memory of each.
struct Nodes {
  int rank = 0;
  Gathering* everybody = nullptr;
  std::uint64_t* memory = nullptr;
  farsum_window reads{};  // under lock_all
  farsum_window words{};  // under lock_all
  farsum_window other{};  // outside any epoch
  farsum_mutex mutex{};
  farsum_counter counters[2]{};  // by home
  std::uint64_t value = 0;       // where results go
  farsum_request request{};

  void open(std::uint32_t read_age_ms) {
    void* made = nullptr;
    ASSERT_FINE(farsum_memory_allocate(8 * words_of_part, &made));
    memory = static_cast<std::uint64_t*>(made);
    std::fill_n(memory, words_of_part, 0);
    const farsum_window_options options = aged(read_age_ms);
    for (farsum_window* window : {&reads, &words, &other})
      ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 8 * words_of_part, &options, window));
    ASSERT_FINE(farsum_lock_all(reads));
    ASSERT_FINE(farsum_lock_all(words));
    ASSERT_FINE(farsum_mutex_create(farsum_world(), 1, &mutex));
    for (int home : {reader, owner}) {
      farsum_counter_options counter{};
      counter.struct_bytes = sizeof counter;
      counter.home = home;
      ASSERT_FINE(farsum_counter_create(farsum_world(), &counter, &counters[home]));
    }
  }
  void close() {
    for (farsum_counter& counter : counters) EXPECT_FINE(farsum_counter_free(&counter));
    EXPECT_FINE(farsum_mutex_free(&mutex));
    EXPECT_FINE(farsum_unlock_all(words));
    EXPECT_FINE(farsum_unlock_all(reads));
    for (farsum_window* window : {&reads, &words, &other}) EXPECT_FINE(farsum_window_free(window));
    EXPECT_FINE(farsum_memory_free(memory));
  }
  void meet() const { everybody->meet(); }
  // By plain stores, to the first block.
  void store(std::uint64_t stored) const {
    for (std::size_t word = 0; word < words_of_block; ++word)
      std::atomic_ref(memory[word]).store(stored, std::memory_order_release);
  }
};

void run_on_two_nodes(const std::function<void(Nodes&)>& body, std::uint32_t read_age_ms = a_day_ms,
                      const Variables& settings = {}) {
  std::vector<Variables> of_rank = {two_nodes[reader], two_nodes[owner]};
  for (Variables& of_one : of_rank) of_one.insert(settings.begin(), settings.end());
  run_embedded(
      of_rank,
      [&](int rank, Gathering& everybody) {
        Caller caller{&everybody, rank};
        const farsum_init_options options = options_of(caller);
        ASSERT_FINE(farsum_init(&options));
        Nodes nodes;
        nodes.rank = rank;
        nodes.everybody = &everybody;
        nodes.open(read_age_ms);
        if (!testing::Test::HasFatalFailure()) body(nodes);
        // Whoever has failed does not come to the collective calls: its end tells the others.
        if (testing::Test::HasFatalFailure()) _exit(1);
        nodes.close();
        ASSERT_FINE(farsum_finalize());
      },
      2);
}

// ---- That copies answer.

TEST(ReadAge, lets_copies_answer_without_messages_what_is_read_again_and_again) {
  run_on_two_nodes([](Nodes& nodes) {
    for (std::size_t word = 0; word < words_of_block; ++word) nodes.memory[word] = 1000 + word;
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (nodes.rank == reader) {
      warm(nodes.reads);
      const farsum_statistics before = statistics();
      for (std::size_t word = 20; word < words_of_block; word += 100)
        EXPECT_EQ(read(nodes.reads, owner, word), 1000 + word);
      const farsum_statistics after = statistics();
      EXPECT_EQ(after.messages_sent, before.messages_sent);
      EXPECT_EQ(after.reads_answered - before.reads_answered, (words_of_block - 20 + 99) / 100);
      EXPECT_EQ(after.blocks_fetched, before.blocks_fetched);
    }
    nodes.meet();
  });
}

TEST(ReadAge, lets_copies_answer_atomic_reads_and_requests) {
  run_on_two_nodes([](Nodes& nodes) {
    nodes.store(7);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (nodes.rank == reader) {
      const auto read_atomically = [&](std::size_t word) {
        EXPECT_FINE(
            farsum_get_accumulate(nodes.reads, owner, at(word), nullptr, &nodes.value, 1, FARSUM_UINT64, FARSUM_NO_OP));
        EXPECT_FINE(farsum_flush(nodes.reads, owner));
        return std::exchange(nodes.value, 0);
      };
      for (int round = 0; round < most_rounds && statistics().reads_answered == 0; ++round)
        EXPECT_EQ(read_atomically(1), 7u);
      const farsum_statistics before = statistics();
      EXPECT_EQ(read_atomically(100), 7u);
      farsum_operation get{};
      get.struct_bytes = sizeof get;
      get.kind = FARSUM_GET;
      get.completion = FARSUM_EXPLICIT;
      get.target = owner;
      get.offset = at(200);
      get.count = 8;
      get.result = &nodes.value;
      ASSERT_FINE(farsum_operate(nodes.reads, &get, &nodes.request));
      EXPECT_FINE(farsum_wait(&nodes.request));
      EXPECT_EQ(nodes.value, 7u);
      EXPECT_EQ(statistics().reads_answered - before.reads_answered, 2u);
      EXPECT_EQ(statistics().messages_sent, before.messages_sent);
    }
    nodes.meet();
  });
}

struct Never {
  const char* name;
  std::uint32_t read_age_ms;
  Variables settings;
};

class WindowsWithoutAge : public testing::TestWithParam<Never> {};

TEST_P(WindowsWithoutAge, read_what_is_there) {
  run_on_two_nodes(
      [](Nodes& nodes) {
        for (std::uint64_t stored = 1; stored < 20; ++stored) {
          if (nodes.rank == owner) nodes.store(stored);
          nodes.meet();
          if (nodes.rank == reader) {
            EXPECT_EQ(read(nodes.reads, owner, stored), stored);
          }
          nodes.meet();
        }
        EXPECT_EQ(statistics().reads_answered, 0u);
        EXPECT_EQ(statistics().blocks_fetched, 0u);
      },
      GetParam().read_age_ms, GetParam().settings);
}

INSTANTIATE_TEST_SUITE_P(
    ReadAge, WindowsWithoutAge,
    testing::Values(Never{"by_themselves", 0, {}}, Never{"as_they_say", FARSUM_READ_ANEW, {}},
                    Never{"as_they_say_whatever_is_set", FARSUM_READ_ANEW, {{"FARSUM_READ_AGE", "86400000"}}}),
    [](const testing::TestParamInfo<Never>& tested) { return tested.param.name; });

TEST(ReadAge, is_the_settings_where_a_window_says_none) {
  run_on_two_nodes(
      [](Nodes& nodes) {
        if (nodes.rank == reader) warm(nodes.reads);
        nodes.meet();
      },
      0, {{"FARSUM_READ_AGE", "86400000"}});
}

// ---- That a hearing ends them.

using Side = std::function<void(Nodes&)>;

// Both sides of a synchronisation, after the owner has stored something. The reader's follows the owner's, unless they
// are `together`; what is there before is done before the reader takes copies.
struct Means {
  std::string name;
  Side owners = nullptr;
  Side readers = nullptr;
  bool together = false;
  Side owners_before = nullptr;
  Side readers_before = nullptr;
  Side owners_after = nullptr;
  Side readers_after = nullptr;
};

void call(const Side& side, Nodes& nodes) {
  if (side) side(nodes);
}

Side both(farsum_status (*collective)(Nodes&)) {
  return [collective](Nodes& nodes) { EXPECT_FINE(collective(nodes)); };
}

Means collective(const std::string& name, farsum_status (*collective)(Nodes&)) {
  return {.name = name, .owners = both(collective), .readers = both(collective), .together = true};
}

farsum_operation sum_of(Nodes& nodes, int target, farsum_completion completion, farsum_op op) {
  static const std::uint64_t one = 1;
  farsum_operation sum{};
  sum.struct_bytes = sizeof sum;
  sum.kind = FARSUM_GET_ACCUMULATE;
  sum.completion = completion;
  sum.target = target;
  sum.offset = at(flag);
  sum.type = FARSUM_UINT64;
  sum.op = op;
  sum.count = 1;
  sum.origin = &one;
  sum.result = &nodes.value;
  return sum;
}

const std::uint64_t no_more = 0;

// The owner counts a word up, and the reader looks at it so, on whichever rank it is.
void add_atomics(std::vector<Means>& all, int target) {
  const std::string where = target == reader ? "_here" : "_there";
  const Side counts = [target](Nodes& nodes) {
    const std::uint64_t one = 1;
    EXPECT_FINE(farsum_fetch_op(nodes.words, target, at(flag), &one, &nodes.value, FARSUM_UINT64, FARSUM_SUM));
  };
  const auto add = [&](const std::string& name, const Side& looks) {
    all.push_back({.name = name + where, .owners = counts, .readers = [looks](Nodes& nodes) {
                     looks(nodes);
                     EXPECT_EQ(nodes.value, 1u);
                   }});
  };
  add("fetch_op_sum", [target](Nodes& nodes) {
    EXPECT_FINE(farsum_fetch_op(nodes.words, target, at(flag), &no_more, &nodes.value, FARSUM_UINT64, FARSUM_SUM));
  });
  add("fetch_op_no_op", [target](Nodes& nodes) {
    EXPECT_FINE(farsum_fetch_op(nodes.words, target, at(flag), &no_more, &nodes.value, FARSUM_UINT64, FARSUM_NO_OP));
  });
  add("fetch_op_max", [target](Nodes& nodes) {
    EXPECT_FINE(farsum_fetch_op(nodes.words, target, at(flag), &no_more, &nodes.value, FARSUM_UINT64, FARSUM_MAX));
  });
  add("compare_and_swap", [target](Nodes& nodes) {
    EXPECT_FINE(
        farsum_compare_and_swap(nodes.words, target, at(flag), &no_more, &no_more, &nodes.value, FARSUM_UINT64));
  });
  add("get_accumulate_sum", [target](Nodes& nodes) {
    EXPECT_FINE(
        farsum_get_accumulate(nodes.words, target, at(flag), &no_more, &nodes.value, 1, FARSUM_UINT64, FARSUM_SUM));
    EXPECT_FINE(farsum_flush_local(nodes.words, target));
  });
  add("blocking_no_op", [target](Nodes& nodes) {
    const farsum_operation look = sum_of(nodes, target, FARSUM_BLOCKING, FARSUM_NO_OP);
    EXPECT_FINE(farsum_operate(nodes.words, &look, nullptr));
  });
  add("blocking_sum", [target](Nodes& nodes) {
    const farsum_operation sum = sum_of(nodes, target, FARSUM_BLOCKING, FARSUM_SUM);
    EXPECT_FINE(farsum_operate(nodes.words, &sum, nullptr));
  });
  add("request_and_wait", [target](Nodes& nodes) {
    const farsum_operation sum = sum_of(nodes, target, FARSUM_EXPLICIT, FARSUM_SUM);
    EXPECT_FINE(farsum_operate(nodes.words, &sum, &nodes.request));
    EXPECT_FINE(farsum_wait(&nodes.request));
  });
  add("request_and_test", [target](Nodes& nodes) {
    const farsum_operation sum = sum_of(nodes, target, FARSUM_EXPLICIT, FARSUM_SUM);
    EXPECT_FINE(farsum_operate(nodes.words, &sum, &nodes.request));
    for (int done = 0; done == 0;) ASSERT_FINE(farsum_test(&nodes.request, &done));
  });
  all.push_back({.name = "flush_of_a_put" + where, .readers = [target](Nodes& nodes) {
                   EXPECT_FINE(farsum_put(nodes.words, target, at(flag), &no_more, sizeof no_more));
                   EXPECT_FINE(farsum_flush(nodes.words, target));
                 }});
  all.push_back({.name = "flush_of_an_accumulate_to_all" + where, .readers = [target](Nodes& nodes) {
                   EXPECT_FINE(
                       farsum_accumulate(nodes.words, target, at(flag), &no_more, 1, FARSUM_UINT64, FARSUM_SUM));
                   EXPECT_FINE(farsum_flush(nodes.words, FARSUM_ALL_RANKS));
                 }});
}

void add_collectives(std::vector<Means>& all) {
  all.push_back(collective("barrier", [](Nodes&) { return farsum_barrier(farsum_world()); }));
  all.push_back(collective("broadcast", [](Nodes& nodes) {
    return farsum_broadcast(farsum_world(), &nodes.value, sizeof nodes.value, owner);
  }));
  all.push_back(collective("allgather", [](Nodes& nodes) {
    std::uint64_t gathered[2];
    return farsum_allgather(farsum_world(), &nodes.value, gathered, sizeof nodes.value);
  }));
  all.push_back(collective("group_create", [](Nodes&) {
    const int ranks[] = {owner, reader};
    farsum_group group{};
    return farsum_group_create(farsum_world(), ranks, 2, &group);
  }));
  all.push_back(collective("window_allocate", [](Nodes&) {
    farsum_window window{};
    void* memory = nullptr;
    return farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window);
  }));
  all.push_back(collective("fence", [](Nodes& nodes) { return farsum_fence(nodes.other, 0); }));
  all.push_back(collective("last_fence", [](Nodes& nodes) {
    return farsum_fence(nodes.other, FARSUM_FENCE_NO_PRECEDE | FARSUM_FENCE_NO_SUCCEED);
  }));
  all.push_back(collective("counter_reset", [](Nodes& nodes) { return farsum_counter_reset(nodes.counters[owner]); }));
}

void lock_and_unlock(Nodes& nodes) {
  EXPECT_FINE(farsum_lock(nodes.other, owner, FARSUM_LOCK_EXCLUSIVE));
  EXPECT_FINE(farsum_unlock(nodes.other, owner));
}
void read_and_flush_other(Nodes& nodes) { EXPECT_EQ(read(nodes.other, owner, 9), 2u); }
void unlock(Nodes& nodes) { EXPECT_FINE(farsum_unlock(nodes.other, owner)); }
void complete(Nodes& nodes) { EXPECT_FINE(farsum_complete(nodes.other)); }
void wait_exposure(Nodes& nodes) { EXPECT_FINE(farsum_wait_exposure(nodes.other)); }
void post_to(Nodes& nodes, int rank) { EXPECT_FINE(farsum_post(nodes.other, &rank, 1)); }
void start_with(Nodes& nodes, int rank) { EXPECT_FINE(farsum_start(nodes.other, &rank, 1)); }

void add_locks(std::vector<Means>& all) {
  const Side lock_shared = [](Nodes& nodes) { EXPECT_FINE(farsum_lock(nodes.other, owner, FARSUM_LOCK_SHARED)); };
  const Side lock_exclusive = [](Nodes& nodes) { EXPECT_FINE(farsum_lock(nodes.other, owner, FARSUM_LOCK_EXCLUSIVE)); };
  all.push_back({.name = "lock", .owners = lock_and_unlock, .readers = lock_exclusive, .readers_after = unlock});
  all.push_back({.name = "operation_under_a_lock",
                 .owners = lock_and_unlock,
                 .readers =
                     [lock_shared](Nodes& nodes) {
                       lock_shared(nodes);
                       read_and_flush_other(nodes);
                     },
                 .readers_after = unlock});
  all.push_back({.name = "unlock", .readers = unlock, .readers_before = lock_shared});
  // Asked for before the copies were taken, and granted behind what is stored.
  all.push_back({.name = "lock_that_is_granted_late",
                 .owners = unlock,
                 .readers = read_and_flush_other,
                 .owners_before = lock_exclusive,
                 .readers_before = lock_shared,
                 .readers_after = unlock});
  all.push_back({.name = "lock_here",
                 .readers = [](Nodes& nodes) { EXPECT_FINE(farsum_lock(nodes.other, reader, FARSUM_LOCK_SHARED)); },
                 .readers_after = [](Nodes& nodes) { EXPECT_FINE(farsum_unlock(nodes.other, reader)); }});
  all.push_back({.name = "lock_all",
                 .owners = lock_and_unlock,
                 .readers = [](Nodes& nodes) { EXPECT_FINE(farsum_lock_all(nodes.other)); },
                 .readers_after = [](Nodes& nodes) { EXPECT_FINE(farsum_unlock_all(nodes.other)); }});
  all.push_back({.name = "unlock_all",
                 .readers = [](Nodes& nodes) { EXPECT_FINE(farsum_unlock_all(nodes.other)); },
                 .readers_before = [](Nodes& nodes) { EXPECT_FINE(farsum_lock_all(nodes.other)); }});
  for (const int home : {reader, owner}) {
    const std::string where = home == reader ? "_here" : "_there";
    all.push_back({.name = "mutex" + where,
                   .owners =
                       [home](Nodes& nodes) {
                         EXPECT_FINE(farsum_mutex_lock(nodes.mutex, home, 0));
                         EXPECT_FINE(farsum_mutex_unlock(nodes.mutex, home, 0));
                       },
                   .readers = [home](Nodes& nodes) { EXPECT_FINE(farsum_mutex_lock(nodes.mutex, home, 0)); },
                   .readers_after = [home](Nodes& nodes) { EXPECT_FINE(farsum_mutex_unlock(nodes.mutex, home, 0)); }});
    const Side next = [home](Nodes& nodes) { EXPECT_FINE(farsum_counter_next(nodes.counters[home], &nodes.value)); };
    all.push_back({.name = "counter" + where, .owners = next, .readers = next});
  }
}

void add_posts(std::vector<Means>& all) {
  all.push_back({.name = "start_after_a_post",
                 .owners = [](Nodes& nodes) { post_to(nodes, reader); },
                 .readers = [](Nodes& nodes) { start_with(nodes, owner); },
                 .owners_after = wait_exposure,
                 .readers_after = complete});
  all.push_back({.name = "operation_after_a_late_post",
                 .owners = [](Nodes& nodes) { post_to(nodes, reader); },
                 .readers = read_and_flush_other,
                 .readers_before = [](Nodes& nodes) { start_with(nodes, owner); },
                 .owners_after = wait_exposure,
                 .readers_after = complete});
  all.push_back({.name = "complete",
                 .readers = complete,
                 .owners_before = [](Nodes& nodes) { post_to(nodes, reader); },
                 .readers_before = [](Nodes& nodes) { start_with(nodes, owner); },
                 .owners_after = wait_exposure});
  all.push_back({.name = "wait_exposure",
                 .owners = complete,
                 .readers = wait_exposure,
                 .owners_before = [](Nodes& nodes) { start_with(nodes, reader); },
                 .readers_before = [](Nodes& nodes) { post_to(nodes, owner); }});
  all.push_back({.name = "test_exposure",
                 .owners = complete,
                 .readers =
                     [](Nodes& nodes) {
                       for (int done = 0; done == 0;) ASSERT_FINE(farsum_test_exposure(nodes.other, &done));
                     },
                 .owners_before = [](Nodes& nodes) { start_with(nodes, reader); },
                 .readers_before = [](Nodes& nodes) { post_to(nodes, owner); }});
}

void add_notifications(std::vector<Means>& all) {
  const Side notifies = [](Nodes& nodes) {
    EXPECT_FINE(farsum_put_notify(nodes.words, reader, at(flag), &no_more, sizeof no_more, 2));
    EXPECT_FINE(farsum_flush(nodes.words, reader));
  };
  all.push_back({.name = "notify_wait", .owners = notifies, .readers = [](Nodes& nodes) {
                   EXPECT_FINE(farsum_notify_wait(nodes.words, 2, 1));
                 }});
  all.push_back({.name = "notify_value", .owners = notifies, .readers = [](Nodes& nodes) {
                   EXPECT_FINE(farsum_notify_value(nodes.words, 2, &nodes.value));
                   EXPECT_EQ(nodes.value, 1u);
                 }});
  all.push_back({.name = "sync", .readers = [](Nodes& nodes) { EXPECT_FINE(farsum_sync(nodes.reads)); }});
  all.push_back({.name = "order", .readers = [](Nodes& nodes) { EXPECT_FINE(farsum_order(nodes.reads)); }});
  all.push_back({.name = "heard", .readers = [](Nodes&) { farsum_heard(); }});
}

std::vector<Means> all_means() {
  std::vector<Means> all;
  add_collectives(all);
  add_atomics(all, reader);
  add_atomics(all, owner);
  add_locks(all);
  add_posts(all);
  add_notifications(all);
  return all;
}

class HearingBy : public testing::TestWithParam<Means> {};

TEST_P(HearingBy, ends_what_copies_answer) {
  const Means& means = GetParam();
  run_on_two_nodes([&means](Nodes& nodes) {
    const bool reads = nodes.rank == reader;
    nodes.store(1);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (!reads) call(means.owners_before, nodes);
    nodes.meet();
    if (reads) call(means.readers_before, nodes);
    if (reads) warm(nodes.reads);
    nodes.meet();
    if (!reads) nodes.store(2);
    nodes.meet();
    // Else what follows would show nothing.
    if (reads) {
      ASSERT_EQ(read(nodes.reads, owner, 5), 1u) << "there was no copy any more";
    }
    nodes.meet();
    if (!reads) call(means.owners, nodes);
    if (!means.together) nodes.meet();
    if (reads) {
      call(means.readers, nodes);
      for (const std::size_t word : {std::size_t{5}, std::size_t{0}, words_of_block - 1})
        EXPECT_EQ(read(nodes.reads, owner, word), 2u) << "word " << word;
      call(means.readers_after, nodes);
    }
    nodes.meet();
    if (!reads) call(means.owners_after, nodes);
  });
}

INSTANTIATE_TEST_SUITE_P(ReadAge, HearingBy, testing::ValuesIn(all_means()),
                         [](const testing::TestParamInfo<Means>& tested) { return tested.param.name; });

// ---- Own changes.

struct Change {
  const char* name;
  void (*make)(farsum_window window);  // each word of the first eight of the block grows to 5, or stays above
};

const std::array<std::uint64_t, 8> fives = {5, 5, 5, 5, 5, 5, 5, 5};

farsum_operation of_fives(farsum_kind kind) {
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.target = owner;
  operation.origin = &fives;
  return operation;
}

const Change all_changes[] = {
    {"put",
     [](farsum_window window) {
       for (std::size_t word = 0; word < 8; ++word) EXPECT_FINE(farsum_put(window, owner, at(word), &fives, 8));
     }},
    {"long_put",
     [](farsum_window window) {
       static const std::vector<std::uint64_t> many(words_of_part, 5);
       EXPECT_FINE(farsum_put(window, owner, 0, many.data(), 8 * flag));
     }},
    {"accumulate_of_an_element",
     [](farsum_window window) {
       for (std::size_t word = 0; word < 8; ++word)
         EXPECT_FINE(farsum_accumulate(window, owner, at(word), &fives, 1, FARSUM_UINT64, FARSUM_MAX));
     }},
    {"accumulate_of_many",
     [](farsum_window window) {
       EXPECT_FINE(farsum_accumulate(window, owner, 0, &fives, 8, FARSUM_UINT64, FARSUM_MAX));
     }},
    {"get_accumulate",
     [](farsum_window window) {
       static std::array<std::uint64_t, 8> before;
       EXPECT_FINE(farsum_get_accumulate(window, owner, 0, &fives, &before, 8, FARSUM_UINT64, FARSUM_REPLACE));
     }},
    {"fetch_op",
     [](farsum_window window) {
       std::uint64_t before = 0;
       for (std::size_t word = 0; word < 8; ++word)
         EXPECT_FINE(farsum_fetch_op(window, owner, at(word), &fives, &before, FARSUM_UINT64, FARSUM_MAX));
     }},
    {"compare_and_swap",
     [](farsum_window window) {
       const std::uint64_t expected = 1;
       std::uint64_t before = 0;
       for (std::size_t word = 0; word < 8; ++word)
         EXPECT_FINE(farsum_compare_and_swap(window, owner, at(word), &expected, &fives, &before, FARSUM_UINT64));
     }},
    {"put_notify",
     [](farsum_window window) { EXPECT_FINE(farsum_put_notify(window, owner, 0, &fives, sizeof fives, 0)); }},
    {"put_whose_operator_means_nothing",
     [](farsum_window window) {
       farsum_operation put = of_fives(FARSUM_PUT);
       put.type = FARSUM_UINT64;
       put.op = FARSUM_NO_OP;
       put.count = 8;
       EXPECT_FINE(farsum_operate(window, &put, nullptr));
     }},
    {"scattered_accumulate",
     [](farsum_window window) {
       const std::int64_t places[] = {56, 0, 8, 48, 16, 40, 24, 32};
       farsum_layout layout{};
       layout.kind = FARSUM_INDEXED;
       layout.bytes = 8;
       layout.pieces = 8;
       layout.offsets = places;
       farsum_operation scatter = of_fives(FARSUM_ACCUMULATE);
       scatter.type = FARSUM_UINT64;
       scatter.op = FARSUM_MAX;
       scatter.target_layout = &layout;
       EXPECT_FINE(farsum_operate(window, &scatter, nullptr));
     }},
    {"put_by_request",
     [](farsum_window window) {
       farsum_operation put = of_fives(FARSUM_PUT);
       put.completion = FARSUM_EXPLICIT;
       put.count = sizeof fives;
       farsum_request request{};
       EXPECT_FINE(farsum_operate(window, &put, &request));
       EXPECT_FINE(farsum_wait(&request));
     }},
};

class OwnChangesBy : public testing::TestWithParam<Change> {
 protected:
  // Warm, changed through one window, and read through `read_through`.
  static void run(bool at_once, const std::function<farsum_window(Nodes&)>& change_through,
                  const std::function<farsum_window(Nodes&)>& read_through) {
    run_on_two_nodes([&](Nodes& nodes) {
      nodes.store(1);
      ASSERT_FINE(farsum_barrier(farsum_world()));
      if (nodes.rank == reader) {
        const farsum_window window = read_through(nodes);
        warm(window);
        if (testing::Test::HasFatalFailure()) return;
        GetParam().make(change_through(nodes));
        if (!at_once) EXPECT_FINE(farsum_flush(change_through(nodes), owner));
        std::array<std::uint64_t, 8> found{};
        for (std::size_t word = 0; word < 8; ++word) EXPECT_FINE(farsum_get(window, owner, at(word), &found[word], 8));
        EXPECT_FINE(farsum_flush(window, owner));
        EXPECT_EQ(found, fives);
        for (std::size_t word = 0; word < 8; ++word) EXPECT_EQ(read(window, owner, word), 5u) << "word " << word;
        EXPECT_FINE(farsum_flush(change_through(nodes), owner));
      }
      nodes.meet();
    });
  }
};

farsum_window through_reads(Nodes& nodes) { return nodes.reads; }
farsum_window through_words(Nodes& nodes) { return nodes.words; }

TEST_P(OwnChangesBy, are_read_at_once) { run(true, through_reads, through_reads); }
TEST_P(OwnChangesBy, are_read_after_a_flush) { run(false, through_reads, through_reads); }
TEST_P(OwnChangesBy, are_read_through_another_window_after_a_flush) { run(false, through_words, through_reads); }

INSTANTIATE_TEST_SUITE_P(ReadAge, OwnChangesBy, testing::ValuesIn(all_changes),
                         [](const testing::TestParamInfo<Change>& tested) { return tested.param.name; });

// The first flush is of one target, and tells nothing of what is under way to the other.
TEST(ReadAge, ends_with_the_flush_of_each_target_that_was_changed) {
  run_on_two_nodes([](Nodes& nodes) {
    nodes.store(1);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (nodes.rank == reader) {
      const std::uint64_t two = 2;
      EXPECT_FINE(farsum_put(nodes.words, owner, at(flag), &two, sizeof two));
      EXPECT_FINE(farsum_put(nodes.words, reader, at(flag), &two, sizeof two));
      EXPECT_FINE(farsum_flush(nodes.words, reader));
      warm(nodes.reads);
    }
    nodes.meet();
    if (nodes.rank == owner) nodes.store(2);
    nodes.meet();
    if (nodes.rank == reader) {
      ASSERT_EQ(read(nodes.reads, owner, 5), 1u) << "there was no copy any more";
      EXPECT_FINE(farsum_flush(nodes.words, owner));
      EXPECT_EQ(read(nodes.reads, owner, 5), 2u);
    }
    nodes.meet();
  });
}

// Reads change nothing, whoever is asked.
TEST(ReadAge, outlasts_flushes_of_reads_of_the_own_node) {
  run_on_two_nodes([](Nodes& nodes) {
    if (nodes.rank == reader) {
      warm(nodes.reads);
      const std::uint64_t before = statistics().reads_answered;
      for (std::size_t word = 0; word < 10; ++word) {
        (void)read(nodes.reads, reader, word);
        (void)read(nodes.reads, owner, word);
      }
      EXPECT_EQ(statistics().reads_answered - before, 10u);
    }
    nodes.meet();
  });
}

// Reads that use up what the target has granted, a little more in each round, until a block finds no room behind them.
// What follows it is a lock, which has to wait for others' sake where an operation wants room.
TEST(ReadAge, lets_locks_through_after_a_block_that_found_no_room) {
  run_on_two_nodes([](Nodes& nodes) {
    constexpr std::size_t most_long_reads = 150;
    constexpr std::size_t long_words = 8'192 / 8;
    if (nodes.rank == reader) {
      std::vector<std::uint64_t> found(long_words);
      for (std::size_t count = 0; count < most_long_reads; ++count) {
        (void)read(nodes.reads, owner, 0);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_FINE(farsum_get(nodes.reads, owner, at(words_of_block), found.data(), 8 * long_words));
        (void)read(nodes.reads, owner, 8);
        lock_and_unlock(nodes);
      }
      EXPECT_GT(statistics().blocks_fetched, 0u);
    }
    nodes.meet();
  });
}

// ---- The end.

TEST(ReadAge, leaves_nothing_under_way_when_a_window_is_freed) {
  run_on_two_nodes([](Nodes& nodes) {
    const farsum_window_options options = aged();
    for (int round = 0; round < 30; ++round) {
      farsum_window window{};
      void* memory = nullptr;
      ASSERT_FINE(farsum_window_allocate(farsum_world(), 8 * words_of_part, &options, &memory, &window));
      ASSERT_FINE(farsum_fence(window, 0));
      std::array<std::uint64_t, 3> found{1, 1, 1};
      const int target = nodes.rank == reader ? owner : reader;
      ASSERT_FINE(farsum_get(window, target, 0, &found[0], 8));
      ASSERT_FINE(farsum_flush(window, target));
      for (std::size_t block = 0; block < 3; ++block)
        ASSERT_FINE(farsum_get(window, target, at(block * words_of_block), &found[block], 8));
      ASSERT_FINE(farsum_window_free(&window));
      EXPECT_EQ(found, (std::array<std::uint64_t, 3>{}));
    }
    EXPECT_GT(statistics().blocks_fetched, 0u);
  });
}

}  // namespace
}  // namespace farsum::test
