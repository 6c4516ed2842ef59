// Bad calls: each has its status and a sentence that names operation, window, rank and range, and changes nothing.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "farsum_embed.h"
#include "rank_processes.hpp"

namespace farsum::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A named window of 64 bytes at each of two ranks, in an epoch, with contents that must stay.
class Misuse : public testing::TestWithParam<const char*> {
 protected:
  struct Ready {
    int rank = 0;
    farsum_window window{};
    std::uint64_t* mine = nullptr;
  };

  void with_window(const std::function<void(Ready&)>& body, std::uint32_t promises = 0) const {
    Job job;
    job.settings = path(GetParam());
    run_ranks(job, [&](int rank) {
      farsum_window_options options{};
      options.struct_bytes = sizeof options;
      options.name = "density";
      options.promises = promises;
      Ready ready;
      ready.rank = rank;
      void* memory = nullptr;
      ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, &options, &memory, &ready.window));
      ready.mine = static_cast<std::uint64_t*>(memory);
      for (std::uint64_t i = 0; i < 8; ++i) ready.mine[i] = 1000 + i;
      ASSERT_FINE(farsum_barrier(farsum_world()));
      ASSERT_FINE(farsum_lock_all(ready.window));
      body(ready);
      EXPECT_FINE(farsum_flush(ready.window, FARSUM_ALL_RANKS));
      ASSERT_FINE(farsum_unlock_all(ready.window));
      ASSERT_FINE(farsum_barrier(farsum_world()));
      for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(ready.mine[i], 1000 + i) << "word " << i;
      ASSERT_FINE(farsum_window_free(&ready.window));
    });
  }
};
INSTANTIATE_TEST_SUITE_P(EachPath, Misuse, testing::Values("auto", "owner", "attach", "caller", "aggregated"),
                         [](const auto& tested) { return std::string(tested.param); });

farsum_operation operation_of(farsum_kind kind) {
  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = kind;
  operation.completion = FARSUM_BLOCKING;
  operation.target = 1;
  operation.type = kind == FARSUM_PUT || kind == FARSUM_GET ? FARSUM_BYTE : FARSUM_UINT64;
  operation.op = FARSUM_SUM;
  operation.count = 1;
  return operation;
}

TEST_P(Misuse, names_a_rank_outside_the_group) {
  with_window([](Ready& ready) {
    std::uint64_t word = 0;
    for (const int target : {2, -1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
      const auto sentence =
          AllOf(HasSubstr("'density'"), HasSubstr("rank " + std::to_string(target)), HasSubstr("from 0 to 1"));
      EXPECT_REFUSED(farsum_put(ready.window, target, 0, &word, 8), FARSUM_ERR_RANK,
                     AllOf(HasSubstr("farsum_put"), sentence));
      EXPECT_REFUSED(farsum_get(ready.window, target, 0, &word, 8), FARSUM_ERR_RANK,
                     AllOf(HasSubstr("farsum_get"), sentence));
      EXPECT_REFUSED(farsum_accumulate(ready.window, target, 0, &word, 1, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_RANK,
                     AllOf(HasSubstr("farsum_accumulate"), sentence));
      EXPECT_REFUSED(farsum_fetch_op(ready.window, target, 0, &word, &word, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_RANK,
                     AllOf(HasSubstr("farsum_get_accumulate"), sentence));
      EXPECT_REFUSED(farsum_compare_and_swap(ready.window, target, 0, &word, &word, &word, FARSUM_UINT64),
                     FARSUM_ERR_RANK, AllOf(HasSubstr("farsum_compare_and_swap"), sentence));
      EXPECT_REFUSED(farsum_put_notify(ready.window, target, 0, &word, 8, 0), FARSUM_ERR_RANK, sentence);
      if (target != FARSUM_ALL_RANKS) {
        EXPECT_REFUSED(farsum_flush(ready.window, target), FARSUM_ERR_RANK, sentence);
      }
      EXPECT_REFUSED(farsum_lock(ready.window, target, FARSUM_LOCK_SHARED), FARSUM_ERR_RANK, sentence);
      EXPECT_REFUSED(farsum_unlock(ready.window, target), FARSUM_ERR_RANK, sentence);
      void* address = nullptr;
      std::size_t bytes = 0;
      EXPECT_REFUSED(farsum_window_shared_query(ready.window, target, &address, &bytes), FARSUM_ERR_RANK,
                     HasSubstr("0 to 1"));
      farsum_region_info info{};
      EXPECT_REFUSED(farsum_window_region(ready.window, target, 0, &info), FARSUM_ERR_RANK, HasSubstr("0 to 1"));
    }
  });
}

TEST_P(Misuse, names_bytes_outside_the_exposed_memory) {
  with_window([](Ready& ready) {
    std::array<std::uint64_t, 9> words{};
    const auto exposes = AllOf(HasSubstr("'density', rank 1"), HasSubstr("exposes [0, 64)"));
    EXPECT_REFUSED(farsum_put(ready.window, 1, 60, words.data(), 8), FARSUM_ERR_RANGE,
                   AllOf(exposes, HasSubstr("[60, 68)")));
    EXPECT_REFUSED(farsum_get(ready.window, 1, 0, words.data(), 65), FARSUM_ERR_RANGE,
                   AllOf(exposes, HasSubstr("[0, 65)")));
    EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 8, words.data(), 8, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_RANGE,
                   AllOf(exposes, HasSubstr("[8, 72)")));
    EXPECT_FINE(farsum_put(ready.window, 1, 65, words.data(), 0));
    // Offsets that would wrap round into the window.
    for (const std::uint64_t offset :
         {~std::uint64_t{0}, ~std::uint64_t{7}, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 8}) {
      EXPECT_REFUSED(farsum_put(ready.window, 1, offset, words.data(), 8), FARSUM_ERR_RANGE, exposes);
      EXPECT_REFUSED(farsum_get(ready.window, 1, offset, words.data(), 8), FARSUM_ERR_RANGE, exposes);
      EXPECT_REFUSED(farsum_accumulate(ready.window, 1, offset, words.data(), 1, FARSUM_BYTE, FARSUM_BXOR),
                     FARSUM_ERR_RANGE, exposes);
      EXPECT_REFUSED(farsum_fetch_op(ready.window, 1, offset & ~std::uint64_t{7}, words.data(), words.data(),
                                     FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_RANGE, exposes);
      EXPECT_REFUSED(farsum_compare_and_swap(ready.window, 1, offset & ~std::uint64_t{7}, words.data(), words.data(),
                                             words.data(), FARSUM_UINT64),
                     FARSUM_ERR_RANGE, exposes);
    }
    // Extents near the largest number.
    for (const std::size_t count : {~std::size_t{0}, ~std::size_t{0} / 8, (std::size_t{1} << 61) + 1}) {
      EXPECT_NE(farsum_accumulate(ready.window, 1, 0, words.data(), count, FARSUM_UINT64, FARSUM_SUM), FARSUM_OK)
          << count;
      EXPECT_THAT(farsum_last_error(), HasSubstr("farsum_accumulate"));
      EXPECT_NE(farsum_put(ready.window, 1, 0, words.data(), count), FARSUM_OK) << count;
      EXPECT_NE(farsum_get(ready.window, 1, 0, words.data(), count), FARSUM_OK) << count;
    }
  });
}

TEST_P(Misuse, names_types_and_operators_that_do_not_go_together) {
  with_window([](Ready& ready) {
    std::array<std::byte, 64> data{};
    for (int t = FARSUM_BYTE; t <= FARSUM_FLOAT16; ++t) {
      for (int o = FARSUM_SUM; o <= FARSUM_NO_OP; ++o) {
        const auto type = static_cast<farsum_type>(t);
        const auto op = static_cast<farsum_op>(o);
        if (farsum_op_legal(type, op) != 0) continue;
        EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 1, type, op), FARSUM_ERR_TYPE,
                       AllOf(HasSubstr("'density', rank 1"), HasSubstr("not defined for")));
        EXPECT_REFUSED(farsum_fetch_op(ready.window, 1, 0, data.data(), data.data(), type, op), FARSUM_ERR_TYPE,
                       HasSubstr("not defined for"));
      }
    }
    EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 1, FARSUM_DOUBLE, FARSUM_BAND), FARSUM_ERR_TYPE,
                   HasSubstr("band is not defined for double; use sum, scaled_sum, prod, min, max, replace or no_op"));
    for (const int value : {FARSUM_FLOAT16 + 1, -1, 1 << 20}) {
      EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 1, unknown<farsum_type>(value), FARSUM_SUM),
                     FARSUM_ERR_TYPE, HasSubstr("unknown type " + std::to_string(value)));
      EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 1, FARSUM_INT32, unknown<farsum_op>(value)),
                     FARSUM_ERR_TYPE, HasSubstr("unknown operator " + std::to_string(value)));
      EXPECT_REFUSED(farsum_compare_and_swap(ready.window, 1, 0, data.data(), data.data(), data.data(),
                                             unknown<farsum_type>(value)),
                     FARSUM_ERR_TYPE, HasSubstr("unknown type"));
    }
    // Scaled sums have no alpha in the simple calls.
    EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 1, FARSUM_DOUBLE, FARSUM_SCALED_SUM),
                   FARSUM_ERR_ARGUMENT, HasSubstr("alpha"));
    EXPECT_REFUSED(farsum_fetch_op(ready.window, 1, 0, data.data(), data.data(), FARSUM_DOUBLE, FARSUM_SCALED_SUM),
                   FARSUM_ERR_ARGUMENT, HasSubstr("alpha"));
  });
}

TEST_P(Misuse, names_a_buffer_that_is_null) {
  with_window([](Ready& ready) {
    std::uint64_t word = 0;
    for (const int target : {0, 1}) {
      EXPECT_REFUSED(farsum_put(ready.window, target, 0, nullptr, 8), FARSUM_ERR_ARGUMENT,
                     HasSubstr("origin buffer is null"));
      EXPECT_REFUSED(farsum_get(ready.window, target, 0, nullptr, 8), FARSUM_ERR_ARGUMENT,
                     HasSubstr("result buffer is null"));
      EXPECT_REFUSED(farsum_accumulate(ready.window, target, 0, nullptr, 1, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_ARGUMENT, HasSubstr("origin"));
      EXPECT_REFUSED(farsum_get_accumulate(ready.window, target, 0, &word, nullptr, 1, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_ARGUMENT, HasSubstr("result buffer is null"));
      EXPECT_REFUSED(farsum_fetch_op(ready.window, target, 0, nullptr, &word, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_ARGUMENT, HasSubstr("origin"));
      EXPECT_REFUSED(farsum_fetch_op(ready.window, target, 0, &word, nullptr, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_ARGUMENT, HasSubstr("result"));
      EXPECT_REFUSED(farsum_compare_and_swap(ready.window, target, 0, nullptr, &word, &word, FARSUM_UINT64),
                     FARSUM_ERR_ARGUMENT, HasSubstr("expected"));
      EXPECT_REFUSED(farsum_compare_and_swap(ready.window, target, 0, &word, nullptr, &word, FARSUM_UINT64),
                     FARSUM_ERR_ARGUMENT, HasSubstr("origin"));
      EXPECT_REFUSED(farsum_compare_and_swap(ready.window, target, 0, &word, &word, nullptr, FARSUM_UINT64),
                     FARSUM_ERR_ARGUMENT, HasSubstr("result"));
      EXPECT_REFUSED(farsum_put_notify(ready.window, target, 0, nullptr, 8, 0), FARSUM_ERR_ARGUMENT,
                     HasSubstr("origin"));
      // No operator, so no operand.
      EXPECT_FINE(farsum_accumulate(ready.window, target, 0, nullptr, 2, FARSUM_UINT64, FARSUM_NO_OP));
    }
    EXPECT_REFUSED(farsum_operate(ready.window, nullptr, nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("null"));
    farsum_operation operation = operation_of(FARSUM_PUT);
    operation.origin = &word;
    operation.completion = FARSUM_EXPLICIT;
    EXPECT_REFUSED(farsum_operate(ready.window, &operation, nullptr), FARSUM_ERR_ARGUMENT,
                   HasSubstr("FARSUM_EXPLICIT"));
    EXPECT_REFUSED(farsum_wait(nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("null request"));
    int done = 0;
    EXPECT_REFUSED(farsum_test(nullptr, &done), FARSUM_ERR_ARGUMENT, HasSubstr("null request"));
  });
}

TEST_P(Misuse, takes_nothing_at_all_as_nothing_to_do) {
  with_window([](Ready& ready) {
    for (const int target : {0, 1}) {
      EXPECT_FINE(farsum_put(ready.window, target, 0, nullptr, 0));
      EXPECT_FINE(farsum_put(ready.window, target, 64, nullptr, 0));
      EXPECT_FINE(farsum_get(ready.window, target, 64, nullptr, 0));
      EXPECT_FINE(farsum_accumulate(ready.window, target, 64, nullptr, 0, FARSUM_UINT64, FARSUM_SUM));
      EXPECT_FINE(farsum_get_accumulate(ready.window, target, 0, nullptr, nullptr, 0, FARSUM_DOUBLE, FARSUM_SUM));
      farsum_layout none{};
      for (const farsum_layout_kind kind : {FARSUM_CONTIGUOUS, FARSUM_STRIDED, FARSUM_INDEXED}) {
        none.kind = kind;
        farsum_operation operation = operation_of(FARSUM_ACCUMULATE);
        operation.target = target;
        operation.completion = FARSUM_EXPLICIT;
        operation.target_layout = &none;
        farsum_request request{};
        EXPECT_FINE(farsum_operate(ready.window, &operation, &request));
        int done = 0;
        EXPECT_FINE(farsum_test(&request, &done));
        EXPECT_EQ(done, 1);
      }
    }
    EXPECT_FINE(farsum_broadcast(farsum_world(), nullptr, 0, 0));
    EXPECT_FINE(farsum_allgather(farsum_world(), nullptr, nullptr, 0));
  });
}

TEST_P(Misuse, names_what_is_wrong_with_a_layout) {
  with_window([](Ready& ready) {
    std::array<std::byte, 64> data{};
    std::array<std::size_t, 9> counts{};
    std::array<std::int64_t, 9> strides{};
    const auto refused = [&](const farsum_layout* target, const farsum_layout* origin, const char* sentence) {
      farsum_operation operation = operation_of(FARSUM_ACCUMULATE);
      operation.origin = data.data();
      operation.target_layout = target;
      operation.origin_layout = origin;
      EXPECT_REFUSED(farsum_operate(ready.window, &operation, nullptr), FARSUM_ERR_LAYOUT, HasSubstr(sentence));
    };
    farsum_layout layout{};
    layout.kind = FARSUM_STRIDED;
    layout.bytes = 8;
    layout.levels = 9;
    layout.counts = counts.data();
    layout.strides = strides.data();
    refused(&layout, nullptr, "9 levels");
    layout.levels = -1;
    refused(&layout, nullptr, "-1 levels");
    layout.levels = 1;
    layout.counts = nullptr;
    refused(&layout, nullptr, "needs counts and strides");
    layout.counts = counts.data();
    counts[0] = std::size_t{1} << 62;
    refused(&layout, nullptr, "overflows");
    counts[0] = 2;
    strides[0] = std::numeric_limits<std::int64_t>::max();
    refused(&layout, nullptr, "overflows");
    strides[0] = 16;
    layout.bytes = 12;
    refused(&layout, nullptr, "no whole number of elements");
    layout.bytes = 8;
    farsum_layout other{};
    other.bytes = 24;
    refused(&layout, &other, "24 bytes, but the operation has 16");
    other.kind = FARSUM_INDEXED;
    other.pieces = 1;
    refused(&layout, &other, "needs offsets");
    other.kind = unknown<farsum_layout_kind>(3);
    refused(&layout, &other, "unknown kind of layout 3");
    // Outside on either side of the window.
    farsum_operation operation = operation_of(FARSUM_ACCUMULATE);
    operation.origin = data.data();
    operation.target_layout = &layout;
    strides[0] = -16;
    operation.offset = 8;
    EXPECT_REFUSED(farsum_operate(ready.window, &operation, nullptr), FARSUM_ERR_RANGE, HasSubstr("[-8, 16)"));
    strides[0] = 64;
    operation.offset = 0;
    EXPECT_REFUSED(farsum_operate(ready.window, &operation, nullptr), FARSUM_ERR_RANGE, HasSubstr("[0, 72)"));
    // One element has no layout.
    farsum_operation swap = operation_of(FARSUM_COMPARE_AND_SWAP);
    swap.origin = swap.compare = swap.result = data.data();
    swap.target_layout = &layout;
    EXPECT_REFUSED(farsum_operate(ready.window, &swap, nullptr), FARSUM_ERR_LAYOUT, HasSubstr("one element"));
  });
}

TEST_P(Misuse, applies_elements_that_overlap_in_a_layout_once_each) {
  Job job;
  job.settings = path(GetParam());
  run_ranks(job, [](int rank) {
    farsum_window window{};
    void* memory = nullptr;
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window));
    ASSERT_FINE(farsum_lock_all(window));
    const std::array<std::uint64_t, 6> addends{1, 10, 100, 1000, 10000, 100000};
    const std::array<std::size_t, 1> counts{3};
    const std::array<std::int64_t, 1> strides{8};
    farsum_layout layout{};  // three times two words, each a word further
    layout.kind = FARSUM_STRIDED;
    layout.bytes = 16;
    layout.levels = 1;
    layout.counts = counts.data();
    layout.strides = strides.data();
    farsum_operation operation = operation_of(FARSUM_ACCUMULATE);
    operation.origin = addends.data();
    operation.target_layout = &layout;
    if (rank == 0) {
      ASSERT_FINE(farsum_operate(window, &operation, nullptr));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    const auto* words = static_cast<const std::uint64_t*>(memory);
    if (rank == 1) {
      EXPECT_THAT(std::vector<std::uint64_t>(words, words + 5), testing::ElementsAre(1, 110, 11000, 100000, 0));
    }
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST_P(Misuse, names_an_update_that_breaks_the_promise_of_single_elements) {
  with_window(
      [](Ready& ready) {
        std::array<std::byte, 64> data{};
        const auto promise = AllOf(HasSubstr("'density', rank 1"), HasSubstr("FARSUM_SINGLE_ELEMENT"));
        EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 2, FARSUM_UINT64, FARSUM_SUM),
                       FARSUM_ERR_TYPE, promise);
        EXPECT_REFUSED(farsum_accumulate(ready.window, 1, 0, data.data(), 1, FARSUM_LONG_DOUBLE, FARSUM_SUM),
                       FARSUM_ERR_TYPE, promise);
        EXPECT_REFUSED(farsum_fetch_op(ready.window, 1, 0, data.data(), data.data(), FARSUM_INT_INT, FARSUM_MINLOC),
                       FARSUM_ERR_TYPE, promise);
        EXPECT_REFUSED(
            farsum_compare_and_swap(ready.window, 1, 0, data.data(), data.data(), data.data(), FARSUM_COMPLEX_FLOAT),
            FARSUM_ERR_TYPE, promise);
        // The same memory through a second window that has promised nothing.
        farsum_window again{};
        ASSERT_FINE(farsum_window_adopt(farsum_world(), ready.mine, 64, nullptr, &again));
        ASSERT_FINE(farsum_lock_all(again));
        EXPECT_REFUSED(farsum_accumulate(again, 1, 0, data.data(), 1, FARSUM_LONG_DOUBLE, FARSUM_SUM), FARSUM_ERR_TYPE,
                       HasSubstr("single lockable elements"));
        EXPECT_REFUSED(
            farsum_compare_and_swap(again, 1, 0, data.data(), data.data(), data.data(), FARSUM_COMPLEX_FLOAT),
            FARSUM_ERR_TYPE, HasSubstr("single lockable elements"));
        // Many elements of a lockable type: each by itself.
        EXPECT_FINE(farsum_accumulate(again, 1, 0, data.data(), 8, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(farsum_unlock_all(again));
        ASSERT_FINE(farsum_window_free(&again));
      },
      FARSUM_SINGLE_ELEMENT);
}

TEST(Handles, that_are_junk_or_freed_are_refused_by_every_call) {
  run_ranks(2, [](int) {
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window));
    const farsum_window freed = window;
    ASSERT_FINE(farsum_window_free(&window));
    EXPECT_EQ(window.bits, 0u);
    farsum_window alive{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &alive));
    EXPECT_NE(alive.bits, freed.bits);
    std::uint64_t word = 0;
    std::size_t bytes = 0;
    farsum_region_info info{};
    const int rank = 0;
    for (farsum_window bad : {freed, window, farsum_window{~std::uint64_t{0}}, farsum_window{0x1234567890abcdef},
                              farsum_window{alive.bits + 1}}) {
      const auto sentence = HasSubstr("does not live");
      EXPECT_REFUSED(farsum_put(bad, 0, 0, &word, 8), FARSUM_ERR_HANDLE, AllOf(HasSubstr("farsum_put"), sentence));
      EXPECT_REFUSED(farsum_get(bad, 0, 0, &word, 8), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_accumulate(bad, 0, 0, &word, 1, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_get_accumulate(bad, 0, 0, &word, &word, 1, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_HANDLE,
                     sentence);
      EXPECT_REFUSED(farsum_fetch_op(bad, 0, 0, &word, &word, FARSUM_UINT64, FARSUM_SUM), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_compare_and_swap(bad, 0, 0, &word, &word, &word, FARSUM_UINT64), FARSUM_ERR_HANDLE,
                     sentence);
      EXPECT_REFUSED(farsum_put_notify(bad, 0, 0, &word, 8, 0), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_notify_wait(bad, 0, 0), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_notify_value(bad, 0, &word), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_fence(bad, 0), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_post(bad, &rank, 1), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_start(bad, &rank, 1), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_complete(bad), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_wait_exposure(bad), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_lock(bad, 0, FARSUM_LOCK_SHARED), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_unlock(bad, 0), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_lock_all(bad), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_unlock_all(bad), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_flush(bad, 0), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_flush_local(bad, 0), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_order(bad), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_sync(bad), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_window_attach(bad, &word, 8), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_window_detach(bad, &word), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_window_shared_query(bad, 0, &memory, &bytes), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_window_region(bad, 0, 0, &info), FARSUM_ERR_HANDLE, sentence);
      EXPECT_REFUSED(farsum_window_free(&bad), FARSUM_ERR_HANDLE, sentence);
    }
    farsum_group no_group{42};
    EXPECT_REFUSED(farsum_barrier(no_group), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
    EXPECT_REFUSED(farsum_group_free(&no_group), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
    farsum_request request{12345};
    EXPECT_REFUSED(farsum_wait(&request), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
    int done = 0;
    EXPECT_REFUSED(farsum_test(&request, &done), FARSUM_ERR_HANDLE, HasSubstr("does not live"));
    EXPECT_REFUSED(farsum_window_free(nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("null handle"));
    ASSERT_FINE(farsum_window_free(&alive));
  });
}

TEST(Window, is_not_freed_while_an_epoch_is_open) {
  Job job;
  job.settings = path("owner");
  run_ranks(job, [](int rank) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.name = "busy";
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, &options, &memory, &window));
    const int other = 1 - rank;
    const auto pending = [&](const char* mine, const char* of_the_other) {
      farsum_window copy = window;
      EXPECT_REFUSED(farsum_window_free(&copy), FARSUM_ERR_PENDING,
                     AllOf(HasSubstr("farsum_window_free"), HasSubstr(rank == 0 ? mine : of_the_other)));
      EXPECT_EQ(copy.bits, window.bits);
    };
    // Only rank 0 has something open; nothing is freed anywhere.
    if (rank == 0) {
      ASSERT_FINE(farsum_lock(window, 1, FARSUM_LOCK_SHARED));
    }
    pending("1 locks are held", "rank 0 of the group");
    if (rank == 0) {
      ASSERT_FINE(farsum_unlock(window, 1));
      ASSERT_FINE(farsum_lock_all(window));
    }
    pending("farsum_lock_all is not undone", "rank 0 of the group");
    EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING,
                   AllOf(HasSubstr("farsum_finalize"), HasSubstr(rank == 0 ? "'busy'" : "rank 0 of the job")));
    if (rank == 0) {
      ASSERT_FINE(farsum_unlock_all(window));
      ASSERT_FINE(farsum_start(window, nullptr, 0));
    }
    pending("farsum_complete", "rank 0 of the group");
    if (rank == 0) {
      ASSERT_FINE(farsum_complete(window));
      ASSERT_FINE(farsum_post(window, nullptr, 0));
    }
    pending("farsum_wait_exposure", "rank 0 of the group");
    if (rank == 0) {
      ASSERT_FINE(farsum_wait_exposure(window));
    }
    ASSERT_FINE(farsum_fence(window, 0));
    // An epoch of a fence and operations under way end with the window.
    std::vector<std::byte> data(64);
    if (rank == 0) {
      ASSERT_FINE(farsum_put(window, other, 0, data.data(), 64));
    }
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Window, that_is_prepared_to_be_freed_takes_queries_only) {
  run_ranks(2, [](int rank) {
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window));
    if (rank == 1) {
      ASSERT_FINE(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
    }
    EXPECT_REFUSED(farsum_window_prepare_free(window), FARSUM_ERR_PENDING,
                   AllOf(HasSubstr("farsum_window_prepare_free"), HasSubstr(rank == 1 ? "1 locks" : "rank 1")));
    // Nothing has changed.
    const std::uint64_t value = 40 + static_cast<std::uint64_t>(rank);
    if (rank == 1) {
      ASSERT_FINE(farsum_put(window, 0, 0, &value, 8));
      ASSERT_FINE(farsum_unlock(window, 0));
    }
    ASSERT_FINE(farsum_fence(window, 0));
    ASSERT_FINE(farsum_put(window, 1 - rank, 8, &value, 8));
    ASSERT_FINE(farsum_window_prepare_free(window));

    void* address = nullptr;
    std::size_t bytes = 0;
    ASSERT_FINE(farsum_window_shared_query(window, 1 - rank, &address, &bytes));
    EXPECT_EQ(bytes, 64u);
    // What was under way has come, and the other part can still be read.
    EXPECT_EQ(static_cast<const std::uint64_t*>(memory)[1], 41u - static_cast<std::uint64_t>(rank));
    EXPECT_EQ(static_cast<const std::uint64_t*>(address)[1], value);

    const int other = 1 - rank;
    const auto freed = HasSubstr("is being freed");
    EXPECT_REFUSED(farsum_put(window, other, 0, &value, 8), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
    EXPECT_REFUSED(farsum_flush(window, other), FARSUM_ERR_SYNC, HasSubstr("outside an access epoch"));
    EXPECT_REFUSED(farsum_fence(window, 0), FARSUM_ERR_SYNC, freed);
    EXPECT_REFUSED(farsum_lock(window, other, FARSUM_LOCK_SHARED), FARSUM_ERR_SYNC, freed);
    EXPECT_REFUSED(farsum_lock_all(window), FARSUM_ERR_SYNC, freed);
    EXPECT_REFUSED(farsum_start(window, &other, 1), FARSUM_ERR_SYNC, freed);
    EXPECT_REFUSED(farsum_post(window, &other, 1), FARSUM_ERR_SYNC, freed);
    EXPECT_REFUSED(farsum_window_prepare_free(window), FARSUM_ERR_SYNC, freed);
    // Free waits for nobody: rank 0 does it before rank 1 has even come to the barrier.
    if (rank == 0) {
      ASSERT_FINE(farsum_window_free(&window));
    }
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 1) {
      ASSERT_FINE(farsum_window_free(&window));
    }
  });
}

TEST(Window, whose_last_operation_failed_is_freed_by_the_second_try) {
  Job job;
  job.settings = path("owner");
  run_ranks(job, [](int rank) {
    const std::size_t page = 4096;
    void* mapped = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), mapped, page, nullptr, &window));
    ASSERT_FINE(farsum_fence(window, 0));
    munmap(mapped, page);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    const std::uint64_t value = 1;
    if (rank == 0) {
      ASSERT_FINE(farsum_put(window, 1, 0, &value, 8));
      EXPECT_REFUSED(farsum_window_free(&window), FARSUM_ERR_UNREACHABLE, HasSubstr("farsum_window_free"));
    } else {
      EXPECT_REFUSED(farsum_window_free(&window), FARSUM_ERR_PENDING, HasSubstr("rank 0 of the group"));
    }
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Finalize, is_refused_on_every_rank_while_one_holds_a_lock) {
  run_ranks(2, [](int rank) {
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window));
    farsum_mutex mutexes{};
    ASSERT_FINE(farsum_mutex_create(farsum_world(), 1, &mutexes));
    const auto refused = [rank](const char* mine) {
      EXPECT_REFUSED(farsum_finalize(), FARSUM_ERR_PENDING,
                     AllOf(HasSubstr("farsum_finalize"), HasSubstr(rank == 1 ? mine : "rank 1 of the job")));
      EXPECT_EQ(farsum_is_initialized(), 1);
    };
    if (rank == 1) {
      ASSERT_FINE(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE));
    }
    refused("1 locks are held");
    if (rank == 1) {
      ASSERT_FINE(farsum_unlock(window, 0));
      ASSERT_FINE(farsum_mutex_lock(mutexes, 0, 0));
    }
    refused("mutex 0 of rank 0");
    if (rank == 1) {
      ASSERT_FINE(farsum_mutex_unlock(mutexes, 0, 0));
    }
    // What still lives is freed by finalize.
  });
}

TEST(Finalize, that_is_forced_ends_whatever_is_open_and_hangs_nobody) {
  Job job;
  job.ranks = 4;
  job.starts = false;
  job.settings = path("owner");
  run_ranks(job, [](int rank) {
    for (int round = 0; round < 3; ++round) {
      ASSERT_FINE(farsum_init(nullptr));
      void* memory = nullptr;
      std::array<farsum_window, 4> windows{};
      for (farsum_window& window : windows)
        ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window));
      farsum_mutex mutexes{};
      ASSERT_FINE(farsum_mutex_create(farsum_world(), 1, &mutexes));
      const std::uint64_t value = 1;
      const int first = 0;
      if (rank == 1) {
        ASSERT_FINE(farsum_lock(windows[0], 0, FARSUM_LOCK_EXCLUSIVE));
        ASSERT_FINE(farsum_put(windows[0], 0, 0, &value, 8));
        ASSERT_FINE(farsum_mutex_lock(mutexes, 2, 0));
        ASSERT_FINE(farsum_lock_all(windows[1]));
        ASSERT_FINE(farsum_start(windows[2], &first, 1));
      }
      if (rank == 0) {
        const int origin = 1;
        ASSERT_FINE(farsum_post(windows[2], &origin, 1));
      }
      // Rank 1 has what rank 2 is about to wait for.
      ASSERT_FINE(farsum_barrier(farsum_world()));
      if (rank == 0) {
        // Ends when rank 1 is forced to.
        ASSERT_FINE(farsum_wait_exposure(windows[2]));
      }
      if (rank == 2) {
        // Waits for rank 1's lock until that is forced away.
        ASSERT_FINE(farsum_mutex_lock(mutexes, 2, 0));
        ASSERT_FINE(farsum_lock(windows[0], 0, FARSUM_LOCK_EXCLUSIVE));
      }
      // Rank 3's is a plain one; rank 0's own open post would refuse it.
      if (rank == 3) {
        ASSERT_FINE(farsum_post(windows[3], &first, 1));
        ASSERT_FINE(farsum_finalize());
      } else {
        ASSERT_FINE(farsum_finalize_forced());
      }
      EXPECT_EQ(farsum_is_initialized(), 0);
    }
  });
}

// In the order in which they had them.
constexpr std::size_t window_option_bytes[] = {offsetof(farsum_window_options, read_age_ms),
                                               offsetof(farsum_window_options, alignment),
                                               offsetof(farsum_window_options, layer), sizeof(farsum_window_options)};
constexpr std::size_t statistics_bytes[] = {offsetof(farsum_statistics, reads_answered),
                                            offsetof(farsum_statistics, network_peers), sizeof(farsum_statistics)};

TEST(Structures, that_grew_are_taken_at_each_size_that_they_had) {
  run_ranks(2, [](int) {
    // All that a shorter one lacks is wrong here: whoever reads it refuses the window.
    farsum_window_options options{};
    farsum_window_layer no_layer{};
    options.alignment = 3;
    options.layer = &no_layer;
    farsum_window window{};
    void* memory = nullptr;
    for (const std::size_t bytes : window_option_bytes) {
      if (bytes > offsetof(farsum_window_options, alignment)) options.alignment = 64;
      if (bytes > offsetof(farsum_window_options, layer)) options.layer = nullptr;
      options.struct_bytes = bytes;
      ASSERT_FINE(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window));
      ASSERT_FINE(farsum_window_free(&window));
    }
    options.struct_bytes = window_option_bytes[0] - 1;
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("struct_bytes"));
  });
}

TEST(Structures, that_grew_are_filled_as_far_as_the_caller_knows_them) {
  run_ranks(1, [](int) {
    farsum_statistics statistics{};
    const auto* as_bytes = reinterpret_cast<const unsigned char*>(&statistics);
    for (const std::size_t bytes : statistics_bytes) {
      std::memset(&statistics, 0xa5, sizeof statistics);
      statistics.struct_bytes = bytes;
      ASSERT_FINE(farsum_statistics_read(&statistics));
      EXPECT_EQ(statistics.struct_bytes, bytes);
      EXPECT_NE(as_bytes[bytes - 1], 0xa5) << bytes;
      if (bytes < sizeof statistics) {
        EXPECT_EQ(as_bytes[bytes], 0xa5) << bytes;
      }
    }
    statistics.struct_bytes = statistics_bytes[0] - 1;
    EXPECT_REFUSED(farsum_statistics_read(&statistics), FARSUM_ERR_ARGUMENT, HasSubstr("struct_bytes"));
  });
}

TEST(Options, of_the_wrong_size_or_kind_are_refused) {
  run_ranks(2, [](int) {
    void* memory = nullptr;
    farsum_window window{};
    farsum_window_options options{};
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("struct_bytes"));
    options.struct_bytes = sizeof options;
    options.promises = 1u << 9;
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("unknown promises"));
    options.promises = 0;
    options.notification_slots = 65537;
    EXPECT_REFUSED(farsum_window_adopt(farsum_world(), memory, 0, &options, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("65537"));
    options.notification_slots = 0;
    options.aggregate_limit = 1025;
    EXPECT_REFUSED(farsum_window_create_dynamic(farsum_world(), &options, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("1025"));
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, nullptr, nullptr, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("must not be null"));
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, nullptr, &memory, nullptr), FARSUM_ERR_ARGUMENT,
                   HasSubstr("must not be null"));
    farsum_statistics statistics{};
    EXPECT_REFUSED(farsum_statistics_read(&statistics), FARSUM_ERR_ARGUMENT, HasSubstr("struct_bytes"));
    farsum_init_options again{};
    again.struct_bytes = sizeof again;
    EXPECT_REFUSED(farsum_init(&again), FARSUM_ERR_PENDING, HasSubstr("lives already"));
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 8, nullptr, &memory, &window));
    ASSERT_FINE(farsum_lock_all(window));
    farsum_operation operation = operation_of(FARSUM_PUT);
    operation.struct_bytes = 8;
    EXPECT_REFUSED(farsum_operate(window, &operation, nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("struct_bytes"));
    operation = operation_of(unknown<farsum_kind>(5));
    EXPECT_REFUSED(farsum_operate(window, &operation, nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("unknown kind 5"));
    operation = operation_of(FARSUM_PUT);
    operation.completion = unknown<farsum_completion>(3);
    EXPECT_REFUSED(farsum_operate(window, &operation, nullptr), FARSUM_ERR_ARGUMENT, HasSubstr("unknown completion 3"));
    if (enumerators_may_be_unknown) {
      EXPECT_REFUSED(farsum_lock(window, 0, unknown<farsum_lock_mode>(3)), FARSUM_ERR_ARGUMENT, HasSubstr("mode 3"));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Options, that_differ_in_promises_hold_where_all_make_them) {
  run_ranks(2, [](int rank) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.promises = rank == 1 ? FARSUM_NO_LOCKS | FARSUM_SINGLE_ELEMENT : FARSUM_NO_ORDERING | FARSUM_STRICT_EPOCHS;
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 64, &options, &memory, &window));
    ASSERT_FINE(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
    const std::array<std::uint64_t, 2> ones{1, 1};
    EXPECT_FINE(farsum_accumulate(window, 0, 0, ones.data(), 2, FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_unlock(window, 0));
    ASSERT_FINE(farsum_fence(window, 0));
    EXPECT_REFUSED(farsum_flush(window, 0), FARSUM_ERR_SYNC, HasSubstr("FARSUM_STRICT_EPOCHS"));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(Options, that_differ_between_ranks_fail_on_every_rank) {
  run_ranks(2, [](int rank) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.notification_slots = rank == 1 ? 3 : 0;
    void* memory = nullptr;
    farsum_window window{};
    EXPECT_REFUSED(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window), FARSUM_ERR_ARGUMENT,
                   HasSubstr("other options"));
    EXPECT_EQ(window.bits, 0u);
  });
}

TEST(Window, that_promises_no_locks_refuses_them) {
  run_ranks(2, [](int) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.promises = FARSUM_NO_LOCKS;
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), 8, &options, &memory, &window));
    EXPECT_REFUSED(farsum_lock(window, 0, FARSUM_LOCK_SHARED), FARSUM_ERR_SYNC, HasSubstr("FARSUM_NO_LOCKS"));
    EXPECT_REFUSED(farsum_lock_all(window), FARSUM_ERR_SYNC, HasSubstr("FARSUM_NO_LOCKS"));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

// ---- memory that cannot be reached ----

class Unreachable : public testing::TestWithParam<const char*> {
 protected:
  Job job() const {
    Job job;
    job.settings = path(GetParam());
    return job;
  }
};
INSTANTIATE_TEST_SUITE_P(EachPath, Unreachable, testing::Values("auto", "owner", "caller", "aggregated"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(Unreachable, memory_that_was_freed_while_the_window_lives_is_an_error_not_a_crash) {
  run_ranks(job(), [](int rank) {
    constexpr std::size_t bytes = 1 << 20;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.promises = FARSUM_NO_PROMOTION;
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, &options, &window));
    ASSERT_FINE(farsum_lock_all(window));
    if (rank == 1) munmap(memory, bytes);
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 0) {
      std::vector<std::uint64_t> data(bytes / 8);
      const auto outcome = [&](farsum_status at_once) {
        return at_once != FARSUM_OK ? at_once : farsum_flush(window, 1);
      };
      for (const std::size_t size : {std::size_t{8}, std::size_t{4096}, bytes}) {
        EXPECT_REFUSED(outcome(farsum_put(window, 1, 0, data.data(), size)), FARSUM_ERR_UNREACHABLE,
                       AllOf(HasSubstr("rank 1"), HasSubstr("freed")));
        EXPECT_REFUSED(outcome(farsum_get(window, 1, 0, data.data(), size)), FARSUM_ERR_UNREACHABLE,
                       AllOf(HasSubstr("rank 1"), HasSubstr("freed")));
        EXPECT_REFUSED(outcome(farsum_accumulate(window, 1, 0, data.data(), size / 8, FARSUM_UINT64, FARSUM_SUM)),
                       FARSUM_ERR_UNREACHABLE, HasSubstr("freed"));
      }
      std::uint64_t old = 0;
      EXPECT_REFUSED(farsum_fetch_op(window, 1, 0, data.data(), &old, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_UNREACHABLE, HasSubstr("rank 1"));
      EXPECT_REFUSED(farsum_compare_and_swap(window, 1, 0, data.data(), data.data(), &old, FARSUM_UINT64),
                     FARSUM_ERR_UNREACHABLE, HasSubstr("rank 1"));
      // The window still works where the memory is.
      EXPECT_FINE(farsum_put(window, 0, 0, data.data(), 4096));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
    if (rank == 0) munmap(memory, bytes);
  });
}

TEST_P(Unreachable, read_only_memory_can_be_read_and_says_so_when_written) {
  run_ranks(job(), [](int rank) {
    constexpr std::size_t bytes = 65536;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 7, bytes);
    mprotect(memory, bytes, PROT_READ);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, nullptr, &window));
    ASSERT_FINE(farsum_lock_all(window));
    for (const int target : {rank, 1 - rank}) {
      std::vector<unsigned char> data(bytes);
      EXPECT_FINE(farsum_get(window, target, 0, data.data(), bytes));
      EXPECT_FINE(farsum_flush(window, target));
      EXPECT_EQ(data[bytes - 1], 7);
      std::uint64_t word = 0;
      EXPECT_FINE(farsum_fetch_op(window, target, 8, nullptr, &word, FARSUM_UINT64, FARSUM_NO_OP));
      EXPECT_EQ(word, 0x0707070707070707u);
      EXPECT_REFUSED(farsum_put(window, target, 0, data.data(), 8), FARSUM_ERR_UNREACHABLE, HasSubstr("read-only"));
      EXPECT_REFUSED(farsum_accumulate(window, target, 0, data.data(), 1, FARSUM_UINT64, FARSUM_SUM),
                     FARSUM_ERR_UNREACHABLE, HasSubstr("read-only"));
      EXPECT_REFUSED(farsum_compare_and_swap(window, target, 0, &word, &word, &word, FARSUM_UINT64),
                     FARSUM_ERR_UNREACHABLE, HasSubstr("read-only"));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
    munmap(memory, bytes);
  });
}

TEST(Adopting, memory_that_is_not_mapped_fails_on_every_rank) {
  run_ranks(2, [](int rank) {
    constexpr std::size_t bytes = 65536;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (rank == 1) munmap(memory, bytes);
    farsum_window window{};
    EXPECT_REFUSED(farsum_window_adopt(farsum_world(), memory, bytes, nullptr, &window), FARSUM_ERR_UNREACHABLE,
                   HasSubstr(rank == 1 ? "must be mapped" : "rank 1 of the group"));
    EXPECT_EQ(window.bits, 0u);
  });
}

// ---- dynamic windows ----

TEST_P(Misuse, of_a_dynamic_window_names_addresses_that_are_not_attached) {
  Job job;
  job.settings = path(GetParam());
  run_ranks(job, [](int rank) {
    farsum_window window{};
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
    std::vector<std::uint64_t> block(1024, 5);
    std::array<std::uint64_t, 2> at{};
    const auto address = reinterpret_cast<std::uint64_t>(block.data());
    ASSERT_FINE(farsum_allgather(farsum_world(), &address, at.data(), 8));
    ASSERT_FINE(farsum_lock_all(window));
    const int other = 1 - rank;
    const std::uint64_t there = at[static_cast<std::size_t>(other)];
    std::uint64_t word = 3;
    EXPECT_REFUSED(farsum_put(window, other, there, &word, 8), FARSUM_ERR_RANGE, HasSubstr("not all attached"));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    ASSERT_FINE(farsum_window_attach(window, block.data(), 4096));
    EXPECT_FINE(farsum_window_attach(window, block.data(), 0));
    EXPECT_REFUSED(farsum_window_attach(window, block.data() + 511, 16), FARSUM_ERR_ARGUMENT, HasSubstr("overlaps"));
    EXPECT_REFUSED(farsum_window_attach(window, nullptr, 16), FARSUM_ERR_UNREACHABLE, HasSubstr("must be mapped"));
    EXPECT_REFUSED(farsum_window_detach(window, block.data() + 1), FARSUM_ERR_RANGE,
                   HasSubstr("no region that starts"));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_REFUSED(farsum_put(window, other, there + 4092, &word, 8), FARSUM_ERR_RANGE, HasSubstr("not all attached"));
    EXPECT_REFUSED(farsum_get(window, other, there - 1, &word, 8), FARSUM_ERR_RANGE, HasSubstr("not all attached"));
    EXPECT_REFUSED(farsum_get(window, other, ~std::uint64_t{3}, &word, 8), FARSUM_ERR_RANGE,
                   HasSubstr("not all attached"));
    EXPECT_FINE(farsum_put(window, other, there + 8, &word, 8));
    EXPECT_FINE(farsum_flush(window, other));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_EQ(block[1], 3u);
    ASSERT_FINE(farsum_window_detach(window, block.data()));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    EXPECT_REFUSED(farsum_put(window, other, there + 8, &word, 8), FARSUM_ERR_RANGE, HasSubstr("not all attached"));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(DynamicWindow, takes_thousands_of_regions_and_refuses_what_lies_between) {
  run_ranks(2, [](int rank) {
    farsum_window window{};
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &window));
    constexpr std::size_t regions = 4096;
    std::vector<std::uint64_t> block(2 * regions);
    for (std::size_t i = 0; i < regions; ++i) ASSERT_FINE(farsum_window_attach(window, &block[2 * i], 8));
    std::array<std::uint64_t, 2> at{};
    const auto address = reinterpret_cast<std::uint64_t>(block.data());
    ASSERT_FINE(farsum_allgather(farsum_world(), &address, at.data(), 8));
    ASSERT_FINE(farsum_lock_all(window));
    const int other = 1 - rank;
    for (std::size_t i = 0; i < regions; i += 100) {
      const std::uint64_t value = i;
      ASSERT_FINE(farsum_accumulate(window, other, at[static_cast<std::size_t>(other)] + 16 * i, &value, 1,
                                    FARSUM_UINT64, FARSUM_SUM));
      EXPECT_REFUSED(farsum_put(window, other, at[static_cast<std::size_t>(other)] + 16 * i + 8, &value, 8),
                     FARSUM_ERR_RANGE, HasSubstr("not all attached"));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    for (std::size_t i = 0; i < regions; i += 100) ASSERT_EQ(block[2 * i], i);
    for (std::size_t i = 0; i < regions; ++i) ASSERT_FINE(farsum_window_detach(window, &block[2 * i]));
    EXPECT_REFUSED(farsum_window_attach(farsum_window{}, block.data(), 8), FARSUM_ERR_HANDLE,
                   HasSubstr("does not live"));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(AttachRefused, leaves_everything_right_through_the_owner_and_says_why) {
  Job job;
  job.settings = {{"FARSUM_ATTACH", "refuse"}, {"FARSUM_PROMOTION", "refuse"}};
  run_ranks(job, [](int rank) {
    std::vector<std::uint64_t> block(100000, 1);
    farsum_window window{};
    ASSERT_FINE(farsum_window_adopt(farsum_world(), block.data(), block.size() * 8, nullptr, &window));
    farsum_region_info info{};
    ASSERT_FINE(farsum_window_region(window, 1 - rank, 0, &info));
    EXPECT_EQ(info.bulk_path, FARSUM_PATH_OWNER);
    EXPECT_EQ(info.atomic_path, FARSUM_PATH_OWNER);
    EXPECT_THAT(info.reason, AllOf(HasSubstr("FARSUM_PROMOTION=refuse"), HasSubstr("FARSUM_ATTACH=refuse")));
    EXPECT_REFUSED(farsum_window_region(window, 1 - rank, 1, &info), FARSUM_ERR_RANGE, HasSubstr("region 1"));
    ASSERT_FINE(farsum_lock_all(window));
    const std::vector<std::uint64_t> twos(block.size(), 2);
    std::vector<std::uint64_t> seen(block.size());
    ASSERT_FINE(
        farsum_get_accumulate(window, 1 - rank, 0, twos.data(), seen.data(), twos.size(), FARSUM_UINT64, FARSUM_SUM));
    ASSERT_FINE(farsum_flush(window, 1 - rank));
    EXPECT_THAT(seen, testing::Each(1));
    ASSERT_FINE(farsum_get(window, 1 - rank, 0, seen.data(), seen.size() * 8));
    ASSERT_FINE(farsum_unlock_all(window));
    EXPECT_THAT(seen, testing::Each(3));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(LayerAbove, tells_its_word_to_all_ranks_of_the_window) {
  run_ranks(3, [](int rank) {
    std::array<std::uint64_t, 3> words{};
    farsum_window_layer layer{};
    layer.struct_bytes = sizeof layer;
    layer.word = 100 + static_cast<std::uint64_t>(rank);
    layer.words = words.data();
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.layer = &layer;
    farsum_window window{};
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), &options, &window));
    EXPECT_EQ(words, (std::array<std::uint64_t, 3>{100, 101, 102}));
    EXPECT_EQ(layer.refused_by, -1);
    ASSERT_FINE(farsum_window_free(&window));
    // A caller that does not know of layers has none.
    options.struct_bytes = offsetof(farsum_window_options, layer);
    layer.refusal = 7;
    ASSERT_FINE(farsum_window_create_dynamic(farsum_world(), &options, &window));
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(LayerAbove, refuses_a_window_for_all_ranks_whichever_of_them_refuses) {
  run_ranks(3, [](int rank) {
    for (const bool also_the_last : {false, true}) {
      for (int refuser = 0; refuser < 3; ++refuser) {
        farsum_window_layer layer{};
        layer.struct_bytes = sizeof layer;
        const bool refuses = rank == refuser || (also_the_last && rank == 2);
        layer.refusal = refuses ? 40 + rank : 0;
        farsum_window_options options{};
        options.struct_bytes = sizeof options;
        options.layer = &layer;
        farsum_window window{};
        void* memory = nullptr;
        EXPECT_REFUSED(farsum_window_allocate(farsum_world(), refuses ? 0 : 64, &options, &memory, &window),
                       FARSUM_ERR_ARGUMENT, HasSubstr("rank " + std::to_string(refuser) + " of the group"));
        EXPECT_EQ(layer.refused_by, refuser);
        EXPECT_EQ(layer.refused_with, 40 + refuser);
      }
    }
  });
}

}  // namespace
}  // namespace farsum::test
