// Memory of the node that a program asks for block by block, and windows over it.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "element_lists.hpp"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::byte* allocate(std::size_t bytes) {
  void* memory = nullptr;
  EXPECT_FINE(farsum_memory_allocate(bytes, &memory));
  return static_cast<std::byte*>(memory);
}

TEST(Memory, blocks_of_every_size_are_aligned_apart_and_writable) {
  run_ranks(1, [](int) {
    struct Given {
      std::byte* memory;
      std::size_t bytes;
    };
    std::vector<Given> given;
    std::vector<std::size_t> sizes = {0,   1,   63,   64,   65,    511,   512,   513,
                                      640, 641, 1024, 1025, 32768, 32769, 65535, 65536};
    sizes.insert(sizes.end(), {65537, 262144, 262145, 1 << 20, (1 << 20) + 1, 8 << 20, 64 << 20, (64 << 20) + 1});
    for (int round = 0; round < 20; ++round) {
      for (const std::size_t bytes : sizes) {
        if (bytes > (1 << 20) && round > 0) continue;
        std::byte* memory = allocate(bytes);
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (bytes >= 65536 ? 4096 : 64), 0U) << bytes;
        std::memset(memory, round, std::min<std::size_t>(bytes, 300000));
        given.push_back({memory, bytes});
      }
    }
    std::sort(given.begin(), given.end(), [](const Given& a, const Given& b) { return a.memory < b.memory; });
    for (std::size_t i = 1; i < given.size(); ++i)
      EXPECT_LE(given[i - 1].memory + given[i - 1].bytes, given[i].memory) << given[i - 1].bytes;
    for (const Given& block : given) ASSERT_FINE(farsum_memory_free(block.memory));
  });
}

TEST(Memory, blocks_begin_at_multiples_of_what_is_asked_for_and_are_apart) {
  run_ranks(1, [](int) {
    struct Given {
      std::byte* memory;
      std::size_t bytes;
    };
    std::vector<Given> given;
    for (int round = 0; round < 3; ++round) {
      for (std::size_t alignment = 1; alignment <= FARSUM_MOST_ALIGNMENT; alignment *= 2) {
        for (const std::size_t bytes : {0, 1, 200, 4097, 32768, 32769, 100'000, 3 << 20}) {
          void* memory = nullptr;
          ASSERT_FINE(farsum_memory_allocate_aligned(bytes, alignment, &memory));
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0U) << bytes << " of " << alignment;
          std::memset(memory, round, std::min<std::size_t>(bytes, 5000));
          given.push_back({static_cast<std::byte*>(memory), bytes});
        }
      }
      // Half of them go, for others to take their places.
      std::stable_partition(given.begin(), given.end(), [](const Given& one) { return one.bytes % 3 != 0; });
      for (std::size_t left = given.size() / 2; given.size() > left; given.pop_back())
        ASSERT_FINE(farsum_memory_free(given.back().memory));
    }
    std::sort(given.begin(), given.end(), [](const Given& a, const Given& b) { return a.memory < b.memory; });
    for (std::size_t i = 1; i < given.size(); ++i)
      EXPECT_LE(given[i - 1].memory + given[i - 1].bytes, given[i].memory) << given[i - 1].bytes;
    for (const Given& block : given) {
      EXPECT_NE(farsum_memory_free(block.memory + 1), FARSUM_OK);
      ASSERT_FINE(farsum_memory_free(block.memory));
      EXPECT_NE(farsum_memory_free(block.memory), FARSUM_OK);
    }
    void* memory = nullptr;
    EXPECT_REFUSED(farsum_memory_allocate_aligned(~std::size_t{0}, 1 << 20, &memory), FARSUM_ERR_NO_MEMORY,
                   HasSubstr("farsum_memory_allocate_aligned: asked for"));
    EXPECT_REFUSED(farsum_memory_allocate_aligned(8, 1 << 20, nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("not be null"));
  });
}

TEST(Memory, a_block_that_was_freed_is_handed_out_again) {
  run_ranks(1, [](int) {
    for (const std::size_t bytes : {8, 4096, 100'000, 3 << 20}) {
      std::byte* first = allocate(bytes);
      ASSERT_FINE(farsum_memory_free(first));
      EXPECT_EQ(allocate(bytes), first) << bytes;
      ASSERT_FINE(farsum_memory_free(first));
    }
  });
}

TEST(Memory, what_is_no_live_block_is_refused) {
  run_ranks(1, [](int) {
    void* window_memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, nullptr, &window_memory, &window));
    std::vector<char> heap(100);
    const auto refused = HasSubstr("is no block of farsum_memory_allocate, or was freed before");
    EXPECT_REFUSED(farsum_memory_free(heap.data()), FARSUM_ERR_ARGUMENT, refused);
    EXPECT_REFUSED(farsum_memory_free(window_memory), FARSUM_ERR_ARGUMENT, refused);
    for (const std::size_t bytes : {64, 5000, 200'000, 100 << 20}) {
      std::byte* block = allocate(bytes);
      EXPECT_REFUSED(farsum_memory_free(block + 1), FARSUM_ERR_ARGUMENT, refused);
      EXPECT_REFUSED(farsum_memory_free(block + 64), FARSUM_ERR_ARGUMENT, refused);
      EXPECT_FINE(farsum_memory_free(block));
      EXPECT_REFUSED(farsum_memory_free(block), FARSUM_ERR_ARGUMENT, refused);
    }
    EXPECT_FINE(farsum_memory_free(nullptr));
    EXPECT_REFUSED(farsum_memory_allocate(8, nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("must not be null"));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Memory, more_than_the_node_has_is_refused_with_the_bytes_asked_and_available) {
  run_ranks(1, [](int) {
    void* memory = nullptr;
    EXPECT_REFUSED(farsum_memory_allocate(std::size_t{1} << 39, &memory), FARSUM_ERR_NO_MEMORY,
                   AllOf(HasSubstr("farsum_memory_allocate: asked for 549755813888 bytes"), HasSubstr("available")));
    EXPECT_REFUSED(farsum_memory_allocate(~std::size_t{0}, &memory), FARSUM_ERR_NO_MEMORY, HasSubstr("asked for"));
    EXPECT_REFUSED(farsum_memory_allocate(~std::size_t{0} / 2, &memory), FARSUM_ERR_NO_MEMORY, HasSubstr("asked for"));
    ASSERT_FINE(farsum_memory_free(allocate(64)));
  });
}

TEST(Memory, a_small_segment_is_used_up_and_comes_back) {
  Job job;
  job.ranks = 1;
  job.settings = {{"FARSUM_SEGMENT_BYTES", std::to_string(96 << 20)}};
  run_ranks(job, [](int) {
    for (const std::size_t bytes : {1000, 50'000, 3'000'000}) {
      for (int round = 0; round < 3; ++round) {
        std::vector<void*> blocks;
        void* memory = nullptr;
        farsum_status status = FARSUM_OK;
        while ((status = farsum_memory_allocate(bytes, &memory)) == FARSUM_OK) blocks.push_back(memory);
        EXPECT_EQ(status, FARSUM_ERR_NO_MEMORY) << farsum_last_error();
        EXPECT_GT(blocks.size() * bytes, std::size_t{60} << 20) << bytes;
        for (void* block : blocks) ASSERT_FINE(farsum_memory_free(block));
      }
    }
  });
}

TEST(Memory, is_reached_directly_by_every_rank_through_windows_adopted_and_attached) {
  run_ranks(3, [](int rank) {
    for (const std::size_t bytes : {256, 5000, 70'000, 2'000'000}) {
      std::byte* memory = allocate(bytes);
      std::memset(memory, 0, bytes);
      farsum_window adopted{}, dynamic{};
      ASSERT_FINE(farsum_window_adopt(farsum_world(), memory + 8, bytes - 8, nullptr, &adopted));
      ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &dynamic));
      ASSERT_FINE(farsum_window_attach(dynamic, memory, bytes));
      std::uint64_t address[3];
      const auto mine = reinterpret_cast<std::uint64_t>(memory);
      ASSERT_FINE(farsum_allgather(farsum_world(), &mine, address, sizeof mine));
      ASSERT_FINE(farsum_lock_all(adopted));
      ASSERT_FINE(farsum_lock_all(dynamic));
      const std::uint64_t one = 1;
      for (int round = 0; round < 100; ++round) {
        for (int target = 0; target < 3; ++target) {
          farsum_region_info info;
          ASSERT_FINE(farsum_window_region(adopted, target, 0, &info));
          EXPECT_EQ(info.bulk_path, FARSUM_PATH_DIRECT) << info.reason;
          EXPECT_EQ(info.atomic_path, FARSUM_PATH_DIRECT) << info.reason;
          ASSERT_FINE(farsum_window_region(dynamic, target, 0, &info));
          EXPECT_EQ(info.atomic_path, FARSUM_PATH_DIRECT) << info.reason;
          // The same word through both windows.
          std::uint64_t old = 0;
          ASSERT_FINE(farsum_fetch_op(adopted, target, 8, &one, &old, FARSUM_UINT64, FARSUM_SUM));
          ASSERT_FINE(farsum_accumulate(dynamic, target, address[target] + 16, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        }
      }
      ASSERT_FINE(farsum_unlock_all(adopted));
      ASSERT_FINE(farsum_unlock_all(dynamic));
      barrier();
      EXPECT_EQ(reinterpret_cast<std::uint64_t*>(memory)[2], 600U) << bytes << " rank " << rank;
      ASSERT_FINE(farsum_window_detach(dynamic, memory));
      ASSERT_FINE(farsum_window_free(&adopted));
      ASSERT_FINE(farsum_window_free(&dynamic));
      ASSERT_FINE(farsum_memory_free(memory));
    }
  });
}

TEST(Memory, of_a_window_that_promised_nothing_stays_under_locks_when_another_promises_single_elements) {
  run_ranks(2, [](int rank) {
    std::byte* memory = allocate(4096);
    std::memset(memory, 0, 4096);
    farsum_window_options promise{};
    promise.struct_bytes = sizeof promise;
    promise.promises = FARSUM_SINGLE_ELEMENT;
    farsum_window promised{}, plain{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 4096, &promise, &promised));
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 4096, nullptr, &plain));
    ASSERT_FINE(farsum_lock_all(promised));
    ASSERT_FINE(farsum_lock_all(plain));
    std::vector<std::uint64_t> ones(512, 1);
    const std::uint64_t one = 1;
    for (int round = 0; round < 2000; ++round) {
      ASSERT_FINE(farsum_accumulate(promised, 0, 8 * (round % 512), &one, 1, FARSUM_UINT64, FARSUM_SUM));
      ASSERT_FINE(farsum_accumulate(plain, 0, 0, ones.data(), ones.size(), FARSUM_UINT64, FARSUM_SUM));
    }
    ASSERT_FINE(farsum_unlock_all(promised));
    ASSERT_FINE(farsum_unlock_all(plain));
    barrier();
    if (rank == 0) {
      std::uint64_t total = 0;
      for (int i = 0; i < 512; ++i) total += reinterpret_cast<std::uint64_t*>(memory)[i];
      EXPECT_EQ(total, 2U * (2000 + 2000 * 512));
    }
    ASSERT_FINE(farsum_window_free(&promised));
    ASSERT_FINE(farsum_window_free(&plain));
    ASSERT_FINE(farsum_memory_free(memory));
  });
}

TEST(Memory, is_shared_by_threads_that_come_and_go) {
  run_ranks(1, [](int) {
    // Blocks wander: each thread frees what another has allocated.
    constexpr int threads = 4;
    std::array<std::atomic<std::byte*>, 64> places{};
    for (int generation = 0; generation < 5; ++generation) {
      std::vector<std::thread> running;
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
          std::mt19937 random(static_cast<unsigned>(generation * threads + thread));
          for (int round = 0; round < 5000; ++round) {
            const std::size_t bytes = std::size_t{1} << random() % 18;
            std::byte* block = allocate(bytes);
            std::memset(block, thread, std::min<std::size_t>(bytes, 64));
            if (std::byte* other = places[random() % places.size()].exchange(block))
              EXPECT_FINE(farsum_memory_free(other));
          }
        });
      }
      for (std::thread& thread : running) thread.join();
    }
    std::set<std::byte*> seen;
    for (std::atomic<std::byte*>& place : places) {
      std::byte* block = place.load();
      if (block == nullptr) continue;
      EXPECT_TRUE(seen.insert(block).second);
      EXPECT_FINE(farsum_memory_free(block));
    }
  });
}

TEST(Memory, ends_with_its_context_and_begins_with_the_next) {
  Job job;
  job.ranks = 2;
  job.starts = false;
  run_ranks(job, [](int) {
    void* memory = nullptr;
    EXPECT_REFUSED(farsum_memory_allocate(8, &memory), FARSUM_ERR_NOT_INITIALIZED, HasSubstr("farsum_init"));
    for (int round = 0; round < 5; ++round) {
      ASSERT_FINE(farsum_init(nullptr));
      std::byte* kept = allocate(100);
      std::memset(kept, 1, 100);
      ASSERT_FINE(farsum_memory_free(allocate(100)));
      std::thread([] { EXPECT_FINE(farsum_memory_free(allocate(100))); }).join();
      ASSERT_FINE(farsum_finalize());
      EXPECT_REFUSED(farsum_memory_free(kept), FARSUM_ERR_NOT_INITIALIZED, HasSubstr("farsum_init"));
    }
  });
}

TEST(Memory, is_not_for_a_forked_child) {
  run_ranks(1, [](int) {
    std::byte* block = allocate(64);
    ASSERT_FINE(farsum_memory_free(allocate(64)));
    const pid_t child = fork();
    if (child == 0) {
      void* memory = nullptr;
      const bool refused = farsum_memory_allocate(64, &memory) == FARSUM_ERR_NOT_INITIALIZED &&
                           farsum_memory_free(block) == FARSUM_ERR_NOT_INITIALIZED;
      _exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ASSERT_FINE(farsum_memory_free(block));
  });
}

TEST(Memory, that_was_freed_under_a_window_lets_the_window_be_freed) {
  run_ranks(2, [](int rank) {
    std::byte* memory = allocate(1 << 20);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 1 << 20, nullptr, &window));
    barrier();
    ASSERT_FINE(farsum_memory_free(memory));
    barrier();
    ASSERT_FINE(farsum_lock_all(window));
    std::uint64_t word = 0;
    EXPECT_FINE(farsum_get(window, 1 - rank, 64, &word, sizeof word));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

farsum_window_options promising(std::uint32_t promises) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  options.promises = promises;
  return options;
}

TEST(ContiguousParts, follow_one_another_without_a_gap_whatever_their_sizes) {
  run_ranks(4, [](int rank) {
    const farsum_window_options options = promising(FARSUM_CONTIGUOUS_PARTS);
    const std::size_t shapes[][4] = {
        {0, 0, 0, 0}, {1, 2, 3, 4},         {0, 7, 0, 9}, {16384, 1, 16383, 8}, {100'003, 0, 5, 70'000},
        {8, 8, 8, 8}, {0, 0, 0, 1'000'000}, {3, 0, 0, 0}};
    for (const auto& sizes : shapes) {
      void* memory = nullptr;
      farsum_window window{};
      ASSERT_FINE(farsum_window_allocate(farsum_world(), sizes[rank], &options, &memory, &window));
      std::byte* end = nullptr;
      for (int other = 0; other < 4; ++other) {
        void* address = nullptr;
        std::size_t bytes = 1;
        ASSERT_FINE(farsum_window_shared_query(window, other, &address, &bytes));
        EXPECT_EQ(bytes, sizes[other]);
        ASSERT_NE(address, nullptr);
        if (other == rank) {
          EXPECT_EQ(address, memory);
        }
        if (end != nullptr) {
          EXPECT_EQ(address, end);
        }
        if (other == 0) {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 64, 0U);
        }
        end = static_cast<std::byte*>(address) + bytes;
      }
      std::memset(memory, rank + 1, sizes[rank]);
      barrier();
      const int next = (rank + 1) % 4;
      void* address = nullptr;
      std::size_t bytes = 0;
      ASSERT_FINE(farsum_window_shared_query(window, next, &address, &bytes));
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(static_cast<std::byte*>(address)[i], std::byte(next + 1)) << i;
      barrier();
      ASSERT_FINE(farsum_window_free(&window));
    }
  });
}

bool is_multiple(const void* address, std::size_t of) { return reinterpret_cast<std::uintptr_t>(address) % of == 0; }

// Each rank asks for another alignment, and for other sizes.
TEST(AllocatedParts, begin_at_multiples_of_what_their_ranks_ask_for) {
  run_ranks(3, [](int rank) {
    const std::size_t sizes[] = {0, 1, 64, 300, 4096, 20'000, 16384, 5 << 20};
    for (std::size_t alignment = 1; alignment <= FARSUM_MOST_ALIGNMENT; alignment *= 2) {
      for (const std::size_t base_size : sizes) {
        const std::size_t bytes = base_size + (base_size == 0 ? 0 : 8 * static_cast<std::size_t>(rank));
        farsum_window_options options = promising(0);
        // Rank 1 asks for half of it, rank 2 for nothing.
        const std::size_t wish = rank == 2 ? 0 : rank == 1 ? std::max<std::size_t>(alignment / 2, 1) : alignment;
        options.alignment = wish;
        void* memory = nullptr;
        farsum_window window{};
        ASSERT_FINE(farsum_window_allocate(farsum_world(), bytes, &options, &memory, &window));
        if (bytes != 0) {
          ASSERT_TRUE(is_multiple(memory, std::max<std::size_t>(wish, 64))) << bytes << " at " << memory;
        }
        std::memset(memory, rank + 1, bytes);
        barrier();
        for (int other = 0; other < 3; ++other) {
          void* address = nullptr;
          std::size_t there = 0;
          ASSERT_FINE(farsum_window_shared_query(window, other, &address, &there));
          if (there == 0) continue;
          ASSERT_EQ(static_cast<std::byte*>(address)[0], std::byte(other + 1));
          ASSERT_EQ(static_cast<std::byte*>(address)[there - 1], std::byte(other + 1));
        }
        barrier();
        ASSERT_FINE(farsum_window_free(&window));
      }
    }
  });
}

TEST(AllocatedParts, are_aligned_to_powers_of_two_up_to_two_mebibytes_only) {
  run_ranks(1, [](int) {
    void* memory = nullptr;
    farsum_window window{};
    for (const std::size_t alignment : {std::size_t{3}, std::size_t{96}, std::size_t{4} << 20, ~std::size_t{0}}) {
      farsum_window_options options = promising(0);
      options.alignment = alignment;
      EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window), FARSUM_ERR_ARGUMENT,
                     HasSubstr("a power of two up to 2097152"));
      EXPECT_REFUSED(farsum_memory_allocate_aligned(8, alignment, &memory), FARSUM_ERR_ARGUMENT,
                     HasSubstr("a power of two up to 2097152"));
    }
    EXPECT_REFUSED(farsum_memory_allocate_aligned(8, 0, &memory), FARSUM_ERR_ARGUMENT, HasSubstr("alignment 0"));
    // A caller of before the member.
    farsum_window_options options = promising(0);
    options.alignment = 3;
    options.struct_bytes = offsetof(farsum_window_options, alignment);
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

// Of pages, which is what promotion moves: all of a neighbour's part is mapped here, or it has no address.
TEST(SharedQuery, of_adopted_memory_tells_the_own_address_and_that_of_what_is_mapped_whole) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    auto* pages =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(pages, rank + 1, bytes);
    std::byte* of_node = allocate(5000);
    std::memset(of_node, rank + 1, 5000);
    std::uint64_t word = 0;
    struct Case {
      std::byte* memory;
      std::size_t bytes;
      bool is_mapped;
    };
    const Case cases[] = {{pages, bytes, true},
                          {pages + 16, bytes - 16, false},
                          {of_node + 8, 4000, true},
                          {reinterpret_cast<std::byte*>(&word), 8, false},
                          {pages, 0, false}};
    for (const Case& one : cases) {
      farsum_window window{};
      ASSERT_FINE(farsum_window_adopt(farsum_world(), one.memory, one.bytes, nullptr, &window));
      void* address = nullptr;
      std::size_t there = 1;
      ASSERT_FINE(farsum_window_shared_query(window, rank, &address, &there));
      EXPECT_EQ(address, one.memory);
      EXPECT_EQ(there, one.bytes);
      ASSERT_FINE(farsum_window_shared_query(window, 1 - rank, &address, &there));
      EXPECT_EQ(there, one.bytes);
      EXPECT_EQ(address != nullptr, one.is_mapped) << one.bytes;
      if (address != nullptr) {
        EXPECT_EQ(static_cast<std::byte*>(address)[0], std::byte(2 - rank));
        EXPECT_EQ(static_cast<std::byte*>(address)[there - 1], std::byte(2 - rank));
      }
      barrier();
      ASSERT_FINE(farsum_window_free(&window));
    }
    farsum_window dynamic{};
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &dynamic));
    ASSERT_FINE(farsum_window_attach(dynamic, pages, bytes));
    void* address = pages;
    std::size_t there = 1;
    for (int of = 0; of < 2; ++of) {
      ASSERT_FINE(farsum_window_shared_query(dynamic, of, &address, &there));
      EXPECT_EQ(address, nullptr);
      EXPECT_EQ(there, 0U);
    }
    ASSERT_FINE(farsum_window_free(&dynamic));
    ASSERT_FINE(farsum_memory_free(of_node));
    munmap(pages, bytes);
  });
}

TEST(ContiguousParts, are_for_allocated_windows) {
  run_ranks(1, [](int) {
    const farsum_window_options options = promising(FARSUM_CONTIGUOUS_PARTS);
    std::uint64_t word = 0;
    farsum_window window{};
    EXPECT_REFUSED(farsum_window_adopt(farsum_world(), &word, 8, &options, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("farsum_window_allocate"));
    EXPECT_REFUSED(farsum_window_create_dynamic(farsum_world(), &options, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("farsum_window_allocate"));
  });
}

// The whole address space as one window, as MPI_Win_create(MPI_BOTTOM, huge) makes it.
TEST(AddressSpace, exposed_from_zero_reaches_all_that_is_mapped_and_refuses_the_rest_one_by_one) {
  run_ranks(2, [](int rank) {
    farsum_window everything{}, allocated{};
    void* memory = nullptr;
    ASSERT_FINE(farsum_window_adopt(farsum_world(), nullptr, std::size_t{1} << 62, nullptr, &everything));
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, nullptr, &memory, &allocated));
    std::byte* block = allocate(4096);
    std::memset(block, 0, 4096);
    std::vector<std::uint64_t> heap(1000, 0);
    const std::uint64_t mine[3] = {reinterpret_cast<std::uint64_t>(heap.data()), reinterpret_cast<std::uint64_t>(block),
                                   reinterpret_cast<std::uint64_t>(memory)};
    std::uint64_t all[2][3];
    ASSERT_FINE(farsum_allgather(farsum_world(), mine, all, sizeof mine));
    ASSERT_FINE(farsum_lock_all(everything));
    ASSERT_FINE(farsum_lock_all(allocated));
    const std::vector<std::uint64_t> ones(100, 1);
    for (int round = 0; round < 50; ++round) {
      for (int target = 0; target < 2; ++target) {
        for (const std::uint64_t address : all[target]) {
          std::uint64_t old = 0;
          ASSERT_FINE(farsum_accumulate(everything, target, address, ones.data(), 100, FARSUM_UINT64, FARSUM_SUM));
          ASSERT_FINE(farsum_fetch_op(everything, target, address + 8, ones.data(), &old, FARSUM_UINT64, FARSUM_SUM));
        }
        // The same memory through the window that it belongs to.
        ASSERT_FINE(farsum_accumulate(allocated, target, 8, ones.data(), 1, FARSUM_UINT64, FARSUM_SUM));
      }
    }
    std::uint64_t word = 5;
    for (int target = 0; target < 2; ++target) {
      EXPECT_REFUSED(farsum_put(everything, target, 16, &word, 8), FARSUM_ERR_UNREACHABLE, HasSubstr("mapped"));
      EXPECT_REFUSED(farsum_get(everything, target, std::uint64_t{1} << 61, &word, 8), FARSUM_ERR_UNREACHABLE,
                     HasSubstr("mapped"));
      EXPECT_REFUSED(farsum_fetch_op(everything, target, 4096, &word, &word, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_UNREACHABLE, HasSubstr("mapped"));
    }
    ASSERT_FINE(farsum_unlock_all(everything));
    ASSERT_FINE(farsum_unlock_all(allocated));
    barrier();
    EXPECT_EQ(heap[0], 100U);
    EXPECT_EQ(heap[1], 200U);
    EXPECT_EQ(reinterpret_cast<std::uint64_t*>(block)[1], 200U);
    EXPECT_EQ(static_cast<std::uint64_t*>(memory)[1], 300U) << rank;
    ASSERT_FINE(farsum_window_free(&everything));
    ASSERT_FINE(farsum_window_free(&allocated));
    ASSERT_FINE(farsum_memory_free(block));
  });
}

TEST(AddressSpace, keeps_to_cpu_atomics_where_a_window_promised_single_elements) {
  run_ranks(2, [](int) {
    const farsum_window_options promise = promising(FARSUM_SINGLE_ELEMENT);
    void* memory[2];
    farsum_window atomics_only{}, plain{}, everything{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, &promise, &memory[0], &atomics_only));
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 4096, nullptr, &memory[1], &plain));
    ASSERT_FINE(farsum_window_adopt(farsum_world(), nullptr, ~std::size_t{0}, nullptr, &everything));
    std::uint64_t all[2][2];
    const std::uint64_t mine[2] = {reinterpret_cast<std::uint64_t>(memory[0]),
                                   reinterpret_cast<std::uint64_t>(memory[1])};
    ASSERT_FINE(farsum_allgather(farsum_world(), mine, all, sizeof mine));
    for (const farsum_window window : {atomics_only, plain, everything}) ASSERT_FINE(farsum_lock_all(window));
    const std::vector<std::uint64_t> ones(64, 1);
    for (int round = 0; round < 5000; ++round) {
      ASSERT_FINE(farsum_accumulate(everything, 0, all[0][round % 2], ones.data(), 64, FARSUM_UINT64, FARSUM_SUM));
      ASSERT_FINE(farsum_accumulate(atomics_only, 0, 8 * (round % 64), ones.data(), 1, FARSUM_UINT64, FARSUM_SUM));
      ASSERT_FINE(farsum_accumulate(plain, 0, 0, ones.data(), 64, FARSUM_UINT64, FARSUM_SUM));
    }
    for (const farsum_window window : {atomics_only, plain, everything}) ASSERT_FINE(farsum_unlock_all(window));
    barrier();
    int rank = 0;
    ASSERT_FINE(farsum_rank(farsum_world(), &rank));
    if (rank == 0) {
      std::uint64_t total[2] = {};
      for (int which = 0; which < 2; ++which)
        for (int i = 0; i < 64; ++i) total[which] += static_cast<std::uint64_t*>(memory[which])[i];
      EXPECT_EQ(total[0], 2U * (2500 * 64 + 5000));
      EXPECT_EQ(total[1], 2U * (2500 * 64 + 5000 * 64));
    }
    barrier();
    for (farsum_window window : {atomics_only, plain, everything}) ASSERT_FINE(farsum_window_free(&window));
  });
}

// The sum would begin in memory of a window that has promised nothing, or end there.
TEST(AddressSpace, refuses_a_sum_that_comes_into_memory_of_single_elements_wherever_it_begins) {
  run_ranks(2, [](int) {
    const farsum_window_options promise = promising(FARSUM_SINGLE_ELEMENT);
    constexpr std::size_t bytes = 4096;
    std::array<void*, 3> memory{};
    std::array<farsum_window, 3> windows{};
    for (std::size_t i = 0; i < windows.size(); ++i)
      ASSERT_FINE(farsum_window_allocate(farsum_world(), bytes, i == 1 ? &promise : nullptr, &memory[i], &windows[i]));
    farsum_window everything{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), nullptr, ~std::size_t{0}, nullptr, &everything));
    std::array<std::array<std::uint64_t, 3>, 2> all{};
    std::array<std::uint64_t, 3> mine{};
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = reinterpret_cast<std::uint64_t>(memory[i]);
    ASSERT_FINE(farsum_allgather(farsum_world(), mine.data(), all.data(), sizeof mine));
    ASSERT_FINE(farsum_lock_all(everything));
    for (const std::array<std::uint64_t, 3>& of_rank : all) {
      for (const std::uint64_t plain : {of_rank[0], of_rank[2]}) {
        const std::uint64_t begin = std::min(plain, of_rank[1]);
        const std::uint64_t length = std::max(plain, of_rank[1]) + bytes - begin;
        const std::vector<std::byte> ones(length, std::byte{1});
        const int target = &of_rank == all.data() ? 0 : 1;
        EXPECT_REFUSED(
            farsum_accumulate(everything, target, begin, ones.data(), length / 16, FARSUM_COMPLEX_DOUBLE, FARSUM_SUM),
            FARSUM_ERR_TYPE, HasSubstr("single lockable elements"));
      }
    }
    ASSERT_FINE(farsum_unlock_all(everything));
    barrier();
    for (void* const part : memory)
      EXPECT_TRUE(std::all_of(static_cast<std::byte*>(part), static_cast<std::byte*>(part) + bytes,
                              [](std::byte byte) { return byte == std::byte{0}; }));
    barrier();
    ASSERT_FINE(farsum_window_free(&everything));
    for (farsum_window& window : windows) ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(DynamicRegions, may_touch_share_pages_and_be_empty) {
  run_ranks(2, [](int rank) {
    alignas(64) static std::byte block[400];
    std::memset(block, 0, sizeof block);
    farsum_window window{};
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
    EXPECT_FINE(farsum_window_attach(window, block, 0));
    for (int piece = 0; piece < 4; ++piece) EXPECT_FINE(farsum_window_attach(window, block + 100 * piece, 100));
    EXPECT_REFUSED(farsum_window_attach(window, block + 150, 10), FARSUM_ERR_ARGUMENT, HasSubstr("overlaps"));
    EXPECT_FINE(farsum_window_attach(window, block + 50, 0));
    EXPECT_FINE(farsum_window_attach(window, nullptr, 0));
    std::uint64_t all[2];
    const auto mine = reinterpret_cast<std::uint64_t>(block);
    ASSERT_FINE(farsum_allgather(farsum_world(), &mine, all, sizeof mine));
    ASSERT_FINE(farsum_lock_all(window));
    // Elements on the seams too.
    const std::vector<std::uint64_t> ones(50, 1);
    for (int round = 0; round < 200; ++round) {
      for (int target = 0; target < 2; ++target)
        ASSERT_FINE(farsum_accumulate(window, target, all[target], ones.data(), 50, FARSUM_UINT64, FARSUM_SUM));
      EXPECT_FINE(farsum_put(window, 1 - rank, all[1 - rank] + 400, ones.data(), 0));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    barrier();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(reinterpret_cast<std::uint64_t*>(block)[i], 400U) << i;
    EXPECT_FINE(farsum_window_detach(window, nullptr));
    EXPECT_FINE(farsum_window_detach(window, block + 50));
    for (int piece = 0; piece < 4; ++piece) EXPECT_FINE(farsum_window_detach(window, block + 100 * piece));
    EXPECT_FINE(farsum_window_detach(window, block));
    EXPECT_REFUSED(farsum_window_detach(window, block), FARSUM_ERR_RANGE, HasSubstr("no region"));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

// One operation whose pieces lie in several regions, of several kinds, with nothing attached between them.
TEST(DynamicRegions, that_lie_apart_are_reached_by_one_operation_of_many_pieces) {
  run_ranks(2, [](int rank) {
    static std::uint64_t fixed[64];
    std::memset(fixed, 0, sizeof fixed);
    std::vector<std::uint64_t> heap(64, 0);
    std::byte* node = allocate(512);
    std::memset(node, 0, 512);
    farsum_window window{}, everything{};
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
    ASSERT_FINE(farsum_window_adopt(farsum_world(), nullptr, ~std::size_t{0}, nullptr, &everything));
    ASSERT_FINE(farsum_window_attach(window, fixed, sizeof fixed));
    ASSERT_FINE(farsum_window_attach(window, heap.data(), 512));
    ASSERT_FINE(farsum_window_attach(window, node, 512));
    const std::int64_t mine[3] = {reinterpret_cast<std::int64_t>(fixed), reinterpret_cast<std::int64_t>(heap.data()),
                                  reinterpret_cast<std::int64_t>(node)};
    std::int64_t all[2][3];
    ASSERT_FINE(farsum_allgather(farsum_world(), mine, all, sizeof mine));
    for (const farsum_window& used : {window, everything}) {
      ASSERT_FINE(farsum_lock_all(used));
      const std::vector<std::uint64_t> ones(300, 1);
      for (int round = 0; round < 100; ++round) {
        for (int target = 0; target < 2; ++target) {
          // Each place twice, which counts twice.
          std::vector<std::int64_t> places;
          for (int i = 0; i < 32; ++i) {
            for (const std::int64_t base : all[target]) places.push_back(base + 16 * i);
          }
          places.insert(places.end(), places.begin(), places.begin() + 96);
          ASSERT_FINE(add_to_words(used, target, places, ones.data()));
        }
      }
      ASSERT_FINE(farsum_unlock_all(used));
    }
    barrier();
    for (int i = 0; i < 64; ++i) {
      const std::uint64_t expected = i % 2 == 0 ? 2 * 2 * 2 * 100 : 0;
      EXPECT_EQ(fixed[i], expected) << i;
      EXPECT_EQ(heap[static_cast<std::size_t>(i)], expected) << i;
      EXPECT_EQ(reinterpret_cast<std::uint64_t*>(node)[i], expected) << i << " rank " << rank;
    }
    ASSERT_FINE(farsum_window_free(&window));
    ASSERT_FINE(farsum_window_free(&everything));
    ASSERT_FINE(farsum_memory_free(node));
  });
}

}  // namespace
}  // namespace farsum::test
