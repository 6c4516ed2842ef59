// Contexts that follow one another, groups, windows that come and go, what memory limits do, and forked children.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "farsum_embed.h"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

std::size_t maps_of_this_process() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  std::size_t count = 0;
  while (std::getline(maps, line)) ++count;
  return count;
}

// A window, one update by everybody, and its total.
void use_a_window(farsum_group group) {
  int size = 0, rank = 0;
  ASSERT_FINE(farsum_size(group, &size));
  ASSERT_FINE(farsum_rank(group, &rank));
  void* memory = nullptr;
  farsum_window window{};
  ASSERT_FINE(farsum_window_allocate(group, 64, nullptr, &memory, &window));
  ASSERT_FINE(farsum_fence(window, FARSUM_FENCE_NO_PRECEDE));
  const std::uint64_t one = 1;
  for (int target = 0; target < size; ++target)
    ASSERT_FINE(farsum_accumulate(window, target, 8, &one, 1, FARSUM_UINT64, FARSUM_SUM));
  ASSERT_FINE(farsum_fence(window, FARSUM_FENCE_NO_SUCCEED));
  EXPECT_EQ(static_cast<const std::uint64_t*>(memory)[1], static_cast<std::uint64_t>(size));
  ASSERT_FINE(farsum_window_free(&window));
}

TEST(Contexts, may_follow_one_another_fifty_times_in_a_job) {
  Job job;
  job.ranks = 3;
  job.starts = false;
  run_ranks(job, [](int) {
    std::size_t maps_before = 0;
    for (int round = 0; round < 50; ++round) {
      ASSERT_FINE(farsum_init(nullptr));
      use_a_window(farsum_world());
      ASSERT_FINE(farsum_finalize());
      if (round == 10) maps_before = maps_of_this_process();
    }
    EXPECT_LE(maps_of_this_process(), maps_before + 16);
  });
}

TEST(Contexts, may_follow_one_another_fifty_times_without_a_launcher) {
  Job job;
  job.ranks = 1;
  job.starts = false;
  run_ranks(job, [](int) {
    for (const char* name : {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD"}) unsetenv(name);
    for (int round = 0; round < 50; ++round) {
      ASSERT_FINE(farsum_init(nullptr));
      use_a_window(farsum_world());
      ASSERT_FINE(farsum_finalize());
    }
  });
}

// An allgather over sockets to rank 0, as a caller might bring.
struct Sockets {
  int rank = 0;
  int size = 0;
  std::vector<std::array<int, 2>> pairs;  // [rank]: ends of rank 0 and of that rank
};

int gather_over_sockets(const void* mine, void* all, std::size_t bytes, void* user) {
  const auto& sockets = *static_cast<const Sockets*>(user);
  const std::size_t total = bytes * static_cast<std::size_t>(sockets.size);
  if (sockets.rank != 0) {
    const int fd = sockets.pairs[static_cast<std::size_t>(sockets.rank)][1];
    return send(fd, mine, bytes, 0) == static_cast<ssize_t>(bytes) &&
                   recv(fd, all, total, MSG_WAITALL) == static_cast<ssize_t>(total)
               ? 0
               : 1;
  }
  auto* const to = static_cast<std::byte*>(all);
  std::memcpy(to, mine, bytes);
  for (std::size_t rank = 1; rank < sockets.pairs.size(); ++rank) {
    if (recv(sockets.pairs[rank][0], to + rank * bytes, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) return 1;
  }
  for (std::size_t rank = 1; rank < sockets.pairs.size(); ++rank) {
    if (send(sockets.pairs[rank][0], all, total, 0) != static_cast<ssize_t>(total)) return 1;
  }
  return 0;
}

TEST(Contexts, start_from_a_callers_allgather_again_and_again) {
  Job job;
  job.ranks = 3;
  job.starts = false;
  Sockets sockets;
  sockets.size = job.ranks;
  for (int rank = 0; rank < job.ranks; ++rank) {
    sockets.pairs.emplace_back();
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.pairs.back().data()), 0);
  }
  run_ranks(job, [&sockets](int rank) {
    for (const char* name : {"FARSUM_RANK", "FARSUM_SIZE", "FARSUM_NODE_FD"}) unsetenv(name);
    Sockets mine = sockets;
    mine.rank = rank;
    farsum_init_options options{};
    options.struct_bytes = sizeof options;
    options.rank = rank;
    options.size = mine.size;
    options.allgather = gather_over_sockets;
    options.allgather_user = &mine;
    for (int round = 0; round < 10; ++round) {
      ASSERT_FINE(farsum_init(&options));
      int seen = -1;
      EXPECT_FINE(farsum_rank(farsum_world(), &seen));
      EXPECT_EQ(seen, rank);
      use_a_window(farsum_world());
      ASSERT_FINE(farsum_finalize());
    }
    // As programs built with earlier headers call it: what lies behind their struct is not read.
    options.job_rank = options.job_size = -1;
    for (const std::size_t bytes :
         {offsetof(farsum_init_options, job_rank), offsetof(farsum_init_options, many_threads)}) {
      options.struct_bytes = bytes;
      ASSERT_FINE(farsum_init(&options));
      use_a_window(farsum_world());
      ASSERT_FINE(farsum_finalize());
    }
    options.struct_bytes = sizeof options;
    // An allgather that fails, and ranks that make no sense.
    options.job_rank = 3;
    options.job_size = 3;
    EXPECT_REFUSED(farsum_init(&options), FARSUM_ERR_ARGUMENT, HasSubstr("job_rank 3 of 3"));
    options.job_size = 0;
    options.allgather = [](const void*, void*, std::size_t, void*) { return 1; };
    EXPECT_REFUSED(farsum_init(&options), FARSUM_ERR_SYSTEM, HasSubstr("allgather failed"));
    options.rank = options.size;
    EXPECT_REFUSED(farsum_init(&options), FARSUM_ERR_ARGUMENT, HasSubstr("rank 3 of 3"));
    options.struct_bytes = offsetof(farsum_init_options, many_threads) - 1;
    EXPECT_REFUSED(farsum_init(&options), FARSUM_ERR_ARGUMENT, HasSubstr("struct_bytes"));
    EXPECT_EQ(farsum_is_initialized(), 0);
  });
  for (const auto& pair : sockets.pairs) {
    for (const int fd : pair) close(fd);
  }
}

TEST(Contexts, refuse_calls_before_init_and_after_finalize) {
  Job job;
  job.ranks = 1;
  job.starts = false;
  run_ranks(job, [](int) {
    farsum_window window{};
    farsum_mutex mutexes{};
    farsum_counter counter{};
    farsum_request request{};
    farsum_group group = farsum_world();
    const auto all_refuse = [&] {
      const auto sentence = HasSubstr("call farsum_init first");
      void* memory = nullptr;
      std::uint64_t word = 0;
      int number = 0;
      farsum_counter_options options{};
      options.struct_bytes = sizeof options;
      farsum_statistics statistics{};
      statistics.struct_bytes = sizeof statistics;
      EXPECT_EQ(farsum_is_initialized(), 0);
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_barrier(group), FARSUM_ERR_NOT_INITIALIZED, AllOf(HasSubstr("farsum_barrier"), sentence));
      EXPECT_REFUSED(farsum_rank(group, &number), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_size(group, &number), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_window_allocate(group, 8, nullptr, &memory, &window), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_put(window, 0, 0, &word, 8), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_fetch_op(window, 0, 0, &word, &word, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_NOT_INITIALIZED,
                     sentence);
      EXPECT_REFUSED(farsum_flush(window, 0), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_lock(window, 0, FARSUM_LOCK_SHARED), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_fence(window, 0), FARSUM_ERR_NOT_INITIALIZED, sentence);
      farsum_window copy = window;
      EXPECT_REFUSED(farsum_window_free(&copy), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_wait(&request), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_mutex_lock(mutexes, 0, 0), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_counter_create(group, &options, &counter), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_counter_next(counter, &word), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_statistics_read(&statistics), FARSUM_ERR_NOT_INITIALIZED, sentence);
    };
    all_refuse();
    ASSERT_FINE(farsum_init(nullptr));
    group = farsum_world();
    void* memory = nullptr;
    ASSERT_FINE(farsum_window_allocate(group, 64, nullptr, &memory, &window));
    ASSERT_FINE(farsum_mutex_create(group, 1, &mutexes));
    ASSERT_FINE(farsum_finalize());
    all_refuse();
    // What lived in the last context is no object of the next.
    ASSERT_FINE(farsum_init(nullptr));
    farsum_window next{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &next));
    std::uint64_t word = 0;
    EXPECT_REFUSED(farsum_put(window, 0, 0, &word, 8), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
    EXPECT_REFUSED(farsum_mutex_lock(mutexes, 0, 0), FARSUM_ERR_HANDLE, HasSubstr("do not live"));
    ASSERT_FINE(farsum_finalize());
  });
}

TEST(Groups, that_are_disjoint_make_windows_at_the_same_time) {
  run_ranks(4, [](int rank) {
    // Pairs, in reverse order of rank, and the pairs' own sub-groups of one.
    const std::array<int, 2> members = rank < 2 ? std::array<int, 2>{1, 0} : std::array<int, 2>{3, 2};
    for (int round = 0; round < 30; ++round) {
      farsum_group pair{};
      ASSERT_FINE(farsum_group_create(farsum_world(), members.data(), 2, &pair));
      int mine = -1, node = -1;
      ASSERT_FINE(farsum_rank(pair, &mine));
      EXPECT_EQ(mine, 1 - rank % 2);
      ASSERT_FINE(farsum_node(pair, 1, &node));
      use_a_window(pair);
      farsum_group alone{};
      ASSERT_FINE(farsum_group_create(pair, &mine, 1, &alone));
      use_a_window(alone);
      if (rank < 2) use_a_window(pair);
      std::array<int, 2> ranks{};
      ASSERT_FINE(farsum_allgather(pair, &rank, ranks.data(), sizeof rank));
      EXPECT_EQ(ranks, members);
      int told = rank;
      ASSERT_FINE(farsum_broadcast(pair, &told, sizeof told, 1));
      EXPECT_EQ(told, members[1]);
      ASSERT_FINE(farsum_group_free(&alone));
      ASSERT_FINE(farsum_group_free(&pair));
      EXPECT_EQ(pair.bits, 0u);
    }
    barrier();
    use_a_window(farsum_world());
  });
}

// Each rank makes them in an order of its own: with three of them open at once, by three threads.
TEST(Groups, that_have_numbers_are_made_by_threads_in_any_order) {
  run_ranks(3, [](int rank) {
    const std::array<int, 3> all{0, 1, 2};
    std::vector<std::thread> threads;
    for (std::uint64_t made = 0; made < 3; ++made) {
      threads.emplace_back([&, number = (made + static_cast<std::uint64_t>(rank)) % 3] {
        farsum_group group{};
        ASSERT_FINE(farsum_group_create_numbered(farsum_world(), all.data(), 3, number, &group));
        std::array<std::uint64_t, 3> numbers{};
        ASSERT_FINE(farsum_allgather(group, &number, numbers.data(), sizeof number));
        EXPECT_EQ(numbers, (std::array<std::uint64_t, 3>{number, number, number}));
        ASSERT_FINE(farsum_group_leave(&group));
        EXPECT_EQ(group.bits, 0u);
      });
    }
    for (std::thread& thread : threads) thread.join();
    barrier();
  });
}

TEST(Groups, that_a_rank_leaves_stay_the_others_until_they_leave) {
  run_ranks(3, [](int rank) {
    const std::array<int, 3> all{0, 1, 2};
    for (std::uint64_t number = 0; number < 100; ++number) {
      farsum_group group{};
      ASSERT_FINE(farsum_group_create_numbered(farsum_world(), all.data(), 3, number, &group));
      use_a_window(group);
      // Rank 0 has left before the others ask for anything of the group again.
      if (rank == 0) ASSERT_FINE(farsum_group_leave(&group));
      barrier();
      if (rank == 0) continue;
      int size = 0;
      ASSERT_FINE(farsum_size(group, &size));
      EXPECT_EQ(size, 3);
      ASSERT_FINE(farsum_group_leave(&group));
    }
  });
}

TEST(Groups, that_make_no_sense_are_refused) {
  run_ranks(2, [](int rank) {
    farsum_group group{};
    const int outside = 2, mine = rank, other = 1 - rank, negative = -1;
    const std::array<int, 2> twice{rank, rank};
    EXPECT_REFUSED(farsum_group_create(farsum_world(), &outside, 1, &group), FARSUM_ERR_RANK,
                   AllOf(HasSubstr("rank 2"), HasSubstr("0 to 1")));
    EXPECT_REFUSED(farsum_group_create(farsum_world(), &negative, 1, &group), FARSUM_ERR_RANK, HasSubstr("rank -1"));
    EXPECT_REFUSED(farsum_group_create(farsum_world(), twice.data(), 2, &group), FARSUM_ERR_ARGUMENT,
                   HasSubstr("listed twice"));
    EXPECT_REFUSED(farsum_group_create(farsum_world(), &other, 1, &group), FARSUM_ERR_ARGUMENT,
                   HasSubstr("not among the ranks"));
    EXPECT_REFUSED(farsum_group_create(farsum_world(), &mine, 0, &group), FARSUM_ERR_ARGUMENT,
                   HasSubstr("at least one rank"));
    farsum_group world = farsum_world();
    EXPECT_REFUSED(farsum_group_free(&world), FARSUM_ERR_ARGUMENT, HasSubstr("not freed"));
    int node = 0;
    EXPECT_REFUSED(farsum_node(farsum_world(), 2, &node), FARSUM_ERR_RANK, HasSubstr("rank 2"));
    std::uint64_t word = 0;
    EXPECT_REFUSED(farsum_broadcast(farsum_world(), &word, 8, 2), FARSUM_ERR_RANK, HasSubstr("root 2"));
    ASSERT_FINE(farsum_group_create(farsum_world(), &mine, 1, &group));
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(group, 8, nullptr, &memory, &window));
    EXPECT_REFUSED(farsum_group_free(&group), FARSUM_ERR_PENDING, HasSubstr("1 windows"));
    EXPECT_REFUSED(farsum_group_leave(&group), FARSUM_ERR_PENDING, HasSubstr("1 windows"));
    EXPECT_REFUSED(farsum_group_leave(&world), FARSUM_ERR_ARGUMENT, HasSubstr("not freed"));
    ASSERT_FINE(farsum_window_free(&window));
    ASSERT_FINE(farsum_group_free(&group));
  });
}

// In make test-all: ten thousand windows.
TEST(Windows, that_come_and_go_ten_thousand_times_leave_nothing) {
  run_ranks(2, [](int rank) {
    std::vector<std::byte> block(4096);
    const auto make_and_free = [&](int count) {
      for (int i = 0; i < count; ++i) {
        void* memory = nullptr;
        farsum_window window{};
        if (i % 3 == 0) {
          ASSERT_FINE(farsum_window_allocate(farsum_world(), static_cast<std::size_t>(64 * (i % 7) * (rank + 1)),
                                             nullptr, &memory, &window));
        } else if (i % 3 == 1) {
          ASSERT_FINE(farsum_window_adopt(farsum_world(), block.data(), block.size(), nullptr, &window));
        } else {
          ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
          // Every now and then so many regions that their table moves.
          for (std::size_t region = 0; i % 100 == 2 && region < 64; ++region)
            ASSERT_FINE(farsum_window_attach(window, &block[region * 64], 64));
        }
        if (i % 5 == 0) {
          ASSERT_FINE(farsum_window_prepare_free(window));
        }
        ASSERT_FINE(farsum_window_free(&window));
      }
    };
    make_and_free(300);
    const std::size_t maps = maps_of_this_process();
    rusage before{};
    getrusage(RUSAGE_SELF, &before);
    make_and_free(10'000);
    EXPECT_LE(maps_of_this_process(), maps + 16);
    rusage after{};
    getrusage(RUSAGE_SELF, &after);
#if !defined(__SANITIZE_ADDRESS__)
    // A sanitizer holds freed memory back for a while.
    EXPECT_LE(after.ru_maxrss, before.ru_maxrss + 2048) << "KiB";
#endif
  });
}

// In make test-all: every order of many windows.
TEST(Windows, may_be_freed_in_different_orders_on_different_ranks) {
  Job job;
  job.ranks = 3;
  // A rank looks after this time whether it waits for a window that others have left for later.
  job.settings = {{"FARSUM_WAIT_GAP_NS", "20000000"}};
  run_ranks(job, [](int rank) {
    // Large and page-aligned, so that some are promoted where that is possible; the last is the node's memory.
    constexpr std::size_t bytes = std::size_t{1} << 20;
    constexpr std::size_t windows = 4;
    std::array<std::byte*, windows> parts{};
    std::array<farsum_window, windows> handles{};
    for (std::size_t i = 0; i < windows; ++i) {
      if (i + 1 == windows) {
        void* memory = nullptr;
        ASSERT_FINE(farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &handles[i]));
        parts[i] = static_cast<std::byte*>(memory);
      } else {
        void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        parts[i] = static_cast<std::byte*>(mapped);
        std::memset(parts[i], 1, bytes);
        ASSERT_FINE(farsum_window_adopt(farsum_world(), parts[i], bytes, nullptr, &handles[i]));
      }
    }
    const auto value = [](int from, std::size_t window) {
      return static_cast<std::byte>(10 + from * 10 + static_cast<int>(window));
    };
    for (std::size_t i = 0; i < windows; ++i) {
      ASSERT_FINE(farsum_fence(handles[i], 0));
      const std::vector<std::byte> data(bytes, value(rank, i));
      ASSERT_FINE(farsum_put(handles[i], (rank + 1) % 3, 0, data.data(), bytes));
      ASSERT_FINE(farsum_fence(handles[i], FARSUM_FENCE_NO_SUCCEED));
    }
    const auto is_whole = [&](std::size_t i) {
      return std::count(parts[i], parts[i] + bytes, value((rank + 2) % 3, i)) == static_cast<std::ptrdiff_t>(bytes);
    };
    for (std::size_t i = 0; i < windows; ++i) {
      const std::size_t next = rank == 0 ? i : rank == 1 ? windows - 1 - i : (i + 2) % windows;
      EXPECT_TRUE(is_whole(next));
      ASSERT_FINE(farsum_window_free(&handles[next]));
      // The program's own memory is still what it was, whoever else has gone.
      for (std::size_t own = 0; own + 1 < windows; ++own) EXPECT_TRUE(is_whole(own));
    }
    barrier();
    for (int round = 0; round < 5; ++round) use_a_window(farsum_world());
    for (std::size_t i = 0; i + 1 < windows; ++i) {
      EXPECT_TRUE(is_whole(i));
      munmap(parts[i], bytes);
    }
  });
}

TEST(Windows, of_one_group_may_be_fenced_and_freed_by_several_threads_at_once) {
  run_ranks(3, [](int rank) {
    constexpr std::size_t count = 4;
    for (int round = 0; round < 5; ++round) {
      std::array<farsum_window, count> windows{};
      std::array<std::uint64_t*, count> words{};
      for (std::size_t i = 0; i < count; ++i) {
        void* memory = nullptr;
        ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &windows[i]));
        words[i] = static_cast<std::uint64_t*>(memory);
      }
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
          ASSERT_FINE(farsum_fence(windows[i], FARSUM_FENCE_NO_PRECEDE));
          for (std::uint64_t turn = 1; turn <= 10; ++turn) {
            const std::uint64_t value = turn * 100 + i;
            ASSERT_FINE(farsum_put(windows[i], (rank + 1) % 3, 0, &value, 8));
            ASSERT_FINE(farsum_fence(windows[i], 0));
            EXPECT_EQ(words[i][0], value);
            ASSERT_FINE(farsum_fence(windows[i], 0));
          }
          // Half of them free in their threads.
          if (i % 2 == 0) {
            ASSERT_FINE(farsum_window_free(&windows[i]));
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (std::size_t i = 1; i < count; i += 2) ASSERT_FINE(farsum_window_free(&windows[i]));
    }
  });
}

TEST(Windows, may_differ_in_size_by_rank_and_be_empty) {
  run_ranks(3, [](int rank) {
    const std::array<std::size_t, 3> sizes{0, 1, 100'000};
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(
        farsum_window_allocate(farsum_world(), sizes[static_cast<std::size_t>(rank)], nullptr, &memory, &window));
    ASSERT_FINE(farsum_lock_all(window));
    const std::vector<std::byte> data(100'000, std::byte{9});
    for (int target = 0; target < 3; ++target) {
      const std::size_t size = sizes[static_cast<std::size_t>(target)];
      void* address = nullptr;
      std::size_t bytes = 7;
      EXPECT_FINE(farsum_window_shared_query(window, target, &address, &bytes));
      EXPECT_EQ(bytes, size);
      if (rank == 0) {
        EXPECT_FINE(farsum_put(window, target, 0, data.data(), size));
      }
      EXPECT_REFUSED(farsum_put(window, target, size, data.data(), 1), FARSUM_ERR_RANGE,
                     HasSubstr("exposes [0, " + std::to_string(size) + ")"));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    barrier();
    if (rank == 2) {
      EXPECT_EQ(std::memcmp(memory, data.data(), data.size()), 0);
    }
    ASSERT_FINE(farsum_window_free(&window));
    farsum_window empty{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), nullptr, 0, nullptr, &empty));
    ASSERT_FINE(farsum_window_free(&empty));
  });
}

TEST(Windows, reach_offsets_beyond_four_gigabytes) {
  Job job;
  for (const char* path : {"auto", "owner", "aggregated", "caller"}) {
    job.settings = {{"FARSUM_PATH", path}};
    run_ranks(job, [](int rank) {
      constexpr std::uint64_t gib = std::uint64_t{1} << 30;
      constexpr std::uint64_t bytes = 6 * gib;
      // Memory that nobody touches costs nothing, and is not asked of the node twice: adopted, not allocated.
      void* const memory =
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      farsum_window_options options{};
      options.struct_bytes = sizeof options;
      options.promises = FARSUM_NO_PROMOTION;
      farsum_window window{};
      ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, &options, &window));
      ASSERT_FINE(farsum_lock_all(window));
      std::uint64_t number = 0;
      for (const std::uint64_t offset : {std::uint64_t{0}, 4 * gib - 8, 4 * gib, 5 * gib + 4096, bytes - 8}) {
        const std::uint64_t value = ++number;
        ASSERT_FINE(farsum_put(window, 1 - rank, offset, &value, 8));
        ASSERT_FINE(farsum_flush(window, 1 - rank));
        ASSERT_FINE(farsum_accumulate(window, 1 - rank, offset, &value, 1, FARSUM_UINT64, FARSUM_SUM));
      }
      EXPECT_REFUSED(farsum_put(window, 1 - rank, bytes - 7, &number, 8), FARSUM_ERR_RANGE,
                     HasSubstr("exposes [0, 6442450944)"));
      ASSERT_FINE(farsum_unlock_all(window));
      barrier();
      number = 0;
      for (const std::uint64_t offset : {std::uint64_t{0}, 4 * gib - 8, 4 * gib, 5 * gib + 4096, bytes - 8}) {
        EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(static_cast<const std::byte*>(memory) + offset), 2 * ++number)
            << offset;
      }
      ASSERT_FINE(farsum_window_free(&window));
      munmap(memory, bytes);
    });
  }
}

TEST(Windows, that_are_allocated_reach_beyond_four_gigabytes_where_the_node_has_room) {
  const SharedWithRanks<std::atomic<int>> without_room;
  run_ranks(2, [&](int rank) {
    constexpr std::uint64_t gib = std::uint64_t{1} << 30;
    void* memory = nullptr;
    farsum_window window{};
    const farsum_status status =
        farsum_window_allocate(farsum_world(), rank == 1 ? 6 * gib : 0, nullptr, &memory, &window);
    if (status == FARSUM_ERR_NO_MEMORY) {
      without_room->fetch_add(1);
      return;
    }
    ASSERT_FINE(status);
    ASSERT_FINE(farsum_lock_all(window));
    const std::uint64_t value = 5;
    if (rank == 0) {
      for (const std::uint64_t offset : {4 * gib - 8, 4 * gib, 6 * gib - 8}) {
        ASSERT_FINE(farsum_accumulate(window, 1, offset, &value, 1, FARSUM_UINT64, FARSUM_SUM));
      }
    }
    ASSERT_FINE(farsum_unlock_all(window));
    barrier();
    if (rank == 1) {
      for (const std::uint64_t offset : {4 * gib - 8, 4 * gib, 6 * gib - 8}) {
        EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(static_cast<const std::byte*>(memory) + offset), 5u);
      }
    }
    ASSERT_FINE(farsum_window_free(&window));
  });
  if (without_room->load() != 0) GTEST_SKIP() << "the node has no 6 GiB to promise";
}

TEST(Windows, more_than_can_live_fail_on_every_rank_and_leave_the_others_whole) {
  const SharedWithRanks<std::atomic<int>> without_room;
  run_ranks(2, [&](int rank) {
    farsum_group alone{};
    ASSERT_FINE(farsum_group_create(farsum_world(), &rank, 1, &alone));
    std::vector<farsum_window> windows;
    if (rank == 1) {
      farsum_status status = FARSUM_OK;
      for (farsum_window window{}; status == FARSUM_OK;) {
        status = farsum_window_adopt(alone, nullptr, 0, nullptr, &window);
        if (status == FARSUM_OK) windows.push_back(window);
      }
      EXPECT_EQ(status, FARSUM_ERR_NO_MEMORY) << farsum_last_error();
      if (windows.size() < 65536) without_room->store(1);
      EXPECT_GE(windows.size(), 1000U) << farsum_last_error();
    }
    barrier();
    if (without_room->load() == 0) {
      void* memory = nullptr;
      farsum_window window{};
      EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window), FARSUM_ERR_NO_MEMORY,
                     HasSubstr(rank == 1 ? "65536 windows live, the most there can be" : "too many windows"));
      EXPECT_EQ(window.bits, 0U);
    }
    for (farsum_window& window : windows) ASSERT_FINE(farsum_window_free(&window));
    use_a_window(farsum_world());
    ASSERT_FINE(farsum_group_free(&alone));
  });
  if (without_room->load() != 0) GTEST_SKIP() << "the node has no room for 65536 windows";
}

TEST(Windows, beyond_the_nodes_memory_fail_on_every_rank_with_the_bytes_asked_and_available) {
  run_ranks(3, [](int rank) {
    void* memory = nullptr;
    farsum_window window{};
    // Only rank 2 asks for too much. More than the segment's addresses, more than the node's memory, more than numbers
    // hold.
    for (const int bits : {42, 39, 61}) {
      const std::size_t bytes = rank == 2 ? std::size_t{1} << bits : 64;
      EXPECT_REFUSED(farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &window), FARSUM_ERR_NO_MEMORY,
                     AllOf(HasSubstr("farsum_window_allocate"), HasSubstr("asked for"), HasSubstr("bytes")));
      EXPECT_EQ(window.bits, 0u);
    }
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), ~std::size_t{0}, nullptr, &memory, &window),
                   FARSUM_ERR_NO_MEMORY, HasSubstr("2^62"));
    use_a_window(farsum_world());
  });
}

void with_limit(__rlimit_resource which, std::uint64_t bytes, const std::function<void(int)>& body) {
  Job job;
  job.starts = false;
  run_ranks(job, [&](int rank) {
    const rlimit limit{bytes, bytes};
    ASSERT_EQ(setrlimit(which, &limit), 0);
    ASSERT_FINE(farsum_init(nullptr));
    body(rank);
    if (!testing::Test::HasFatalFailure()) EXPECT_FINE(farsum_finalize());
  });
}

TEST(Limits, on_locked_memory_do_not_matter) {
  with_limit(RLIMIT_MEMLOCK, 0, [](int) {
    use_a_window(farsum_world());
    std::vector<std::uint64_t> block(1 << 17);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), block.data(), block.size() * 8, nullptr, &window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_space_can_be_limited = false;  // the sanitizer's shadow needs it all
#else
constexpr bool address_space_can_be_limited = true;
#endif

TEST(Limits, on_address_space_are_for_what_a_rank_uses_itself) {
  if (!address_space_can_be_limited) GTEST_SKIP() << "the address sanitizer needs the whole address space";
  with_limit(RLIMIT_AS, std::uint64_t{1} << 30, [](int rank) {
    use_a_window(farsum_world());
    // Both parts have no room in one process: each rank reaches the other's by another way.
    constexpr std::uint64_t bytes = std::uint64_t{600} << 20;
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &window));
    farsum_region_info info{};
    ASSERT_FINE(farsum_window_region(window, rank, 0, &info));
    EXPECT_EQ(info.bulk_path, FARSUM_PATH_DIRECT);
    ASSERT_FINE(farsum_window_region(window, 1 - rank, 0, &info));
    EXPECT_NE(info.bulk_path, FARSUM_PATH_DIRECT);
    EXPECT_THAT(info.reason, HasSubstr("ulimit -v"));
    void* address = nullptr;
    std::size_t there = 0;
    ASSERT_FINE(farsum_window_shared_query(window, 1 - rank, &address, &there));
    EXPECT_EQ(address, nullptr);
    ASSERT_FINE(farsum_fence(window, 0));
    const std::uint64_t word = 40 + static_cast<std::uint64_t>(rank), two = 2;
    ASSERT_FINE(farsum_put(window, 1 - rank, bytes - 8, &word, 8));
    ASSERT_FINE(farsum_fence(window, 0));
    for (int target = 0; target < 2; ++target)
      ASSERT_FINE(farsum_accumulate(window, target, bytes - 8, &two, 1, FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_fence(window, 0));
    EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(memory) + bytes - 8), 41U - rank + 4);
    ASSERT_FINE(farsum_window_free(&window));
    // What is freed makes room again.
    constexpr std::size_t much = std::size_t{700} << 20;
    void* const block = mmap(nullptr, much, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(block, MAP_FAILED);
    if (block != MAP_FAILED) munmap(block, much);
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), std::size_t{1100} << 20, nullptr, &memory, &window),
                   FARSUM_ERR_NO_MEMORY, HasSubstr("ulimit -v"));
    use_a_window(farsum_world());
  });
}

// Under a limit what is freed is unmapped, all but the block in which the ranks part, wherever the extent begins.
TEST(Limits, leave_the_ranks_of_a_window_the_place_where_they_part) {
  if (!address_space_can_be_limited) GTEST_SKIP() << "the address sanitizer needs the whole address space";
  with_limit(RLIMIT_AS, std::uint64_t{1} << 30, [](int) {
    constexpr std::size_t step = 16 << 10;
    constexpr int places = 130;  // more than such steps lie in the 2 MiB that are mapped at once
    for (int place = 0; place < places; ++place) {
      void* memory = nullptr;
      farsum_window before{}, window{};
      ASSERT_FINE(
          farsum_window_allocate(farsum_world(), step * static_cast<std::size_t>(place), nullptr, &memory, &before));
      ASSERT_FINE(farsum_window_allocate(farsum_world(), 5 << 20, nullptr, &memory, &window));
      ASSERT_FINE(farsum_window_free(&window));
      ASSERT_FINE(farsum_window_free(&before));
    }
  });
}

TEST(Limits, of_one_rank_fail_a_window_on_all_only_where_its_own_part_has_no_room) {
  if (!address_space_can_be_limited) GTEST_SKIP() << "the address sanitizer needs the whole address space";
  Job job;
  job.starts = false;
  run_ranks(job, [](int rank) {
    const rlimit limit{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
    if (rank == 1) {
      ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    }
    ASSERT_FINE(farsum_init(nullptr));
    constexpr std::size_t much = std::size_t{1100} << 20;
    void* memory = nullptr;
    farsum_window window{};
    for (int turn = 0; turn < 3; ++turn) {
      EXPECT_REFUSED(farsum_window_allocate(farsum_world(), rank == 1 ? much : 64, nullptr, &memory, &window),
                     FARSUM_ERR_NO_MEMORY, HasSubstr(rank == 1 ? "ulimit -v" : "rank 1 of the group"));
      ASSERT_FINE(farsum_window_allocate(farsum_world(), rank == 0 ? much : 64, nullptr, &memory, &window));
      ASSERT_FINE(farsum_fence(window, 0));
      const std::uint64_t word = 7;
      ASSERT_FINE(farsum_put(window, 1 - rank, 8, &word, 8));
      ASSERT_FINE(farsum_fence(window, 0));
      EXPECT_EQ(static_cast<std::uint64_t*>(memory)[1], 7U);
      ASSERT_FINE(farsum_window_free(&window));
    }
    ASSERT_FINE(farsum_finalize());
  });
}

// Takes what the process may still map, but for a little.
void take_address_space() {
  for (std::size_t bytes = std::size_t{64} << 20; bytes >= std::size_t{4} << 20;) {
    if (mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) bytes /= 2;
  }
}

TEST(Limits, that_leave_no_room_for_messages_fail_them_and_hang_nobody) {
  if (!address_space_can_be_limited) GTEST_SKIP() << "the address sanitizer needs the whole address space";
  for (const int full : {0, 1}) {
    Job job;
    job.starts = false;
    job.settings = {{"FARSUM_PATH", "owner"}, {"FARSUM_CHANNEL_BYTES", std::to_string(16 << 20)}};
    run_ranks(job, [full](int rank) {
      const rlimit limit{std::uint64_t{512} << 20, std::uint64_t{512} << 20};
      ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
      ASSERT_FINE(farsum_init(nullptr));
      void* memory = nullptr;
      farsum_window window{};
      ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, nullptr, &memory, &window));
      if (rank == full) take_address_space();
      barrier();
      ASSERT_FINE(farsum_lock_all(window));
      if (rank == 0) {
        const std::uint64_t one = 1;
        // The first may be told of at once or by the flush.
        farsum_status status = farsum_accumulate(window, 1, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM);
        if (status == FARSUM_OK) status = farsum_flush(window, 1);
        EXPECT_EQ(status, FARSUM_ERR_NO_MEMORY) << farsum_last_error();
      }
      EXPECT_FINE(farsum_unlock_all(window));
      barrier();
      EXPECT_FINE(farsum_finalize_forced());
    });
  }
}

// All that the node has room for, but for less than a channel.
std::vector<void*> take_node_memory() {
  std::vector<void*> blocks;
  for (std::size_t bytes = std::size_t{32} << 20; bytes >= std::size_t{1} << 20;) {
    void* block = nullptr;
    if (farsum_memory_allocate(bytes, &block) == FARSUM_OK)
      blocks.push_back(block);
    else
      bytes /= 2;
  }
  return blocks;
}

TEST(Limits, that_leave_the_node_no_room_for_a_channel_fail_its_messages_until_there_is_some) {
  Job job;
  job.starts = false;
  job.settings = {{"FARSUM_PATH", "owner"}, {"FARSUM_CHANNEL_BYTES", std::to_string(16 << 20)}};
  run_ranks(job, [](int rank) {
    const rlimit limit{std::uint64_t{64} << 20, std::uint64_t{64} << 20};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ASSERT_FINE(farsum_init(nullptr));
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, nullptr, &memory, &window));
    ASSERT_FINE(farsum_lock_all(window));
    if (rank == 0) {
      const std::uint64_t one = 1;
      const auto add = [&] {
        const farsum_status status = farsum_accumulate(window, 1, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM);
        return status == FARSUM_OK ? farsum_flush(window, 1) : status;
      };
      const std::vector<void*> blocks = take_node_memory();
      for (int time = 0; time < 3; ++time)
        EXPECT_REFUSED(add(), FARSUM_ERR_NO_MEMORY, HasSubstr("FARSUM_CHANNEL_BYTES"));
      for (void* const block : blocks) EXPECT_FINE(farsum_memory_free(block));
      for (int time = 0; time < 3; ++time) EXPECT_FINE(add());
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 1) {
      EXPECT_EQ(*static_cast<std::uint64_t*>(memory), 3U);
    }
    ASSERT_FINE(farsum_window_free(&window));
    ASSERT_FINE(farsum_finalize());
  });
}

TEST(Limits, on_file_size_make_the_nodes_memory_smaller_and_say_so) {
  with_limit(RLIMIT_FSIZE, std::uint64_t{64} << 20, [](int) {
    use_a_window(farsum_world());
    void* memory = nullptr;
    farsum_window window{};
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), std::size_t{65} << 20, nullptr, &memory, &window),
                   FARSUM_ERR_NO_MEMORY, HasSubstr("asked for"));
    // Promotion wants room in that file too, and does without.
    constexpr std::size_t bytes = std::size_t{96} << 20;
    void* const block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_FINE(farsum_window_adopt(farsum_world(), block, bytes, nullptr, &window));
    ASSERT_FINE(farsum_window_free(&window));
    munmap(block, bytes);
    use_a_window(farsum_world());
  });
}

TEST(Limits, that_leave_no_room_at_all_are_named_by_init) {
  Job job;
  job.ranks = 1;
  job.starts = false;
  run_ranks(job, [](int) {
    const rlimit limit{1 << 20, 1 << 20};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_REFUSED(farsum_init(nullptr), FARSUM_ERR_NO_MEMORY, HasSubstr("ulimit -f"));
    EXPECT_EQ(farsum_is_initialized(), 0);
  });
}

TEST(Threads, of_a_rank_share_a_window) {
  for (const char* path : {"auto", "owner", "aggregated", "caller"}) {
    Job job;
    job.settings = {{"FARSUM_PATH", path}};
    run_ranks(job, [](int) {
      void* memory = nullptr;
      farsum_window window{};
      ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, nullptr, &memory, &window));
      ASSERT_FINE(farsum_lock_all(window));
      constexpr int threads = 3;
      constexpr std::uint64_t rounds = 200;
      std::vector<std::thread> team;
      for (int thread = 0; thread < threads; ++thread) {
        team.emplace_back([&, thread] {
          std::array<std::uint64_t, 64> ones{};
          ones.fill(1);
          for (std::uint64_t i = 0; i < rounds; ++i) {
            const int target = static_cast<int>(i % 2);
            // Each thread a different operator now and then, so that gathered updates do not mix.
            const std::uint64_t zero = 0;
            EXPECT_FINE(farsum_accumulate(window, target, 0, &ones[0], 1, FARSUM_UINT64, FARSUM_SUM));
            EXPECT_FINE(
                farsum_accumulate(window, target, 8, &zero, 1, FARSUM_UINT64, thread == 0 ? FARSUM_BOR : FARSUM_BXOR));
            EXPECT_FINE(farsum_accumulate(window, target, 64, ones.data(), ones.size(), FARSUM_UINT64, FARSUM_SUM));
            std::uint64_t old = 0;
            EXPECT_FINE(farsum_fetch_op(window, target, 0, &ones[0], &old, FARSUM_UINT64, FARSUM_SUM));
            // A failing call's sentence belongs to its thread.
            EXPECT_REFUSED(farsum_put(window, 100 + thread, 0, &old, 8), FARSUM_ERR_RANK,
                           HasSubstr("rank " + std::to_string(100 + thread)));
            if (i % 32 == 0) EXPECT_FINE(farsum_flush(window, target));
          }
        });
      }
      for (std::thread& thread : team) thread.join();
      ASSERT_FINE(farsum_unlock_all(window));
      barrier();
      const auto* words = static_cast<const std::uint64_t*>(memory);
      EXPECT_EQ(words[0], 2 * threads * rounds);
      EXPECT_EQ(words[1], 0u);
      for (int i = 8; i < 72; ++i) ASSERT_EQ(words[i], threads * rounds);
      ASSERT_FINE(farsum_window_free(&window));
    });
  }
}

// ---- promotion and fork ----

TEST(Promotion, gives_large_heap_memory_the_direct_path_and_its_contents_back) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = std::size_t{4} << 20;
    auto* const memory =
        static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t i = 0; i < bytes; ++i)
      memory[i] = static_cast<unsigned char>(i * 7 + static_cast<std::size_t>(rank));
    farsum_window window{};
    // A part that begins and ends amid pages: its edges stay with the agent.
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory + 8, bytes - 16, nullptr, &window));
    farsum_region_info info{};
    bool promoted = false;
    std::uint64_t end = 0;
    for (int index = 0; farsum_window_region(window, 1 - rank, index, &info) == FARSUM_OK; ++index) {
      EXPECT_EQ(info.offset, end);
      end = info.offset + info.bytes;
      if (info.promoted == 0) continue;
      promoted = true;
      EXPECT_EQ(info.bulk_path, FARSUM_PATH_DIRECT) << info.reason;
    }
    EXPECT_EQ(end, bytes - 16);
    EXPECT_TRUE(promoted) << info.reason;
    ASSERT_FINE(farsum_lock_all(window));
    std::vector<unsigned char> seen(bytes - 16);
    ASSERT_FINE(farsum_get(window, 1 - rank, 0, seen.data(), seen.size()));
    ASSERT_FINE(farsum_flush(window, 1 - rank));
    for (std::size_t i = 0; i < seen.size(); ++i)
      ASSERT_EQ(seen[i], static_cast<unsigned char>((i + 8) * 7 + static_cast<std::size_t>(1 - rank)));
    barrier();
    const std::uint64_t one = 1;
    ASSERT_FINE(farsum_accumulate(window, 1 - rank, 8192, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
    unsigned char first = static_cast<unsigned char>(8200 * 7 + rank + 1);
    EXPECT_EQ(memory[8200], first);
    EXPECT_EQ(memory[bytes - 1], static_cast<unsigned char>((bytes - 1) * 7 + static_cast<std::size_t>(rank)));
    munmap(memory, bytes);
  });
}

TEST(Fork, gives_a_child_copies_of_its_own_of_promoted_memory_and_no_rank) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    auto* const memory =
        static_cast<std::uint64_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memory[1000] = 5;
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, nullptr, &window));
    void* shared = nullptr;
    farsum_window allocated{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &shared, &allocated));
    ASSERT_FINE(farsum_lock_all(window));
    ASSERT_FINE(farsum_lock_all(allocated));
    barrier();
    const pid_t child = fork();
    if (child == 0) {
      const auto sentence = HasSubstr("forked child");
      std::uint64_t word = 9;
      EXPECT_EQ(memory[1000], 5u);
      memory[1000] = 77;
      EXPECT_EQ(farsum_is_initialized(), 0);
      EXPECT_REFUSED(farsum_put(allocated, rank, 0, &word, 8), FARSUM_ERR_NOT_INITIALIZED,
                     AllOf(HasSubstr("farsum_put"), sentence));
      EXPECT_REFUSED(farsum_get(window, rank, 0, &word, 8), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_accumulate(allocated, 1 - rank, 0, &word, 1, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_flush(allocated, 0), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_unlock_all(allocated), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_barrier(farsum_world()), FARSUM_ERR_NOT_INITIALIZED, sentence);
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_NOT_INITIALIZED, sentence);
      std::fflush(nullptr);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "what the child saw is above";
    EXPECT_EQ(memory[1000], 5u);
    // The rank goes on as if nothing had happened.
    const std::uint64_t one = 1;
    barrier();
    ASSERT_FINE(farsum_accumulate(window, 1 - rank, 8000, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_accumulate(allocated, 1 - rank, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_unlock_all(allocated));
    barrier();
    EXPECT_EQ(memory[1000], 6u);
    EXPECT_EQ(*static_cast<const std::uint64_t*>(shared), 1u);
    ASSERT_FINE(farsum_window_free(&allocated));
    ASSERT_FINE(farsum_window_free(&window));
    munmap(memory, bytes);
  });
}

}  // namespace
}  // namespace farsum::test
