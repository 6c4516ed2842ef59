// Elements at any address: not aligned to their type, across the boundary of two stripes, in parts that touch.
#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rank_processes.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t stripe = 16384;

struct AddressCase {
  const char* name;
  const char* path;
  bool adopted;
  std::uint32_t promises = 0;
};

class AnyAddress : public testing::TestWithParam<AddressCase> {
 protected:
  static Job job(int ranks) {
    Job job;
    job.ranks = ranks;
    job.settings = {{"FARSUM_PATH", GetParam().path}, {"FARSUM_PROMOTION", "refuse"}};
    return job;
  }
  // A window of `bytes` on each rank; `memory` is this rank's part.
  static farsum_window make(std::size_t bytes, std::vector<std::byte>& own, std::byte*& memory) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.promises = GetParam().promises;
    farsum_window window{};
    if (GetParam().adopted) {
      own.assign(bytes + 1, std::byte{0});
      memory = own.data() + 1;
      EXPECT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, &options, &window));
    } else {
      void* given = nullptr;
      EXPECT_FINE(farsum_window_allocate(farsum_world(), bytes, &options, &given, &window));
      memory = static_cast<std::byte*>(given);
    }
    return window;
  }
};

INSTANTIATE_TEST_SUITE_P(
    EachPath, AnyAddress,
    testing::Values(AddressCase{"automatic", "auto", false}, AddressCase{"automatic_adopted", "auto", true},
                    AddressCase{"single_elements", "auto", false, FARSUM_SINGLE_ELEMENT},
                    AddressCase{"owner", "owner", false}, AddressCase{"owner_adopted", "owner", true},
                    AddressCase{"caller", "caller", false}, AddressCase{"caller_adopted", "caller", true},
                    AddressCase{"attach", "attach", false}, AddressCase{"attach_adopted", "attach", true},
                    AddressCase{"aggregated", "aggregated", false}),
    [](const testing::TestParamInfo<AddressCase>& tested) { return std::string(tested.param.name); });

TEST_P(AnyAddress, takes_single_elements_that_others_update_at_once) {
  run_ranks(job(3), [](int) {
    std::vector<std::byte> own;
    std::byte* memory = nullptr;
    const farsum_window window = make(2 * stripe, own, memory);
    // Words at odd places, among them all that straddle the boundary in the middle.
    std::vector<std::uint64_t> places;
    for (std::uint64_t shift = 1; shift < 8; ++shift) places.push_back(64 * shift + shift);
    for (std::uint64_t place = stripe - 12; place < stripe + 4; place += 8) places.push_back(place + 1);
    ASSERT_FINE(farsum_lock_all(window));
    const std::uint64_t one = 1;
    std::uint64_t fetched = 0;
    for (int round = 0; round < 50; ++round) {
      for (const std::uint64_t place : places) {
        ASSERT_FINE(farsum_accumulate(window, 0, place, &one, 1, FARSUM_UINT64, FARSUM_SUM));
        std::uint64_t old = 0;
        ASSERT_FINE(farsum_fetch_op(window, 0, place, &one, &old, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_GE(old, fetched == 0 ? 0 : 1);
        fetched = old;
        std::uint64_t expected = old + 1, seen = 0;
        for (;;) {
          const std::uint64_t next = expected + 1;
          ASSERT_FINE(farsum_compare_and_swap(window, 0, place, &expected, &next, &seen, FARSUM_UINT64));
          if (seen == expected) break;
          expected = seen;
        }
      }
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    int rank = 0;
    ASSERT_FINE(farsum_rank(farsum_world(), &rank));
    if (rank == 0) {
      for (const std::uint64_t place : places) {
        std::uint64_t value = 0;
        std::memcpy(&value, memory + place, sizeof value);
        EXPECT_EQ(value, 3U * 50 * 3) << place;
      }
    }
    farsum_window free = window;
    ASSERT_FINE(farsum_window_free(&free));
  });
}

TEST_P(AnyAddress, takes_runs_that_straddle_stripes) {
  if ((GetParam().promises & FARSUM_SINGLE_ELEMENT) != 0) GTEST_SKIP() << "runs are no single elements";
  run_ranks(job(3), [](int rank) {
    std::vector<std::byte> own;
    std::byte* memory = nullptr;
    const farsum_window window = make(4 * stripe, own, memory);
    constexpr std::size_t count = 3 * stripe / 8;
    const std::vector<double> ones(count, 1);
    std::vector<double> old(count);
    ASSERT_FINE(farsum_lock_all(window));
    for (int round = 0; round < 20; ++round) {
      ASSERT_FINE(farsum_accumulate(window, 0, 3, ones.data(), count, FARSUM_DOUBLE, FARSUM_SUM));
      ASSERT_FINE(farsum_get_accumulate(window, 0, 3, ones.data(), old.data(), count, FARSUM_DOUBLE, FARSUM_SUM));
      ASSERT_FINE(farsum_flush(window, 0));
    }
    // Complex numbers are longer than their alignment and straddle where words do not.
    ASSERT_FINE(farsum_accumulate(window, 1, 8, ones.data(), count / 2, FARSUM_COMPLEX_DOUBLE, FARSUM_SUM));
    const std::int64_t scattered[] = {1, 17, static_cast<std::int64_t>(stripe) - 5, 5 * 1001};
    farsum_layout layout{};
    layout.kind = FARSUM_INDEXED;
    layout.bytes = 8;
    layout.pieces = 4;
    layout.offsets = scattered;
    farsum_operation operation{};
    operation.struct_bytes = sizeof operation;
    operation.kind = FARSUM_ACCUMULATE;
    operation.type = FARSUM_DOUBLE;
    operation.op = FARSUM_SUM;
    operation.target = 2;
    operation.origin = ones.data();
    operation.target_layout = &layout;
    ASSERT_FINE(farsum_operate(window, &operation, nullptr));
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    const auto value_at = [&](std::size_t place) {
      double value = 0;
      std::memcpy(&value, memory + place, sizeof value);
      return value;
    };
    for (std::size_t i = 0; i < count; ++i) {
      if (rank == 0) {
        ASSERT_EQ(value_at(3 + 8 * i), 3 * 20 * 2.0) << i;
      }
      if (rank == 1) {
        ASSERT_EQ(value_at(8 + 8 * i), 3.0) << i;
      }
    }
    if (rank == 2) {
      for (const std::int64_t place : scattered) EXPECT_EQ(value_at(static_cast<std::size_t>(place)), 3.0) << place;
    }
    farsum_window free = window;
    ASSERT_FINE(farsum_window_free(&free));
  });
}

TEST_P(AnyAddress, takes_many_small_pieces_in_any_order_and_more_than_once) {
  if ((GetParam().promises & FARSUM_SINGLE_ELEMENT) != 0) GTEST_SKIP() << "lists are no single elements";
  run_ranks(job(3), [](int rank) {
    std::vector<std::byte> own;
    std::byte* memory = nullptr;
    const farsum_window window = make(4 * stripe, own, memory);
    // Ascending over two stripes with gaps, then backwards, then each place of the first ten again.
    std::vector<std::int64_t> places;
    for (int i = 0; i < 1000; ++i) places.push_back(24 * i + 5);
    for (int i = 0; i < 200; ++i) places.push_back(40'000 - 16 * i);
    for (int i = 0; i < 10; ++i) places.push_back(24 * i + 5);
    farsum_layout layout{};
    layout.kind = FARSUM_INDEXED;
    layout.bytes = 8;
    layout.pieces = places.size();
    layout.offsets = places.data();
    std::vector<double> ones(places.size(), 1);
    std::vector<double> old(places.size(), -1);
    farsum_operation operation{};
    operation.struct_bytes = sizeof operation;
    operation.kind = FARSUM_ACCUMULATE;
    operation.type = FARSUM_DOUBLE;
    operation.op = FARSUM_SUM;
    operation.origin = ones.data();
    operation.target_layout = &layout;
    ASSERT_FINE(farsum_lock_all(window));
    for (int round = 0; round < 20; ++round) ASSERT_FINE(farsum_operate(window, &operation, nullptr));
    operation.kind = FARSUM_GET_ACCUMULATE;
    operation.result = old.data();
    ASSERT_FINE(farsum_operate(window, &operation, nullptr));
    ASSERT_FINE(farsum_flush(window, 0));
    for (std::size_t i = 10; i < 1200; ++i) ASSERT_GE(old[i], 20) << i;
    for (std::size_t i = 0; i < 10; ++i) ASSERT_GE(old[1200 + i], old[i] + 1) << i;
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    ASSERT_FINE(farsum_lock_all(window));
    // Moved too.
    operation.kind = FARSUM_GET;
    operation.type = FARSUM_BYTE;
    operation.origin = nullptr;
    operation.result_layout = nullptr;
    ASSERT_FINE(farsum_operate(window, &operation, nullptr));
    ASSERT_FINE(farsum_flush(window, 0));
    for (std::size_t i = 0; i < places.size(); ++i) ASSERT_EQ(old[i], i < 10 || i >= 1200 ? 126 : 63) << i;
    if (rank == 1) {
      operation.kind = FARSUM_PUT;
      operation.target = 2;
      operation.result = nullptr;
      operation.origin = old.data();
      ASSERT_FINE(farsum_operate(window, &operation, nullptr));
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    if (rank == 2) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        double value = 0;
        std::memcpy(&value, memory + places[i], sizeof value);
        ASSERT_EQ(value, old[i]) << i;
      }
    }
    farsum_window free = window;
    ASSERT_FINE(farsum_window_free(&free));
  });
}

TEST(ContiguousParts, of_odd_sizes_keep_every_update_where_they_share_a_stripe_or_a_word) {
  run_ranks(4, [](int rank) {
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.promises = FARSUM_CONTIGUOUS_PARTS;
    constexpr std::size_t bytes = 8 * 1000 + 3;
    void* memory = nullptr;
    farsum_window window{};
    ASSERT_FINE(farsum_window_allocate(farsum_world(), bytes, &options, &memory, &window));
    ASSERT_FINE(farsum_lock_all(window));
    const std::vector<std::uint64_t> ones(1000, 1);
    for (int round = 0; round < 100; ++round) {
      for (int target = 0; target < 4; ++target) {
        std::uint64_t old = 0;
        ASSERT_FINE(farsum_accumulate(window, target, 0, ones.data(), 1000, FARSUM_UINT64, FARSUM_SUM));
        ASSERT_FINE(farsum_fetch_op(window, target, 7992, ones.data(), &old, FARSUM_UINT64, FARSUM_SUM));
      }
    }
    ASSERT_FINE(farsum_unlock_all(window));
    ASSERT_FINE(farsum_barrier(farsum_world()));
    for (std::size_t i = 0; i < 1000; ++i) {
      std::uint64_t value = 0;
      std::memcpy(&value, static_cast<std::byte*>(memory) + 8 * i, sizeof value);
      ASSERT_EQ(value, i == 999 ? 800U : 400U) << i << " rank " << rank;
    }
    ASSERT_FINE(farsum_window_free(&window));
  });
}

TEST(OwnPart, may_be_both_sides_of_a_put_and_a_get) {
  run_ranks(1, [](int) {
    for (const bool adopted : {false, true}) {
      std::vector<std::byte> own(5000);
      void* memory = own.data();
      farsum_window window{};
      if (adopted) {
        ASSERT_FINE(farsum_window_adopt(farsum_world(), memory, 5000, nullptr, &window));
      } else {
        ASSERT_FINE(farsum_window_allocate(farsum_world(), 5000, nullptr, &memory, &window));
      }
      auto* bytes = static_cast<unsigned char*>(memory);
      for (int i = 0; i < 5000; ++i) bytes[i] = static_cast<unsigned char>(i % 251);
      ASSERT_FINE(farsum_lock_all(window));
      ASSERT_FINE(farsum_put(window, 0, 0, bytes, 5000));
      ASSERT_FINE(farsum_get(window, 0, 0, bytes, 5000));
      for (int i = 0; i < 5000; ++i) ASSERT_EQ(bytes[i], i % 251);
      ASSERT_FINE(farsum_put(window, 0, 100, bytes, 4000));
      for (int i = 0; i < 4000; ++i) ASSERT_EQ(bytes[100 + i], i % 251);
      ASSERT_FINE(farsum_get(window, 0, 100, bytes, 4000));
      for (int i = 0; i < 4000; ++i) ASSERT_EQ(bytes[i], i % 251);
      ASSERT_FINE(farsum_unlock_all(window));
      ASSERT_FINE(farsum_window_free(&window));
    }
  });
}

TEST(EmptyParts, take_operations_of_no_bytes_at_their_end) {
  run_ranks(2, [](int rank) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}}) {
      for (const bool adopted : {false, true}) {
        void* memory = nullptr;
        std::vector<std::byte> own(bytes);
        farsum_window window{};
        if (adopted) {
          ASSERT_FINE(farsum_window_adopt(farsum_world(), bytes == 0 ? nullptr : own.data(), bytes, nullptr, &window));
        } else {
          ASSERT_FINE(farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &window));
        }
        ASSERT_FINE(farsum_lock_all(window));
        for (const int target : {rank, 1 - rank}) {
          EXPECT_FINE(farsum_put(window, target, bytes, nullptr, 0));
          EXPECT_FINE(farsum_get(window, target, bytes, nullptr, 0));
          EXPECT_FINE(farsum_accumulate(window, target, bytes, nullptr, 0, FARSUM_DOUBLE, FARSUM_SUM));
          EXPECT_FINE(farsum_get_accumulate(window, target, bytes, nullptr, nullptr, 0, FARSUM_DOUBLE, FARSUM_SUM));
        }
        ASSERT_FINE(farsum_unlock_all(window));
        ASSERT_FINE(farsum_window_free(&window));
      }
    }
  });
}

}  // namespace
}  // namespace farsum::test
