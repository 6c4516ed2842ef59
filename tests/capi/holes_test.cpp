// Windows and attachments over memory some of which is not there: guard pages and holes, as GASNet's segments have
// them.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "rank_processes.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t page_count = 64;
constexpr std::size_t guard = 20;  // PROT_NONE
constexpr std::size_t hole = 40;   // not mapped

// 64 pages of words that count up, but for those two.
class MemoryWithHoles {
 public:
  MemoryWithHoles() : words_(map(nullptr, page_count * page_bytes)) {
    for (std::uint64_t i = 0; i < page_count * page_bytes / 8; ++i) words_[i] = i;
    mprotect(at(guard), page_bytes, PROT_NONE);
    munmap(at(hole), page_bytes);
  }
  ~MemoryWithHoles() { munmap(words_, page_count * page_bytes); }
  MemoryWithHoles(const MemoryWithHoles&) = delete;
  MemoryWithHoles& operator=(const MemoryWithHoles&) = delete;

  std::uint64_t* words() const { return words_; }
  std::uint64_t* at(std::size_t number) const { return words_ + number * page_bytes / 8; }
  bool is_as_it_was(std::size_t first, std::size_t end) const {
    for (std::uint64_t i = first * page_bytes / 8; i < end * page_bytes / 8; ++i) {
      if (words_[i] != i) return false;
    }
    return true;
  }
  void come() const {
    mprotect(at(guard), page_bytes, PROT_READ | PROT_WRITE);
    map(at(hole), page_bytes);
  }

 private:
  static std::uint64_t* map(void* place, std::size_t bytes) {
    return static_cast<std::uint64_t*>(mmap(place, bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | (place != nullptr ? MAP_FIXED : 0), -1, 0));
  }
  std::uint64_t* words_;
};

int own_rank() {
  int rank = -1;
  EXPECT_FINE(farsum_rank(farsum_world(), &rank));
  return rank;
}

// The error may come with the operation or with the flush.
farsum_status outcome(farsum_window window, int target, farsum_status of_operation) {
  return of_operation != FARSUM_OK ? of_operation : farsum_flush(window, target);
}

struct Way {
  const char* path;
  bool dynamic;
};

std::string name_of(const testing::TestParamInfo<Way>& about) {
  return std::string(about.param.path) + (about.param.dynamic ? "_attached" : "_adopted");
}

class Holes : public testing::TestWithParam<Way> {
 protected:
  static void with_window(
      const std::function<void(farsum_window, const MemoryWithHoles&, std::array<std::uint64_t, 2>)>& body) {
    Job job;
    job.settings = {{"FARSUM_PATH", GetParam().path}};
    run_ranks(job, [&](int) {
      const MemoryWithHoles memory;
      farsum_window window{};
      std::array<std::uint64_t, 2> bases{};
      if (GetParam().dynamic) {
        const auto address = reinterpret_cast<std::uint64_t>(memory.words());
        ASSERT_FINE(farsum_allgather(farsum_world(), &address, bases.data(), 8));
        ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
        ASSERT_FINE(farsum_window_attach(window, memory.words(), page_count * page_bytes));
        ASSERT_FINE(farsum_barrier(farsum_world()));
      } else {
        ASSERT_FINE(farsum_window_adopt(farsum_world(), memory.words(), page_count * page_bytes, nullptr, &window));
      }
      ASSERT_FINE(farsum_lock_all(window));
      body(window, memory, bases);
      ASSERT_FINE(farsum_unlock_all(window));
      ASSERT_FINE(farsum_barrier(farsum_world()));
      if (GetParam().dynamic) {
        ASSERT_FINE(farsum_window_detach(window, memory.words()));
        farsum_region_info info{};
        EXPECT_EQ(farsum_window_region(window, own_rank(), 0, &info), FARSUM_ERR_RANGE);
      }
      ASSERT_FINE(farsum_window_free(&window));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(EachPath, Holes,
                         testing::Values(Way{"auto", false}, Way{"attach", false}, Way{"owner", false},
                                         Way{"caller", false}, Way{"aggregated", false}, Way{"auto", true},
                                         Way{"owner", true}),
                         &name_of);

TEST_P(Holes, are_no_harm_to_the_pages_around_them) {
  with_window([](farsum_window window, const MemoryWithHoles& memory, std::array<std::uint64_t, 2> bases) {
    const int me = own_rank();
    for (const int target : {1 - me, me}) {
      const std::uint64_t base = bases[static_cast<std::size_t>(target)];
      for (const std::size_t place : {page_bytes, guard * page_bytes - 16, (guard + 1) * page_bytes,
                                      hole * page_bytes - 16, (hole + 1) * page_bytes, page_count * page_bytes - 16}) {
        const std::uint64_t at = base + place + 8 * static_cast<std::size_t>(me);
        const std::uint64_t one = 1;
        std::uint64_t got = 0;
        ASSERT_FINE(farsum_get(window, target, at, &got, 8));
        ASSERT_FINE(farsum_flush(window, target));
        ++got;
        ASSERT_FINE(farsum_put(window, target, at, &got, 8));
        ASSERT_FINE(farsum_accumulate(window, target, at, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(farsum_flush(window, target));
      }
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    for (const std::size_t place : {page_bytes, guard * page_bytes - 16, (guard + 1) * page_bytes,
                                    hole * page_bytes - 16, (hole + 1) * page_bytes, page_count * page_bytes - 16}) {
      // Two by each rank.
      EXPECT_EQ(memory.words()[place / 8], place / 8 + 2);
      EXPECT_EQ(memory.words()[place / 8 + 1], place / 8 + 3);
    }
  });
}

TEST_P(Holes, are_errors_when_they_are_touched_and_can_be_used_when_they_have_come) {
  with_window([](farsum_window window, const MemoryWithHoles& memory, std::array<std::uint64_t, 2> bases) {
    const int me = own_rank();
    std::uint64_t word = 7;
    for (const int target : {1 - me, me}) {
      const std::uint64_t base = bases[static_cast<std::size_t>(target)];
      for (const std::size_t missing : {guard, hole}) {
        const std::uint64_t at = base + missing * page_bytes + 8;
        EXPECT_REFUSED(outcome(window, target, farsum_put(window, target, at, &word, 8)), FARSUM_ERR_UNREACHABLE,
                       HasSubstr("mapped"));
        EXPECT_REFUSED(outcome(window, target, farsum_get(window, target, at, &word, 8)), FARSUM_ERR_UNREACHABLE,
                       HasSubstr("mapped"));
        EXPECT_REFUSED(
            outcome(window, target, farsum_accumulate(window, target, at, &word, 1, FARSUM_UINT64, FARSUM_SUM)),
            FARSUM_ERR_UNREACHABLE, HasSubstr("mapped"));
        // Over the hole from one side to the other.
        std::vector<std::uint64_t> long_get(3 * page_bytes / 8);
        EXPECT_REFUSED(
            outcome(window, target,
                    farsum_get(window, target, base + (missing - 1) * page_bytes, long_get.data(), 3 * page_bytes)),
            FARSUM_ERR_UNREACHABLE, HasSubstr("mapped"));
      }
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_TRUE(memory.is_as_it_was(0, guard));
    EXPECT_TRUE(memory.is_as_it_was(guard + 1, hole));
    EXPECT_TRUE(memory.is_as_it_was(hole + 1, page_count));
    memory.come();
    ASSERT_FINE(farsum_barrier(farsum_world()));
    for (const int target : {1 - me, me}) {
      const std::uint64_t base = bases[static_cast<std::size_t>(target)];
      const std::uint64_t one = 1;
      for (const std::size_t missing : {guard, hole}) {
        ASSERT_FINE(farsum_accumulate(window, target, base + missing * page_bytes, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        // From what was there into what has come, and further.
        const std::vector<std::uint64_t> ones(3, 1);
        ASSERT_FINE(farsum_accumulate(window, target, base + (missing + 1) * page_bytes - 8, ones.data(), 3,
                                      FARSUM_UINT64, FARSUM_SUM));
      }
      ASSERT_FINE(farsum_flush(window, target));
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_EQ(*memory.at(guard) - guard * page_bytes / 8, 2u);
    EXPECT_EQ(*memory.at(hole), 2u);
    EXPECT_EQ(*memory.at(hole + 1), (hole + 1) * page_bytes / 8 + 2);
    EXPECT_EQ(memory.at(hole + 1)[-1], 2u);
  });
}

// Where the kernel copies it does so up to the hole.
class HolesOfAgents : public Holes {};

INSTANTIATE_TEST_SUITE_P(EachPath, HolesOfAgents, testing::Values(Way{"owner", false}, Way{"owner", true}), &name_of);

TEST_P(HolesOfAgents, let_nothing_of_an_operation_be_applied_that_comes_upon_them) {
  with_window([](farsum_window window, const MemoryWithHoles& memory, std::array<std::uint64_t, 2> bases) {
    const int me = own_rank();
    const std::vector<std::uint64_t> zeros(3 * page_bytes / 8, 0);
    for (const int target : {1 - me, me}) {
      for (const std::size_t missing : {guard, hole}) {
        const std::uint64_t at = bases[static_cast<std::size_t>(target)] + (missing - 1) * page_bytes;
        EXPECT_REFUSED(outcome(window, target, farsum_put(window, target, at, zeros.data(), 3 * page_bytes)),
                       FARSUM_ERR_UNREACHABLE, HasSubstr("mapped"));
        EXPECT_REFUSED(outcome(window, target,
                               farsum_accumulate(window, target, at, zeros.data(), 3 * page_bytes / 8, FARSUM_UINT64,
                                                 FARSUM_REPLACE)),
                       FARSUM_ERR_UNREACHABLE, HasSubstr("mapped"));
      }
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_TRUE(memory.is_as_it_was(0, guard));
    EXPECT_TRUE(memory.is_as_it_was(guard + 1, hole));
    EXPECT_TRUE(memory.is_as_it_was(hole + 1, page_count));
  });
}

TEST(HolesInWindows, are_named_by_their_page_where_the_kernel_copies) {
  Job job;
  job.settings = {{"FARSUM_PATH", "attach"}};
  run_ranks(job, [](int rank) {
    const MemoryWithHoles memory;
    std::array<std::uint64_t, 2> bases{};
    const auto address = reinterpret_cast<std::uint64_t>(memory.words());
    ASSERT_FINE(farsum_allgather(farsum_world(), &address, bases.data(), 8));
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory.words(), page_count * page_bytes, nullptr, &window));
    farsum_region_info info{};
    ASSERT_FINE(farsum_window_region(window, 1 - rank, 1, &info));
    EXPECT_EQ(info.offset, guard * page_bytes);
    EXPECT_EQ(info.bytes, page_bytes);
    ASSERT_FINE(farsum_window_region(window, 1 - rank, 4, &info));
    EXPECT_EQ(farsum_window_region(window, 1 - rank, 5, &info), FARSUM_ERR_RANGE);
    ASSERT_FINE(farsum_lock_all(window));
    const std::vector<std::uint64_t> words(2 * page_bytes / 8, 0);
    for (const int target : {0, 1}) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%#llx is not there",
                    static_cast<unsigned long long>(bases[static_cast<std::size_t>(target)] + hole * page_bytes));
      EXPECT_REFUSED(farsum_put(window, target, hole * page_bytes + 16, words.data(), 8), FARSUM_ERR_UNREACHABLE,
                     HasSubstr(text.data()));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

// Each second page, which are more than there is room for.
TEST(HolesInWindows, may_be_many) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t count = 100;
    auto* const memory = static_cast<std::byte*>(
        mmap(nullptr, count * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(memory, 0, count * page_bytes);
    for (std::size_t i = 1; i < count; i += 2) mprotect(memory + i * page_bytes, page_bytes, PROT_NONE);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, count * page_bytes, nullptr, &window));
    ASSERT_FINE(farsum_lock_all(window));
    std::uint64_t word = 5;
    for (const int target : {1 - rank, rank}) {
      for (std::size_t i = 0; i < count; i += 2) {
        const std::uint64_t at = i * page_bytes + 8 * static_cast<std::size_t>(rank);
        ASSERT_FINE(farsum_accumulate(window, target, at, &word, 1, FARSUM_UINT64, FARSUM_SUM));
      }
      for (const std::size_t missing : {3, 99})
        EXPECT_EQ(outcome(window, target, farsum_put(window, target, missing * page_bytes, &word, 8)),
                  FARSUM_ERR_UNREACHABLE);
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    for (std::size_t i = 0; i < count; i += 2) {
      std::memcpy(&word, memory + i * page_bytes, 8);
      EXPECT_EQ(word, 5u);
      std::memcpy(&word, memory + i * page_bytes + 8, 8);
      EXPECT_EQ(word, 5u);
    }
    ASSERT_FINE(farsum_window_free(&window));
    munmap(memory, count * page_bytes);
  });
}

// Of one rank; the others have whole memory.
TEST(HolesInWindows, keep_no_other_rank_from_promoting) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    auto* const memory =
        static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(memory, 1, bytes);
    if (rank == 0) munmap(memory + bytes / 2, page_bytes);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, nullptr, &window));
    farsum_region_info info{};
    ASSERT_FINE(farsum_window_region(window, 0, 0, &info));
    EXPECT_EQ(info.promoted, 0);
    EXPECT_EQ(info.bytes, bytes / 2);
    ASSERT_FINE(farsum_window_region(window, 0, 1, &info));
    EXPECT_EQ(info.bytes, page_bytes);
    EXPECT_THAT(info.reason, HasSubstr("not there"));
    ASSERT_FINE(farsum_window_region(window, 1, 0, &info));
    if (info.promoted == 0) GTEST_SKIP() << "nothing is promoted here: " << info.reason;
    ASSERT_FINE(farsum_window_free(&window));
    munmap(memory, bytes);
  });
}

}  // namespace
}  // namespace farsum::test
