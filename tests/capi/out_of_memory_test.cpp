// No exception passes the C interface. Allocations of the test's process fail when they are told to; a sanitizer keeps
// those to itself, so there is nothing here under one.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "failing_operators.hpp"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

using testing::HasSubstr;

farsum_status with_memory(std::size_t allocations, const std::function<farsum_status()>& call) {
  const FailingMemory memory(allocations, FailingMemory::Fails::for_good);
  return call();
}

// Makes the call with none, one, two ... allocations granted until it succeeds; calls that need thousands pass over
// some.
void starve(const char* name, const std::function<farsum_status()>& call) {
  for (long granted = 0; granted < 100'000; granted += 1 + granted / 200) {
    const farsum_status status = with_memory(static_cast<std::size_t>(granted), call);
    if (status == FARSUM_OK) return;
    ASSERT_EQ(status, FARSUM_ERR_NO_MEMORY) << name << " with " << granted << ": " << farsum_last_error();
    ASSERT_THAT(farsum_last_error(), HasSubstr(name)) << granted;
  }
  FAIL() << name << " never succeeded";
}

TEST(Allocations, that_fail_are_a_status_and_the_next_call_goes_well) {
  run_ranks(1, [](int) {
    farsum_window window{};
    std::vector<std::uint64_t> words(4096, 0);
    starve("farsum_window_adopt",
           [&] { return farsum_window_adopt(farsum_world(), words.data(), words.size() * 8, nullptr, &window); });
    farsum_window dynamic{};
    starve("farsum_window_create_dynamic",
           [&] { return farsum_window_create_dynamic(farsum_world(), nullptr, &dynamic); });
    starve("farsum_window_attach", [&] { return farsum_window_attach(dynamic, words.data(), 4096); });
    starve("farsum_window_detach", [&] { return farsum_window_detach(dynamic, words.data()); });
    ASSERT_FINE(farsum_window_attach(dynamic, words.data(), 4096));
    const int self = 0;
    farsum_group group{};
    starve("farsum_group_create", [&] { return farsum_group_create(farsum_world(), &self, 1, &group); });
    void* memory = nullptr;
    starve("farsum_memory_allocate", [&] { return farsum_memory_allocate(3000, &memory); });
    starve("farsum_memory_free", [&] { return farsum_memory_free(memory); });
    ASSERT_FINE(farsum_lock_all(window));
    const std::vector<std::int64_t> offsets = {0, 800, 1600};
    farsum_layout layout{};
    layout.kind = FARSUM_INDEXED;
    layout.bytes = 16;
    layout.pieces = offsets.size();
    layout.offsets = offsets.data();
    std::vector<std::uint64_t> ones(6, 1), old(6, 0);
    farsum_operation operation{};
    operation.struct_bytes = sizeof operation;
    operation.kind = FARSUM_GET_ACCUMULATE;
    operation.completion = FARSUM_BLOCKING;
    operation.type = FARSUM_UINT64;
    operation.op = FARSUM_SUM;
    operation.origin = ones.data();
    operation.result = old.data();
    operation.target_layout = &layout;
    starve("farsum_operate", [&] { return farsum_operate(window, &operation, nullptr); });
    EXPECT_EQ(words[200], 1U);
    // The sentence of a refusal needs memory too.
    const farsum_status status = with_memory(0, [&] { return farsum_put(window, 7, 0, ones.data(), 8); });
    EXPECT_EQ(status, FARSUM_ERR_NO_MEMORY);
    EXPECT_REFUSED(farsum_put(window, 7, 0, ones.data(), 8), FARSUM_ERR_RANK, HasSubstr("rank 7"));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
    ASSERT_FINE(farsum_window_free(&dynamic));
    ASSERT_FINE(farsum_group_free(&group));
  });
}

// Rank 1 makes the call with none, one, two ... allocations granted until it succeeds, and the others as often as they
// are told that rank 1 has no memory: each of its tries is one of theirs.
std::uint64_t starve_rank_1(int rank, const char* name, const std::function<farsum_status()>& call) {
  std::uint64_t tries = 0;
  const auto counted = [&] {
    ++tries;
    return call();
  };
  if (rank == 1) {
    starve(name, counted);
    return tries;
  }
  farsum_status status = counted();
  while (status == FARSUM_ERR_NO_MEMORY) {
    EXPECT_THAT(farsum_last_error(), HasSubstr("of the group has no memory left"));
    status = counted();
  }
  EXPECT_EQ(status, FARSUM_OK) << farsum_last_error();
  return tries;
}

void meet_starving(int rank, const char* name, const std::function<farsum_status()>& call) {
  const std::uint64_t tries = starve_rank_1(rank, name, call);
  std::array<std::uint64_t, 3> all{};
  ASSERT_FINE(farsum_allgather(farsum_world(), &tries, all.data(), sizeof tries));
  EXPECT_GT(tries, 1U) << name;
  for (const std::uint64_t other : all) EXPECT_EQ(other, tries) << name;
}

TEST(Allocations, that_fail_in_one_rank_leave_no_other_waiting) {
  run_ranks(3, [](int rank) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    std::vector<std::uint64_t> words(bytes / 8, 0);
    farsum_window adopted{};
    meet_starving(rank, "farsum_window_adopt",
                  [&] { return farsum_window_adopt(farsum_world(), words.data(), bytes, nullptr, &adopted); });
    farsum_window allocated{};
    void* memory = nullptr;
    meet_starving(rank, "farsum_window_allocate",
                  [&] { return farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &allocated); });
    farsum_window dynamic{};
    meet_starving(rank, "farsum_window_create_dynamic",
                  [&] { return farsum_window_create_dynamic(farsum_world(), nullptr, &dynamic); });
    farsum_group group{};
    const std::array<int, 3> all = {2, 0, 1};
    meet_starving(rank, "farsum_group_create",
                  [&] { return farsum_group_create(farsum_world(), all.data(), 3, &group); });
    farsum_mutex mutexes{};
    meet_starving(rank, "farsum_mutex_create", [&] { return farsum_mutex_create(farsum_world(), 2, &mutexes); });
    farsum_counter_options counting{};
    counting.struct_bytes = sizeof counting;
    farsum_counter counter{};
    meet_starving(rank, "farsum_counter_create",
                  [&] { return farsum_counter_create(farsum_world(), &counting, &counter); });
    farsum_window_options naming{};
    naming.struct_bytes = sizeof naming;
    naming.name = "a window with a name for which there must be memory";
    farsum_window named{};
    meet_starving(rank, "farsum_window_create_dynamic",
                  [&] { return farsum_window_create_dynamic(farsum_world(), &naming, &named); });
    // What was made is whole.
    ASSERT_FINE(farsum_mutex_lock(mutexes, (rank + 1) % 3, 1));
    ASSERT_FINE(farsum_mutex_unlock(mutexes, (rank + 1) % 3, 1));
    ASSERT_FINE(farsum_mutex_free(&mutexes));
    ASSERT_FINE(farsum_counter_free(&counter));
    for (const farsum_window window : {adopted, allocated}) {
      const std::uint64_t value = 7;
      ASSERT_FINE(farsum_fence(window, 0));
      ASSERT_FINE(farsum_put(window, (rank + 1) % 3, 8, &value, sizeof value));
      ASSERT_FINE(farsum_fence(window, FARSUM_FENCE_NO_SUCCEED));
    }
    EXPECT_EQ(words[1], 7U);
    EXPECT_EQ(static_cast<std::uint64_t*>(memory)[1], 7U);
    starve_rank_1(rank, "farsum_window_free", [&] { return farsum_window_free(&adopted); });
    for (farsum_window window : {allocated, dynamic, named}) ASSERT_FINE(farsum_window_free(&window));
    ASSERT_FINE(farsum_group_free(&group));
  });
}

}  // namespace
}  // namespace farsum::test
#endif
