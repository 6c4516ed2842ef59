// Windows whose ranks are on several nodes: what each kind of epoch promises holds over the network as in shared
// memory, and between the two.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "measured_reductions.hpp"
#include "runtime/in_process_job.hpp"
#include "runtime/reduction_models.hpp"
#include "temporary_folder.hpp"

namespace farsum::test {
namespace {

const std::vector<std::uint32_t> two_and_two = {0, 1, 0, 1};

Window& allocate(InProcessRank self, std::uint64_t bytes, WindowObject*& object, const WindowOptions& options = {}) {
  Result<WindowObject*> made = self.context.windows().allocate(self.context.world(), bytes, options);
  if (!made.is_ok()) {
    ADD_FAILURE() << made.take_status().text();
    std::abort();
  }
  object = made.value();
  return *object->window;
}

void meet(InProcessRank self) { ASSERT_GOOD(self.context.world().team().barrier("test")); }

std::uint64_t word_at(Window& window, std::uint32_t target, std::uint64_t offset) {
  std::uint64_t value = 0;
  EXPECT_GOOD(window.operate(words_operation(OperationKind::get, offset, 1, ops::Operator::replace, nullptr, &value),
                             target, Completion::blocking, nullptr));
  return value;
}

void put_word(Window& window, std::uint32_t target, std::uint64_t offset, std::uint64_t value) {
  EXPECT_GOOD(window.operate(words_operation(OperationKind::put, offset, 1, ops::Operator::replace, &value), target,
                             Completion::blocking, nullptr));
}

// Over what takes short messages only a team's go in parts.
TEST(OverNodes, teams_meet_whatever_a_message_may_have) {
  for (const char* transports : {"tcp", "posix"}) {
    Settings settings;
    settings.net_tls = transports;
    run_on_nodes({0, 0, 1}, settings, [](InProcessRank self) {
      GroupTeam& team = self.context.world().team();
      constexpr std::size_t words = 12'500;
      std::vector<std::uint64_t> mine(words), all(3 * words);
      std::iota(mine.begin(), mine.end(), self.rank * words);
      ASSERT_GOOD(team.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), "test"));
      for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
      for (std::uint32_t root = 0; root < 3; ++root) {
        std::vector<std::uint64_t> told(words, self.rank == root ? root + 7 : 0);
        ASSERT_GOOD(team.broadcast(std::as_writable_bytes(std::span(told)), root, "test"));
        for (const std::uint64_t word : told) ASSERT_EQ(word, root + 7);
      }
    });
  }
}

// Half a unit in the last place of 1 is lost where it is added to 1 alone.
TEST(OverNodes, a_sum_by_ranks_has_the_bits_that_it_has_on_one_node) {
  Settings settings;
  settings.reduce_order = ReduceOrder::ranks;
  for (const std::vector<std::uint32_t>& node_of : {std::vector<std::uint32_t>(4, 0), {0, 1, 1, 0}, {0, 0, 0, 1}}) {
    run_on_nodes(node_of, settings, [](InProcessRank self) {
      const double mine = self.rank == 0 ? 1 : 0x1p-53;
      double sum = 0;
      ASSERT_GOOD(self.context.world().reductions().run({.type = ops::ElementType::float64,
                                                         .op = ops::Operator::sum,
                                                         .count = 1,
                                                         .mine = reinterpret_cast<const std::byte*>(&mine),
                                                         .result = reinterpret_cast<std::byte*>(&sum)},
                                                        "test"));
      ASSERT_EQ(sum, 1 + 0x1p-52);
    });
  }
}

// Of six ranks.
void sum_often(InProcessRank self) {
  for (std::uint64_t call = 1; call <= 20; ++call) {
    const std::uint64_t mine = self.rank * call;
    std::uint64_t sum = 0;
    ASSERT_GOOD(self.context.world().reductions().run({.type = ops::ElementType::uint64,
                                                       .op = ops::Operator::sum,
                                                       .count = 1,
                                                       .mine = reinterpret_cast<const std::byte*>(&mine),
                                                       .result = reinterpret_cast<std::byte*>(&sum)},
                                                      "test"));
    ASSERT_EQ(sum, 15 * call);
  }
}

// The other ranks' own settings would have them wait for letters that nobody sends.
TEST(OverNodes, reductions_go_in_a_tree_of_the_degree_that_rank_0_has) {
  const std::vector<std::uint32_t> node_of = {0, 1, 2, 3, 4, 4};
  for (const std::uint64_t degree : {0, 2, 3, 4, 8}) {
    std::vector<Settings> settings(node_of.size());
    for (std::size_t rank = 0; rank < settings.size(); ++rank) settings[rank].reduce_degree = 2 + rank;
    settings[0].reduce_degree = degree;
    run_on_nodes(node_of, settings, [&](InProcessRank self) {
      EXPECT_EQ(self.context.teams().reduce_degree(5), degree);
      sum_often(self);
    });
  }
}

// Others read no file, and take what they are told.
TEST(OverNodes, reductions_go_in_the_tree_that_the_model_of_rank_0_chooses) {
  const TemporaryFolder own;
  const std::string folder = own.path();
  ASSERT_GOOD(write_serial_reductions(folder, dear_messages(), "today"));
  const std::vector<std::uint32_t> node_of = {0, 1, 2, 3, 4, 4};
  for (const ReduceModel use : {ReduceModel::automatic, ReduceModel::off}) {
    std::vector<Settings> settings(node_of.size());
    for (Settings& of_rank : settings) of_rank.model = "none";
    settings[0].model = folder;
    settings[0].reduce_model = use;
    run_on_nodes(node_of, settings, [&](InProcessRank self) {
      EXPECT_EQ(self.context.teams().trees().has_table, use == ReduceModel::automatic ? 1U : 0U);
      EXPECT_EQ(self.context.teams().reduce_degree(5), use == ReduceModel::automatic ? 2U : 0U);
      EXPECT_EQ(self.context.teams().reduce_degree(2), 0U);
      sum_often(self);
    });
  }
}

// By the paper's parameters 5 nodes tell each other one number at once, and combine many by a binomial tree. Half a
// unit in the last place of 1 is lost where it is added to 1 alone.
TEST(OverNodes, what_is_left_of_a_long_vector_goes_in_the_tree_that_the_model_chooses_for_it) {
  const TemporaryFolder own;
  ASSERT_GOOD(write_serial_reductions(own.path(), measured_reductions(cost::paper_model()), "today"));
  for (const ReduceModel use : {ReduceModel::automatic, ReduceModel::off}) {
    Settings settings;
    settings.model = own.path();
    settings.reduce_model = use;
    run_on_nodes({0, 1, 2, 3, 4}, settings, [&](InProcessRank self) {
      const std::vector<double> mine(std::size_t{1} << 14, self.rank == 0 ? 1 : 0x1p-53);
      std::vector<double> sums(mine.size());
      ASSERT_GOOD(self.context.world().reductions().run({.type = ops::ElementType::float64,
                                                         .op = ops::Operator::sum,
                                                         .count = mine.size(),
                                                         .mine = reinterpret_cast<const std::byte*>(mine.data()),
                                                         .result = reinterpret_cast<std::byte*>(sums.data())},
                                                        "test"));
      EXPECT_EQ(sums.front(), 1);
      EXPECT_EQ(sums.back(), use == ReduceModel::automatic ? 1 + 0x1p-52 : 1);
    });
  }
}

class OverNodesOn : public testing::TestWithParam<PathChoice> {};
INSTANTIATE_TEST_SUITE_P(EachPath, OverNodesOn, testing::Values(PathChoice::automatic, PathChoice::caller),
                         [](const auto& tested) { return std::string(farsum::name_of(tested.param)); });

TEST_P(OverNodesOn, ranks_sum_into_each_other) {
  run_on_nodes(two_and_two, on_path(GetParam()), [](InProcessRank self) {
    WindowObject* object = nullptr;
    Window& window = allocate(self, 4096, object);
    const Region remote = window.regions_of(self.rank ^ 1).front();
    EXPECT_EQ(remote.bulk, GetParam() == PathChoice::caller ? Path::caller : Path::owner) << remote.reason;
    EXPECT_EQ(remote.atomic, remote.bulk);
    ASSERT_GOOD(window.all_locks().lock());
    const std::uint64_t one = 1;
    for (int i = 0; i < 100; ++i) {
      for (std::uint32_t target = 0; target < 4; ++target) {
        ASSERT_GOOD(window.operate(words_operation(OperationKind::accumulate, 8, 1, ops::Operator::sum, &one), target,
                                   Completion::implicit, nullptr));
      }
    }
    ASSERT_GOOD(window.flush_every_target());
    meet(self);
    for (std::uint32_t target = 0; target < 4; ++target) EXPECT_EQ(word_at(window, target, 8), 400u);
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

// Who waits for the heap looks up among the ranks of its node whether the holder lives.
TEST(OverNodes, memory_of_a_node_is_taken_in_the_name_of_a_rank_of_that_node) {
  run_on_nodes(two_and_two, Settings(), [](InProcessRank self) {
    NodeSegment& segment = self.context.segment();
    const std::unique_ptr<NodeMemory> memory = self.context.make_memory();
    std::atomic<bool> was_seen{false};
    std::thread taking([&] {
      while (!was_seen) {
        const Result<NodeMemory::Block> block = memory->allocate_aligned(1, 2 * page_bytes);
        if (block.is_ok()) memory->give_back(std::span(&block.value(), 1));
      }
    });
    std::uint32_t highest = 0;
    for (int seen = 0; seen < 1000;) {
      const std::uint32_t holder = segment.heap_lock().holder();
      highest = std::max(highest, holder);
      seen += holder != 0 ? 1 : 0;
    }
    was_seen = true;
    taking.join();
    EXPECT_LE(highest, segment.ranks());
  });
}

TEST(OverNodes, an_exclusive_lock_is_one_for_all) {
  run_on_nodes(two_and_two, Settings(), [](InProcessRank self) {
    WindowObject* object = nullptr;
    Window& window = allocate(self, 64, object);
    constexpr int times = 50;
    for (int i = 0; i < times; ++i) {
      for (const std::uint32_t target : {0u, 1u}) {
        ASSERT_GOOD(window.locks().lock(target, LockMode::exclusive));
        put_word(window, target, 0, word_at(window, target, 0) + 1);
        ASSERT_GOOD(window.locks().unlock(target));
      }
    }
    meet(self);
    for (const std::uint32_t target : {0u, 1u}) {
      ASSERT_GOOD(window.locks().lock(target, LockMode::shared));
      EXPECT_EQ(word_at(window, target, 0), 4u * times);
      ASSERT_GOOD(window.locks().unlock(target));
    }
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

// With two windows, and a mutex at each rank.
template <class Body>
void run_with_locks(const std::vector<std::uint32_t>& nodes, Body&& body) {
  run_on_nodes(nodes, Settings(), [&](InProcessRank self) {
    WindowObject *object = nullptr, *other_object = nullptr;
    Window& window = allocate(self, 64, object);
    Window& other = allocate(self, 64, other_object);
    Result<Mutexes*> made = self.context.mutexes().create(self.context.world(), 1);
    ASSERT_TRUE(made.is_ok());
    body(self, window, other, *made.value());
    ASSERT_GOOD(self.context.mutexes().free(made.value()));
    ASSERT_GOOD(self.context.windows().free(other_object));
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

// Locks that all take in one order: of ranks of other nodes and of their own, of two windows, and a mutex. Whoever is
// granted one that it has not got the one before for would wait for a rank that waits for it.
TEST(OverNodes, locks_that_all_take_in_one_order_are_all_granted) {
  run_with_locks({0, 1, 0, 1}, [](InProcessRank self, Window& window, Window& other, Mutexes& mutexes) {
    constexpr int times = 100;
    for (int i = 0; i < times; ++i) {
      ASSERT_GOOD(window.locks().lock(0, LockMode::exclusive));
      ASSERT_GOOD(window.locks().lock(1, LockMode::exclusive));
      ASSERT_GOOD(other.locks().lock(0, i % 2 == 0 ? LockMode::exclusive : LockMode::shared));
      ASSERT_GOOD(mutexes.lock(1, 0));
      for (const std::uint32_t target : {0u, 1u}) put_word(window, target, 0, word_at(window, target, 0) + 1);
      ASSERT_GOOD(mutexes.unlock(1, 0));
      ASSERT_GOOD(other.locks().unlock(0));
      ASSERT_GOOD(window.locks().unlock(1));
      ASSERT_GOOD(window.locks().unlock(0));
    }
    meet(self);
    for (const std::uint32_t target : {0u, 1u}) {
      ASSERT_GOOD(window.locks().lock(target, LockMode::shared));
      EXPECT_EQ(word_at(window, target, 0), 4u * times);
      ASSERT_GOOD(window.locks().unlock(target));
    }
  });
}

TEST(OverNodes, no_lock_is_taken_before_one_that_was_asked_for_is_held) {
  std::atomic<bool> is_given_back{false};
  std::atomic<Context*> waiting{nullptr};  // rank 0's, once it is about to take the next
  std::atomic<std::uint64_t> slept{0};     // how often it had by then
  run_with_locks({0, 1}, [&](InProcessRank self, Window& window, Window& other, Mutexes& mutexes) {
    enum class Next { lock, lock_all, mutex };
    for (const Next next : {Next::lock, Next::lock_all, Next::mutex}) {
      if (self.rank == 1) ASSERT_GOOD(window.locks().lock(1, LockMode::exclusive));
      meet(self);
      if (self.rank == 0) {
        ASSERT_GOOD(window.locks().lock(1, LockMode::exclusive));
        EXPECT_EQ(other.hot().lock(0, LockMode::exclusive).kind, Requested::Kind::refused)
            << "the short way does not wait";
        EXPECT_EQ(window.locks().lock(1, LockMode::exclusive).code(), Code::sync) << "nor what is refused";
        EXPECT_EQ(window.all_locks().lock().code(), Code::sync);
        is_given_back = false;
        slept = self.context.statistics().waits_slept;
        waiting = &self.context;
        ASSERT_GOOD(next == Next::lock       ? other.locks().lock(0, LockMode::exclusive)
                    : next == Next::lock_all ? other.all_locks().lock()
                                             : mutexes.lock(0, 0));
        EXPECT_TRUE(is_given_back);
        ASSERT_GOOD(next == Next::lock       ? other.locks().unlock(0)
                    : next == Next::lock_all ? other.all_locks().unlock()
                                             : mutexes.unlock(0, 0));
        ASSERT_GOOD(window.locks().unlock(1));
      } else {
        while (waiting == nullptr) std::this_thread::yield();
        // Where it does not wait for this lock, it does when it gives it back.
        while (waiting.load()->statistics().waits_slept == slept) std::this_thread::yield();
        waiting = nullptr;
        is_given_back = true;
        ASSERT_GOOD(window.locks().unlock(1));
      }
      meet(self);
    }
  });
}

// Though a thread has looked at what is under way just before it slept. Once it came back 40,000 times a second; it may
// for what comes, and each 0.1 s.
TEST(OverNodes, a_lock_that_is_waited_for_does_not_keep_the_agent_awake) {
  constexpr std::uint64_t few_wakeups = 100;
  constexpr std::uint64_t bytes = 4 << 20;
  constexpr auto for_a_while = std::chrono::milliseconds(200);
  run_on_nodes({0, 1}, Settings(), [&](InProcessRank self) {
    WindowObject *object = nullptr, *locked_object = nullptr;
    Window& window = allocate(self, bytes, object);
    Window& locked = allocate(self, 64, locked_object);
    ASSERT_GOOD(window.all_locks().lock());
    for (int i = 0; i < 3; ++i) {
      if (self.rank == 0) ASSERT_GOOD(locked.locks().lock(0, LockMode::exclusive));
      meet(self);
      if (self.rank == 0) {
        std::this_thread::sleep_for(for_a_while);  // what is counted is what happens while nothing does
        ASSERT_GOOD(locked.locks().unlock(0));
      } else {
        // More than leaves at once, so that the agent looks after it while this thread looks.
        std::vector<std::uint64_t> words(bytes / 8);
        ASSERT_GOOD(
            window.operate(words_operation(OperationKind::put, 0, words.size(), ops::Operator::replace, words.data()),
                           0, Completion::implicit, nullptr));
        ASSERT_GOOD(window.flush_one_target(0));
        const std::uint64_t before = self.context.statistics().agent_wakeups;
        ASSERT_GOOD(locked.locks().lock(0, LockMode::exclusive));
        put_word(locked, 0, 0, 1);
        EXPECT_LT(self.context.statistics().agent_wakeups, before + few_wakeups);
        ASSERT_GOOD(locked.locks().unlock(0));
      }
      meet(self);
    }
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(self.context.windows().free(locked_object));
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

// Nodes meet by their first ranks: the others have no need of each other.
TEST(OverNodes, a_rank_is_connected_when_it_is_first_asked_for_something) {
  // Whoever waits for long asks other nodes for the dead, but for this.
  Settings settings;
  settings.net_timeout_s = 0;
  run_on_nodes(two_and_two, settings, [](InProcessRank self) {
    const bool is_first_of_node = self.rank < 2;
    const auto network = [&] { return self.context.statistics().network; };
    WindowObject* object = nullptr;
    Window& window = allocate(self, 64, object);
    meet(self);
    EXPECT_EQ(network().peers, 2u);
    EXPECT_EQ(network().connections, is_first_of_node ? 2u : 0u) << "to ask, and to be asked";
    meet(self);
    const auto put = [&](std::uint32_t target) {
      ASSERT_GOOD(window.locks().lock(target, LockMode::exclusive));
      put_word(window, target, 0, 1);
      ASSERT_GOOD(window.locks().unlock(target));
    };
    if (self.rank == 2) put(3);
    meet(self);
    EXPECT_EQ(network().connections, is_first_of_node ? 2u : 1u) << "one has asked the other";
    EXPECT_EQ(network().endpoints, network().connections);
    meet(self);
    if (self.rank == 2) put(3);
    if (self.rank == 3) put(2);
    meet(self);
    EXPECT_EQ(network().connections, 2u);
    EXPECT_EQ(network().strangers + network().refused, 0u);
    meet(self);
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

// By the threads of a rank too, each with a mutex of its own: the words are the whole process's.
TEST(OverNodes, mutexes_are_one_for_all) {
  constexpr std::uint32_t targets = 2, threads = 2;
  constexpr std::uint64_t times = 40;
  std::array<std::array<std::uint64_t, threads>, targets> words{};
  run_on_nodes(two_and_two, Settings(), [&words](InProcessRank self) {
    Result<Mutexes*> made = self.context.mutexes().create(self.context.world(), threads + self.rank);
    ASSERT_TRUE(made.is_ok());
    Mutexes& mutexes = *made.value();
    EXPECT_EQ(mutexes.counts(), (std::vector<std::uint32_t>{2, 3, 4, 5}));
    const auto count = [&](std::uint32_t index) {
      for (std::uint64_t i = 0; i < times * targets; ++i) {
        const auto target = static_cast<std::uint32_t>(i % targets);
        ASSERT_GOOD(mutexes.lock(target, index));
        ++words[target][index];
        ASSERT_GOOD(mutexes.unlock(target, index));
      }
    };
    std::thread other([&] { count(1); });
    count(0);
    other.join();
    meet(self);
    for (const auto& of_target : words) {
      for (const std::uint64_t word : of_target) EXPECT_EQ(word, 4 * times);
    }
    ASSERT_GOOD(self.context.mutexes().free(&mutexes));
  });
}

// A thread of the owner attends all the while, or as long as it is not missed.
template <class Body>
void attend_during(Body&& body) {
  constexpr std::uint32_t others = 2;
  std::atomic<std::uint32_t> done{0};
  run_on_nodes({0, 1, 2}, Settings(), [&](InProcessRank self) {
    WindowObject* object = nullptr;
    Window& window = allocate(self, 64, object);
    meet(self);
    if (self.rank != 0) {
      body(window);
      ++done;
    }
    bool attends = false;
    while (self.rank == 0 && done < others)
      attends = attends ? self.context.attending().attend() : self.context.attending().begin().is_ok();
    if (self.rank == 0) self.context.attending().end();
    meet(self);
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

TEST(OverNodes, a_thread_that_attends_serves_operations) {
  std::atomic<std::uint64_t> sum{0};
  attend_during([&](Window& window) {
    const std::uint64_t one = 1;
    ASSERT_GOOD(window.all_locks().lock());
    for (int i = 0; i < 1000; ++i) {
      std::uint64_t before = 0;
      ASSERT_GOOD(
          window.operate(words_operation(OperationKind::get_accumulate, 0, 1, ops::Operator::sum, &one, &before), 0,
                         Completion::blocking, nullptr));
      sum += before;
    }
    ASSERT_GOOD(window.all_locks().unlock());
  });
  if (!testing::Test::IsSkipped()) {
    EXPECT_EQ(sum, 2000U * 1999U / 2);
  }
}

// Each lock is granted by the unlock of another rank of another node.
TEST(OverNodes, a_thread_that_attends_hands_locks_on) {
  attend_during([&](Window& window) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_GOOD(window.locks().lock(0, LockMode::exclusive));
      put_word(window, 0, 8, word_at(window, 0, 8) + 1);
      ASSERT_GOOD(window.locks().unlock(0));
    }
    ASSERT_GOOD(window.locks().lock(0, LockMode::shared));
    EXPECT_GE(word_at(window, 0, 8), 100U);
    ASSERT_GOOD(window.locks().unlock(0));
  });
}

TEST(OverNodes, an_agent_that_never_sleeps_is_not_stood_in_for) {
  Settings settings;
  settings.agent = AgentMode::dedicated;
  run_on_nodes({0, 1}, settings,
               [](InProcessRank self) { EXPECT_EQ(self.context.attending().begin().code(), Code::unsupported); });
}

// The short way of an update that nobody waits for does what the long way does, or leaves it alone.
TEST(OverNodes, updates_of_remote_elements_are_done_in_order_or_not_at_all) {
  constexpr std::uint64_t times = 1500;  // more than a message holds
  run_on_nodes({0, 1}, Settings(), [](InProcessRank self) {
    WindowObject* object = nullptr;
    Window& window = allocate(self, 64, object);
    const std::uint32_t other = 1 - self.rank;
    const std::uint64_t one = 1, ten = 10;
    const float half = 0.5F;
    const auto update = [&](std::uint32_t target, std::uint64_t offset, const void* element, ops::ElementType type,
                            ops::Operator op) { return window.update_remote(target, offset, element, type, op); };
    constexpr auto word = ops::ElementType::uint64;
    EXPECT_FALSE(update(other, 0, &one, word, ops::Operator::sum)) << "outside an epoch";
    ASSERT_GOOD(window.all_locks().lock());
    EXPECT_FALSE(update(self.rank, 0, &one, word, ops::Operator::sum)) << "of this node";
    EXPECT_FALSE(update(2, 0, &one, word, ops::Operator::sum)) << "of no rank";
    EXPECT_FALSE(update(other, 57, &one, word, ops::Operator::sum)) << "beyond the end";
    EXPECT_FALSE(update(other, ~std::uint64_t{0}, &one, word, ops::Operator::sum)) << "beyond the end";
    EXPECT_FALSE(update(other, 0, nullptr, word, ops::Operator::sum)) << "of nothing";
    EXPECT_FALSE(update(other, 0, &one, word, ops::Operator::no_op)) << "which does nothing";
    EXPECT_FALSE(update(other, 0, &half, ops::ElementType::float32, ops::Operator::bxor)) << "of no such pair";
    std::uint64_t joined = 0;
    std::vector<std::uint64_t> numbers(times);  // the long way may borrow them
    std::iota(numbers.begin(), numbers.end(), 0);
    for (const std::uint64_t& i : numbers) {
      const bool sums = i % 3 != 2;
      if (update(other, 8, sums ? &ten : &i, word, sums ? ops::Operator::sum : ops::Operator::replace)) {
        ++joined;
      } else {
        ASSERT_GOOD(
            window.operate(words_operation(OperationKind::accumulate, 8, 1,
                                           sums ? ops::Operator::sum : ops::Operator::replace, sums ? &ten : &i),
                           other, Completion::implicit, nullptr));
      }
    }
    EXPECT_GT(joined, 0u);
    EXPECT_EQ(word_at(window, other, 8), times - 1);
    ASSERT_GOOD(window.flush_every_target());
    meet(self);
    EXPECT_EQ(word_at(window, other, 8), times - 1);
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

TEST(OverNodes, fences_separate_what_ranks_put) {
  run_on_nodes({0, 1, 1}, Settings(), [](InProcessRank self) {
    WindowObject* object = nullptr;
    Window& window = allocate(self, 64, object);
    const auto* memory = reinterpret_cast<const std::uint64_t*>(object->memory);
    ASSERT_GOOD(window.fence(false, true));
    for (std::uint64_t round = 1; round <= 20; ++round) {
      const std::uint64_t mine = round * 10 + self.rank;
      ASSERT_GOOD(window.operate(words_operation(OperationKind::put, 0, 1, ops::Operator::replace, &mine),
                                 (self.rank + 1) % 3, Completion::implicit, nullptr));
      ASSERT_GOOD(window.fence(true, true));
      EXPECT_EQ(*memory, round * 10 + (self.rank + 2) % 3);
      ASSERT_GOOD(window.fence(true, true));
    }
    ASSERT_GOOD(window.fence(true, false));
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

TEST(OverNodes, posts_and_completes_reach_both_kinds_of_ranks) {
  run_on_nodes(two_and_two, Settings(), [](InProcessRank self) {
    WindowObject* object = nullptr;
    Window& window = allocate(self, 64, object);
    const auto* memory = reinterpret_cast<const std::uint64_t*>(object->memory);
    const std::vector<std::uint32_t> others = [&] {
      std::vector<std::uint32_t> list;
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        if (rank != self.rank) list.push_back(rank);
      }
      return list;
    }();
    for (std::uint64_t round = 1; round <= 20; ++round) {
      ASSERT_GOOD(window.posts().post(others));
      ASSERT_GOOD(window.posts().start(others));
      const std::uint64_t mine = round * 10 + self.rank;
      for (const std::uint32_t target : others) {
        ASSERT_GOOD(window.operate(words_operation(OperationKind::put, 8 * self.rank, 1, ops::Operator::replace, &mine),
                                   target, Completion::implicit, nullptr));
      }
      ASSERT_GOOD(window.posts().complete());
      ASSERT_GOOD(window.posts().wait());
      for (const std::uint32_t other : others) EXPECT_EQ(memory[other], round * 10 + other);
    }
    ASSERT_GOOD(self.context.windows().free(object));
  });
}

TEST_P(OverNodesOn, long_operations_arrive_whole) {
  run_on_nodes({0, 1}, on_path(GetParam()), [](InProcessRank self) {
    constexpr std::size_t words = 300'000;
    std::vector<std::uint64_t> memory(words), mine(words), back(words);
    Result<WindowObject*> made = self.context.windows().adopt(self.context.world(), memory.data(), words * 8, {});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    Window& window = *made.value()->window;
    for (std::size_t i = 0; i < words; ++i) mine[i] = i * (self.rank + 1);
    const std::uint32_t other = 1 - self.rank;
    ASSERT_GOOD(window.all_locks().lock());
    ASSERT_GOOD(window.operate(words_operation(OperationKind::put, 0, words, ops::Operator::replace, mine.data()),
                               other, Completion::implicit, nullptr));
    ASSERT_GOOD(window.operate(words_operation(OperationKind::accumulate, 0, words, ops::Operator::sum, mine.data()),
                               other, Completion::implicit, nullptr));
    ASSERT_GOOD(
        window.operate(words_operation(OperationKind::get, 0, words, ops::Operator::replace, nullptr, back.data()),
                       other, Completion::implicit, nullptr));
    ASSERT_GOOD(window.flush_every_target());
    for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(back[i], 2 * i * (self.rank + 1));
    ASSERT_GOOD(window.all_locks().unlock());
    ASSERT_GOOD(self.context.windows().free(made.value()));
  });
}

TEST_P(OverNodesOn, memory_that_is_attached_later_is_reached) {
  run_on_nodes({0, 1}, on_path(GetParam()), [](InProcessRank self) {
    Result<WindowObject*> made = self.context.windows().create_dynamic(self.context.world(), {});
    ASSERT_TRUE(made.is_ok()) << made.take_status().text();
    Window& window = *made.value()->window;
    std::vector<std::uint64_t> memory(8, self.rank + 1);
    ASSERT_GOOD(self.context.windows().attach(*made.value(), memory.data(), 64));
    const auto mine = reinterpret_cast<std::uintptr_t>(memory.data());
    std::array<std::uint64_t, 2> addresses{};
    ASSERT_GOOD(self.context.world().team().allgather(std::as_bytes(std::span(&mine, 1)),
                                                      std::as_writable_bytes(std::span(addresses)), "test"));
    const std::uint32_t other = 1 - self.rank;
    ASSERT_GOOD(window.all_locks().lock());
    EXPECT_EQ(word_at(window, other, addresses[other]), other + 1u);
    std::uint64_t value = 0;
    const std::uint64_t one = 1;
    ASSERT_GOOD(
        window.operate(words_operation(OperationKind::accumulate, addresses[other] + 56, 1, ops::Operator::sum, &one),
                       other, Completion::implicit, nullptr));
    EXPECT_EQ(word_at(window, other, addresses[other] + 56), other + 2u);
    const Status outside = window.operate(
        words_operation(OperationKind::get, addresses[other] + 64, 1, ops::Operator::replace, nullptr, &value), other,
        Completion::blocking, nullptr);
    EXPECT_EQ(outside.code(), Code::range) << outside.text();
    ASSERT_GOOD(window.all_locks().unlock());
    meet(self);
    ASSERT_GOOD(self.context.windows().detach(*made.value(), memory.data()));
    ASSERT_GOOD(self.context.windows().free(made.value()));
  });
}

TEST(OverNodes, groups_of_some_ranks_have_windows_of_their_own) {
  run_on_nodes(two_and_two, Settings(), [](InProcessRank self) {
    const std::vector<std::uint32_t> members =
        self.rank % 2 == 0 ? std::vector<std::uint32_t>{2, 0} : std::vector<std::uint32_t>{1, 3};
    const std::vector<std::uint32_t> across =
        self.rank < 2 ? std::vector<std::uint32_t>{1, 0} : std::vector<std::uint32_t>{3, 2};
    for (const auto& list : {members, across}) {
      Result<Group*> group = self.context.groups().create(self.context.world(), list);
      ASSERT_TRUE(group.is_ok()) << group.take_status().text();
      EXPECT_EQ(group.value()->places().is_one_node(), list == members);
      Result<WindowObject*> made = self.context.windows().allocate(*group.value(), 64, {});
      ASSERT_TRUE(made.is_ok()) << made.take_status().text();
      Window& window = *made.value()->window;
      ASSERT_GOOD(window.fence(false, true));
      put_word(window, 1 - group.value()->my_rank(), 0, self.rank + 7);
      ASSERT_GOOD(window.fence(true, false));
      EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(made.value()->memory), list[1 - group.value()->my_rank()] + 7u);
      ASSERT_GOOD(self.context.windows().free(made.value()));
      ASSERT_GOOD(self.context.groups().free(group.value()));
    }
  });
}

// What comes for a team that is not there any more, or not yet, would be dropped, and somebody would wait for ever.
// Takes seconds: teams by the hundred.
TEST(OverNodes, teams_come_and_go_while_letters_are_under_way) {
  constexpr std::uint32_t rounds = 300;
  run_on_nodes({0, 1, 2, 1}, Settings(), [](InProcessRank self) {
    for (std::uint32_t round = 0; round < rounds; ++round) {
      std::vector<std::uint32_t> list = {0, 1, 2, 3};
      std::rotate(list.begin(), list.begin() + round % 4, list.end());
      Result<Group*> group = self.context.groups().create(self.context.world(), list);
      ASSERT_TRUE(group.is_ok()) << group.take_status().text();
      GroupTeam& team = group.value()->team();
      for (std::uint32_t i = 0; i < round % 12; ++i) {
        std::uint32_t word = group.value()->my_rank() == round % 4 ? round + i : 0;
        ASSERT_GOOD(team.broadcast(std::as_writable_bytes(std::span(&word, 1)), round % 4, "test"));
        ASSERT_EQ(word, round + i);
      }
      Result<WindowObject*> made = self.context.windows().allocate(*group.value(), 64, {});
      ASSERT_TRUE(made.is_ok()) << made.take_status().text();
      ASSERT_GOOD(made.value()->window->fence(false, true));
      ASSERT_GOOD(made.value()->window->fence(true, false));
      ASSERT_GOOD(self.context.windows().free(made.value()));
      ASSERT_GOOD(self.context.groups().free(group.value()));
    }
    const LetterDesk& desk = self.context.letter_desk();
    EXPECT_EQ(desk.unknown(), 0u);
    EXPECT_EQ(desk.refused(), 0u);
    EXPECT_GT(desk.sent(), 0u);
  });
}

}  // namespace
}  // namespace farsum::test
