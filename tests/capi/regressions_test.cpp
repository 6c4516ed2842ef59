// What once went wrong, each as the program that met it: messages that poisoned their channel, handles that ran out,
// threads that kept one another out, and memory that did not come back.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "farsum_embed.h"
#include "rank_processes.hpp"
#include "words.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Job owner_job(Variables settings = {}) {
  Job job;
  job.settings = std::move(settings);
  job.settings["FARSUM_PATH"] = "owner";
  return job;
}

farsum_operation operation_on(int target, farsum_kind kind, farsum_completion completion) {
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.completion = completion;
  operation.target = target;
  return operation;
}

std::uint64_t* map_words(std::size_t bytes) {
  return static_cast<std::uint64_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

farsum_window adopt(void* memory, std::size_t bytes) {
  farsum_window window{};
  EXPECT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, nullptr, &window));
  return window;
}

bool is_promoted(farsum_window window, int rank) {
  farsum_region_info info{};
  for (int index = 0; farsum_window_region(window, rank, index, &info) == FARSUM_OK; ++index) {
    if (info.promoted != 0) return true;
  }
  return false;
}

// Whether no byte of the memory lies in a shared map, as the kernel sees it.
bool is_private(const void* memory, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/maps");
  std::uintptr_t covered = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::array<char, 5> permissions{};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, permissions.data()) != 3) continue;
    if (end <= first || begin >= first + bytes) continue;
    if (permissions[3] != 'p') return false;
    covered += std::min(end, first + bytes) - std::max(begin, first);
  }
  return covered == bytes;
}

TEST(OwnerPath, moves_twelve_bytes_named_as_doubles_and_goes_on_serving_their_sender) {
  run_ranks(owner_job(), [](int rank) {
    const Words words = allocate_words(64);
    ASSERT_FINE(farsum_lock_all(words.window));
    const std::uint64_t one = 1;
    const std::uint64_t mine_at = static_cast<std::uint64_t>(rank) * 64;
    constexpr std::uint64_t rounds = 3;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::string text = "round " + std::to_string(round) + " of " + std::to_string(rank);
      farsum_layout layout{};
      layout.kind = FARSUM_CONTIGUOUS;
      layout.bytes = 12;
      ASSERT_EQ(text.size(), layout.bytes);
      farsum_operation put = operation_on(1 - rank, FARSUM_PUT, FARSUM_IMPLICIT);
      put.type = FARSUM_DOUBLE;
      put.offset = mine_at;
      put.origin = text.data();
      put.origin_layout = put.target_layout = &layout;
      ASSERT_FINE(farsum_operate(words.window, &put, nullptr));
      ASSERT_FINE(farsum_flush(words.window, 1 - rank));
      std::array<char, 12> seen{};
      farsum_operation get = operation_on(1 - rank, FARSUM_GET, FARSUM_BLOCKING);
      get.type = FARSUM_DOUBLE;
      get.offset = mine_at;
      get.result = seen.data();
      get.target_layout = get.result_layout = &layout;
      ASSERT_FINE(farsum_operate(words.window, &get, nullptr));
      EXPECT_EQ(std::string(seen.data(), seen.size()), text);
      std::uint64_t old = 99;
      ASSERT_FINE(farsum_fetch_op(words.window, 1 - rank, 256, &one, &old, FARSUM_UINT64, FARSUM_SUM));
      EXPECT_EQ(old, round);
      ASSERT_FINE(farsum_accumulate(words.window, 1 - rank, 264, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    }
    ASSERT_FINE(farsum_unlock_all(words.window));
    barrier();
    EXPECT_EQ(words.mine[32], rounds);
    EXPECT_EQ(words.mine[33], rounds);
    farsum_window window = words.window;
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Requests, of_which_twenty_thousand_live_at_once_complete_as_themselves) {
  run_ranks(owner_job(), [](int rank) {
    constexpr std::size_t requests = 20'000;
    const Words words = allocate_words(requests + 1);
    const auto value_of = [](int of_rank, std::size_t index) {
      return static_cast<std::uint64_t>(of_rank) << 32 | (3 * index + 1);
    };
    for (std::size_t i = 0; i < requests; ++i) words.mine[i] = value_of(rank, i);
    barrier();
    ASSERT_FINE(farsum_lock_all(words.window));
    const std::uint64_t one = 1;
    std::vector<std::uint64_t> results(requests, ~std::uint64_t{0});
    std::vector<farsum_request> alive(requests);
    std::uint64_t tickets = 0;
    std::vector<std::uint64_t> expected(requests);
    for (std::size_t i = 0; i < requests; ++i) {
      const bool fetches = i % 4 == 3;
      farsum_operation operation =
          operation_on(1 - rank, fetches ? FARSUM_GET_ACCUMULATE : FARSUM_GET, FARSUM_EXPLICIT);
      operation.type = fetches ? FARSUM_UINT64 : FARSUM_BYTE;
      operation.op = FARSUM_SUM;
      operation.count = fetches ? 1 : 8;
      operation.offset = (fetches ? requests : i) * 8;
      operation.origin = fetches ? &one : nullptr;
      operation.result = &results[i];
      expected[i] = fetches ? tickets++ : value_of(1 - rank, i);
      ASSERT_FINE(farsum_operate(words.window, &operation, &alive[i]));
    }
    std::vector<std::uint64_t> names(requests);
    std::transform(alive.begin(), alive.end(), names.begin(), [](farsum_request request) { return request.bits; });
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << "two live requests have one handle";
    // The last first: slots are given back in another order than they were taken.
    for (std::size_t i = requests; i-- > 0;) {
      ASSERT_FINE(farsum_wait(&alive[i]));
      ASSERT_EQ(results[i], expected[i]) << i;
    }
    ASSERT_FINE(farsum_unlock_all(words.window));
    barrier();
    EXPECT_EQ(words.mine[requests], tickets);
    farsum_window window = words.window;
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(OwnerPath, lets_two_threads_flood_a_target_past_the_backlog_while_one_of_them_flushes) {
  run_ranks(owner_job({{"FARSUM_CHANNEL_BYTES", "131072"}}), [](int rank) {
    constexpr std::size_t width = 128;
    constexpr std::uint64_t rounds = 6000;
    const Words words = allocate_words(width);
    ASSERT_FINE(farsum_lock_all(words.window));
    if (rank == 0) {
      std::array<std::uint64_t, width> ones{};
      ones.fill(1);
      const auto flood = [&](std::uint64_t rounds_between_flushes) {
        for (std::uint64_t i = 1; i <= rounds; ++i) {
          ASSERT_FINE(farsum_accumulate(words.window, 1, 0, ones.data(), width, FARSUM_UINT64, FARSUM_SUM));
          if (rounds_between_flushes != 0 && i % rounds_between_flushes == 0) {
            ASSERT_FINE(farsum_flush(words.window, 1));
          }
        }
      };
      std::thread flushing([&] { flood(1500); });
      flood(0);
      flushing.join();
    }
    ASSERT_FINE(farsum_unlock_all(words.window));
    barrier();
    for (std::size_t i = 0; i < width; ++i) ASSERT_EQ(words.mine[i], rank == 1 ? 2 * rounds : 0) << i;
    farsum_window window = words.window;
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(OwnerPath, carries_long_scattered_lists_with_the_longest_inline_operands_and_without_the_kernel) {
  for (const char* channel_bytes : {"131072", "262144", "1048576"}) {
    const Job job = owner_job(
        {{"FARSUM_INLINE_BYTES", "24576"}, {"FARSUM_ATTACH", "refuse"}, {"FARSUM_CHANNEL_BYTES", channel_bytes}});
    run_ranks(job, [](int rank) {
      // Pieces so long that the list and the operand of one message are both as long as they may be, and shorter ones.
      for (const std::size_t width : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{6}}) {
        constexpr std::size_t pieces = 6000;
        const std::size_t count = pieces * width;
        const Words words = allocate_words(2 * count);
        std::iota(words.mine, words.mine + 2 * count, std::uint64_t{1000});
        std::vector<std::int64_t> offsets(pieces);
        for (std::size_t i = 0; i < pieces; ++i) offsets[i] = static_cast<std::int64_t>((pieces - 1 - i) * 16 * width);
        std::vector<std::uint64_t> operand(count);
        std::iota(operand.begin(), operand.end(), std::uint64_t{1});
        std::vector<std::uint64_t> old(count);
        farsum_layout layout{};
        layout.kind = FARSUM_INDEXED;
        layout.bytes = 8 * width;
        layout.pieces = pieces;
        layout.offsets = offsets.data();
        barrier();
        ASSERT_FINE(farsum_lock_all(words.window));
        farsum_operation operation = operation_on(1 - rank, FARSUM_GET_ACCUMULATE, FARSUM_IMPLICIT);
        operation.type = FARSUM_UINT64;
        operation.op = FARSUM_SUM;
        operation.origin = operand.data();
        operation.result = old.data();
        operation.target_layout = &layout;
        ASSERT_FINE(farsum_operate(words.window, &operation, nullptr));
        ASSERT_FINE(farsum_flush(words.window, 1 - rank));
        ASSERT_FINE(farsum_unlock_all(words.window));
        barrier();
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t word = 2 * width * (pieces - 1 - i / width) + i % width;
          ASSERT_EQ(old[i], 1000 + word) << i;
          ASSERT_EQ(words.mine[word], 1000 + word + operand[i]) << i;
          ASSERT_EQ(words.mine[word + width], 1000 + word + width) << i;
        }
        farsum_window window = words.window;
        ASSERT_FINE(farsum_window_free(&window));
      }
    });
  }
}

std::uint64_t waits_slept() {
  farsum_statistics statistics{};
  statistics.struct_bytes = sizeof statistics;
  EXPECT_FINE(farsum_statistics_read(&statistics));
  return statistics.waits_slept;
}

TEST(Epochs, let_one_thread_post_while_another_waits_in_complete) {
  Job job;
  job.settings = {{"FARSUM_SPIN_NS", "0"}};
  run_ranks(job, [](int rank) {
    const Words words = allocate_words(8);
    const int peer = 1 - rank;
    const std::uint64_t one = 1;
    constexpr std::uint64_t rounds = 20;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      barrier();
      const auto access = [&] {
        ASSERT_FINE(farsum_start(words.window, &peer, 1));
        ASSERT_FINE(farsum_accumulate(words.window, peer, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(farsum_complete(words.window));
      };
      if (rank == 0) {
        // The peer posts only after it has been posted to: the thread sleeps in complete until this one posts.
        const std::uint64_t slept = waits_slept();
        std::thread accessing(access);
        while (waits_slept() == slept) std::this_thread::yield();
        ASSERT_FINE(farsum_post(words.window, &peer, 1));
        accessing.join();
      } else {
        ASSERT_FINE(farsum_start(words.window, &peer, 1));
        ASSERT_FINE(farsum_flush(words.window, peer));
        ASSERT_FINE(farsum_post(words.window, &peer, 1));
        ASSERT_FINE(farsum_accumulate(words.window, peer, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(farsum_complete(words.window));
      }
      ASSERT_FINE(farsum_wait_exposure(words.window));
      EXPECT_EQ(words.mine[0], round + 1);
    }
    farsum_window window = words.window;
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Epochs, refuse_a_rank_that_is_listed_twice) {
  run_ranks(2, [](int rank) {
    const Words words = allocate_words(8);
    const int peer = 1 - rank;
    const std::array<int, 2> twice{peer, peer};
    const std::array<int, 3> twice_with_another_between{peer, rank, peer};
    const auto sentence = AllOf(HasSubstr("rank " + std::to_string(peer)), HasSubstr("twice"));
    EXPECT_REFUSED(farsum_start(words.window, twice.data(), 2), FARSUM_ERR_ARGUMENT,
                   AllOf(HasSubstr("farsum_start"), sentence));
    EXPECT_REFUSED(farsum_start(words.window, twice_with_another_between.data(), 3), FARSUM_ERR_ARGUMENT,
                   AllOf(HasSubstr("farsum_start"), sentence));
    EXPECT_REFUSED(farsum_post(words.window, twice.data(), 2), FARSUM_ERR_ARGUMENT,
                   AllOf(HasSubstr("farsum_post"), sentence));
    EXPECT_REFUSED(farsum_post(words.window, twice_with_another_between.data(), 3), FARSUM_ERR_ARGUMENT,
                   AllOf(HasSubstr("farsum_post"), sentence));
    // Nothing was begun: the same ranks, each once, are an epoch.
    const std::uint64_t one = 1;
    ASSERT_FINE(farsum_post(words.window, twice_with_another_between.data(), 2));
    ASSERT_FINE(farsum_start(words.window, twice_with_another_between.data(), 2));
    for (const int target : {0, 1}) {
      ASSERT_FINE(farsum_accumulate(words.window, target, 0, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    }
    ASSERT_FINE(farsum_complete(words.window));
    ASSERT_FINE(farsum_wait_exposure(words.window));
    EXPECT_EQ(words.mine[0], 2u);
    farsum_window window = words.window;
    ASSERT_FINE(farsum_window_free(&window));
  });
}

void add_one_to_the_peer(farsum_window window, int rank, std::uint64_t word) {
  const std::uint64_t one = 1;
  ASSERT_FINE(farsum_lock_all(window));
  ASSERT_FINE(farsum_accumulate(window, 1 - rank, word * 8, &one, 1, FARSUM_UINT64, FARSUM_SUM));
  ASSERT_FINE(farsum_unlock_all(window));
  barrier();
}

// All ranks are in the call then; in the free itself others may be at their MPI library again.
TEST(Promotion, is_undone_where_the_ranks_agree_that_the_window_goes) {
  run_ranks(3, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    std::uint64_t* const memory = map_words(bytes);
    // Of one rank nothing is promoted; it comes to the same meetings.
    farsum_window window = adopt(memory, rank == 2 ? 0 : bytes);
    if (rank != 2 && !is_promoted(window, rank)) GTEST_SKIP() << "nothing is promoted here";
    memory[7] = 8;
    ASSERT_FINE(farsum_window_prepare_free(window));
    EXPECT_TRUE(is_private(memory, bytes));
    ASSERT_FINE(farsum_window_free(&window));
    EXPECT_EQ(memory[7], 8u);
    munmap(memory, bytes);
  });
}

// A group of one rank has no neighbour who would gain from it, though the job has.
TEST(Promotion, is_left_out_where_no_other_rank_of_the_node_is_in_the_group) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    std::uint64_t* const memory = map_words(bytes);
    memory[7] = 8;
    farsum_group alone{};
    ASSERT_FINE(farsum_group_create(farsum_world(), &rank, 1, &alone));
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(alone, memory, bytes, nullptr, &window));
    EXPECT_FALSE(is_promoted(window, 0));
    EXPECT_TRUE(is_private(memory, bytes));
    const std::uint64_t one = 1;
    ASSERT_FINE(farsum_lock_all(window));
    ASSERT_FINE(farsum_accumulate(window, 0, 56, &one, 1, FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_unlock_all(window));
    EXPECT_EQ(memory[7], 9u);
    ASSERT_FINE(farsum_window_free(&window));
    ASSERT_FINE(farsum_group_free(&alone));
    munmap(memory, bytes);
  });
}

// In make test-all: every order of many windows.
TEST(Promotion, of_windows_freed_in_different_orders_is_undone) {
  run_ranks(3, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    std::array<std::uint64_t*, 3> memories{};
    std::array<farsum_window, 3> windows{};
    for (std::size_t i = 0; i < 3; ++i) {
      memories[i] = map_words(bytes);
      windows[i] = adopt(memories[i], bytes);
      memories[i][7] = i;
    }
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_FINE(farsum_window_free(&windows[(i + static_cast<std::size_t>(rank)) % 3]));
    barrier();
    // Those that had to wait for others go with the next call.
    farsum_window last = adopt(memories[0], 64);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(is_private(memories[i], bytes));
      EXPECT_EQ(memories[i][7], i);
    }
    ASSERT_FINE(farsum_window_free(&last));
    for (std::uint64_t* const memory : memories) munmap(memory, bytes);
  });
}

TEST(Promotion, that_could_not_be_undone_is_undone_when_another_goes) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    std::uint64_t* const memory = map_words(bytes);
    std::uint64_t* const other = map_words(bytes);
    farsum_window window = adopt(memory, bytes);
    if (!is_promoted(window, rank)) GTEST_SKIP() << "nothing is promoted here";
    memory[7] = 8;
    // A thread that waits amid a write is not stopped, or its write would be cut short.
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    std::vector<char> data(std::size_t{1} << 20);
    std::promise<pid_t> id;
    std::thread writing([&] {
      id.set_value(gettid());
      EXPECT_EQ(write(ends[1], data.data(), data.size()), std::ssize(data));
    });
    const std::string in_call = "/proc/self/task/" + std::to_string(id.get_future().get()) + "/syscall";
    for (std::string word; word != std::to_string(SYS_write);) std::ifstream(in_call) >> word;
    ASSERT_FINE(farsum_window_free(&window));
    EXPECT_FALSE(is_private(memory, bytes));
    std::vector<char> received(data.size());
    for (std::size_t at = 0; at < received.size();) {
      const ssize_t got = ::read(ends[0], received.data() + at, received.size() - at);
      ASSERT_GT(got, 0);
      at += static_cast<std::size_t>(got);
    }
    writing.join();
    window = adopt(other, bytes);
    ASSERT_FINE(farsum_window_free(&window));
    EXPECT_TRUE(is_private(memory, bytes));
    EXPECT_EQ(memory[7], 8u);
    for (const int end : ends) close(end);
    for (std::uint64_t* const each : {memory, other}) munmap(each, bytes);
  });
}

TEST(Promotion, outlives_its_window_while_another_exposes_the_memory_and_is_undone_with_the_last) {
  // Freed in either order.
  for (const bool promoting_first : {true, false}) {
    run_ranks(2, [&](int rank) {
      constexpr std::size_t bytes = std::size_t{4} << 20;
      constexpr std::size_t count = bytes / 8;
      std::uint64_t* const memory = map_words(bytes);
      std::iota(memory, memory + count, static_cast<std::uint64_t>(rank) << 32);
      ASSERT_TRUE(is_private(memory, bytes));
      farsum_window promoting = adopt(memory, bytes);
      if (!is_promoted(promoting, rank)) GTEST_SKIP() << "nothing is promoted here";
      EXPECT_FALSE(is_private(memory, bytes));
      // Over the latter half only, so that the windows differ.
      farsum_window other = adopt(memory + count / 2, bytes / 2);
      add_one_to_the_peer(promoting, rank, 5);
      add_one_to_the_peer(other, rank, 6);
      farsum_window& remaining = promoting_first ? other : promoting;
      ASSERT_FINE(farsum_window_free(promoting_first ? &promoting : &other));
      const std::size_t base = promoting_first ? count / 2 : 0;
      add_one_to_the_peer(remaining, rank, 7);
      EXPECT_EQ(memory[base + 7], (static_cast<std::uint64_t>(rank) << 32) + base + 8);
      // The owner's own stores and the peer's gets still meet in one memory.
      memory[base + 9] = 77 + static_cast<std::uint64_t>(rank);
      barrier();
      std::uint64_t seen = 0;
      ASSERT_FINE(farsum_lock_all(remaining));
      ASSERT_FINE(farsum_get(remaining, 1 - rank, 9 * 8, &seen, 8));
      ASSERT_FINE(farsum_unlock_all(remaining));
      EXPECT_EQ(seen, 77 + static_cast<std::uint64_t>(1 - rank));
      barrier();
      ASSERT_FINE(farsum_window_free(&remaining));
      EXPECT_TRUE(is_private(memory, bytes));
      memory[base + 7] -= 1;
      memory[base + 9] = (static_cast<std::uint64_t>(rank) << 32) + base + 9;
      memory[5] -= 1;
      memory[count / 2 + 6] -= 1;
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(memory[i], (static_cast<std::uint64_t>(rank) << 32) + i) << i;
      // And it can be exposed again.
      farsum_window again = adopt(memory, bytes);
      add_one_to_the_peer(again, rank, 3);
      EXPECT_EQ(memory[3], (static_cast<std::uint64_t>(rank) << 32) + 4);
      ASSERT_FINE(farsum_window_free(&again));
      munmap(memory, bytes);
    });
  }
}

TEST(Promotion, leaves_the_program_its_memory_after_finalize_though_a_thread_of_it_runs) {
  // The window freed by the program, or by farsum_finalize.
  for (const bool frees : {true, false}) {
    Job job;
    job.starts = false;
    run_ranks(job, [&](int rank) {
      ASSERT_FINE(farsum_init(nullptr));
      constexpr std::size_t bytes = std::size_t{4} << 20;
      constexpr std::size_t count = bytes / 8;
      std::uint64_t* const memory = map_words(bytes);
      std::iota(memory, memory + count, static_cast<std::uint64_t>(rank) << 32);
      farsum_window window = adopt(memory, bytes);
      add_one_to_the_peer(window, rank, 0);
      std::promise<void> over;
      std::atomic<std::uint64_t> stores{0};
      // Stores into the buffer all along.
      std::thread storing([&, until = over.get_future()] {
        volatile std::uint64_t* const word = memory + count - 1;
        while (until.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
          *word = *word + 1;
          stores.fetch_add(1, std::memory_order_relaxed);
          std::this_thread::yield();
        }
      });
      if (frees) EXPECT_FINE(farsum_window_free(&window));
      EXPECT_FINE(farsum_finalize());
      const auto expect_contents = [&](std::uint64_t added) {
        EXPECT_EQ(memory[0], (static_cast<std::uint64_t>(rank) << 32) + 1 + added);
        for (std::size_t i = 1; i < count - 1; ++i) {
          ASSERT_EQ(memory[i], (static_cast<std::uint64_t>(rank) << 32) + i + added) << i;
        }
      };
      expect_contents(0);
      for (std::size_t i = 0; i < count - 1; ++i) memory[i] += 10;
      expect_contents(10);
      over.set_value();
      storing.join();
      EXPECT_EQ(memory[count - 1], (static_cast<std::uint64_t>(rank) << 32) + count - 1 + stores.load());
      munmap(memory, bytes);
    });
  }
}

}  // namespace
}  // namespace farsum::test
