// Many single elements on mapped memory in one call: what is carried out, under which locks, and what is left to the
// long way.
#include "window/mapped_scatter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "scripted_parts.hpp"

namespace farsum {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Scattering : public testing::Test {
 protected:
  using Words = std::array<std::uint64_t, 8>;

  Scattering() {
    std::iota(words.begin(), words.end(), 0);
    agent.id = 3;
    agent.liveness = &death;
    view.memory = reinterpret_cast<std::byte*>(words.data());
    view.direct_bytes = sizeof words;
    view.domain.locks = &stripe;
    view.open.store(passive_epoch);
    list.offsets = places;
    list.elements = values.data();
    list.type = ops::ElementType::uint64;
    list.op = ops::Operator::sum;
  }

  bool run() {
    status = Status();
    return scatter.run(view, 1, list, status);
  }
  // The long way is to find out why, and nothing has happened.
  void expect_refused(const std::string& what) {
    const Words before = words;
    EXPECT_FALSE(run()) << what;
    EXPECT_EQ(words, before) << what;
    EXPECT_EQ(view.hot_operations.load(), 0) << what;
    EXPECT_EQ(view.unfenced.load(), 0) << what;
  }

  alignas(64) Words words{};
  std::vector<std::int64_t> places = {16, 48, 16};
  std::vector<std::uint64_t> values = {100, 200, 1000};
  StripeLock stripe;
  ScriptedDeath death;
  LockAgent agent;
  TargetView view;
  MappedScatter::List list;
  Status status;

 private:
  std::string name_;
  std::vector<Rank> ranks_ = {5, 2};
  WindowTexts texts_{3, name_, ranks_, &death};

 protected:
  MappedScatter scatter{ops::kernels_for_this_machine(), agent, texts_};
};

TEST_F(Scattering, adds_each_element_where_it_belongs_under_locks_and_by_atomics) {
  for (const bool atomics_only : {false, true}) {
    std::iota(words.begin(), words.end(), 0);
    view.domain.atomics_only = atomics_only;
    ASSERT_TRUE(run());
    EXPECT_EQ(status.text(), "");
    EXPECT_THAT(words, ElementsAre(0, 1, 1102, 3, 4, 5, 206, 7)) << atomics_only;
    EXPECT_EQ(stripe.holder(), 0);
  }
}

TEST_F(Scattering, counts_what_it_did_and_what_a_flush_has_to_fence) {
  ASSERT_TRUE(run());
  EXPECT_EQ(view.hot_operations.load(), 3);
  EXPECT_EQ(view.hot_bytes.load(), 24);
  EXPECT_EQ(view.unfenced.load(), 1);
  EXPECT_EQ(view.hot_words.load(), 0);
}

TEST_F(Scattering, has_every_operator_on_words_that_only_atomics_may_touch) {
  using ops::Operator;
  view.domain.atomics_only = true;
  places = {0};
  values = {6};
  list.offsets = places;
  const std::vector<std::pair<Operator, std::uint64_t>> expected = {
      {Operator::sum, 16},    {Operator::bxor, 12}, {Operator::bor, 14}, {Operator::band, 2},
      {Operator::replace, 6}, {Operator::min, 6},   {Operator::max, 10}, {Operator::prod, 60}};
  for (const auto& [op, value] : expected) {
    words[0] = 10;
    list.op = op;
    ASSERT_TRUE(run()) << ops::name_of(op);
    EXPECT_EQ(words[0], value) << ops::name_of(op);
  }
}

TEST_F(Scattering, has_no_integers_sum_for_what_is_no_integer) {
  for (const bool atomics_only : {false, true}) {
    view.domain.atomics_only = atomics_only;
    std::array<double, 2> memory = {1.5, 2.5};
    const std::array<double, 2> addends = {0.25, 0.5};
    const std::array<std::int64_t, 2> at = {8, 0};
    view.memory = reinterpret_cast<std::byte*>(memory.data());
    view.direct_bytes = sizeof memory;
    list = {0, at, addends.data(), ops::ElementType::float64, ops::Operator::sum};
    ASSERT_TRUE(run());
    EXPECT_THAT(memory, ElementsAre(2.0, 2.75));
  }
}

TEST_F(Scattering, asks_lines_ahead_to_the_end_of_a_long_list_and_no_further) {
  std::vector<std::uint64_t> memory(100, 1), addends(100);
  std::vector<std::int64_t> at(100);
  for (std::size_t i = 0; i < 100; ++i) {
    at[i] = static_cast<std::int64_t>(8 * (99 - i));
    addends[i] = i;
  }
  view.domain.atomics_only = true;
  view.memory = reinterpret_cast<std::byte*>(memory.data());
  view.direct_bytes = 800;
  list.offsets = at;
  list.elements = addends.data();
  ASSERT_TRUE(run());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(memory[99 - i], 1 + i) << i;
}

TEST_F(Scattering, counts_places_from_the_offset_backwards_too) {
  list.offset = 24;
  places = {-24, 32, 0};
  ASSERT_TRUE(run());
  EXPECT_THAT(words, ElementsAre(100, 1, 2, 1003, 4, 5, 6, 207));
}

TEST_F(Scattering, leaves_to_the_long_way_what_lies_outside) {
  for (const std::vector<std::int64_t>& outside :
       std::vector<std::vector<std::int64_t>>{{0, 64}, {0, 57}, {0, -8}, {std::numeric_limits<std::int64_t>::min()}}) {
    list.offsets = outside;
    expect_refused("at " + std::to_string(outside.back()));
  }
  list.offsets = places;
  list.offset = 8;
  places = {56, 0, 0};
  expect_refused("behind the offset");
  places = {-72, -64, -72};
  list.offset = 72;
  expect_refused("an offset behind the part");
  list.offset = 0;
  places = {0, 8, 16};
  view.direct_bytes = 7;
  expect_refused("in a part shorter than an element");
  view.direct_bytes = 0;
  expect_refused("not mapped here");
}

TEST_F(Scattering, leaves_to_the_long_way_what_is_not_aligned) {
  places = {0, 12, 16};
  expect_refused("at 12");
  places = {0, 8, 16};
  list.offset = 4;
  expect_refused("behind an offset of 4");
}

TEST_F(Scattering, leaves_to_the_long_way_what_is_not_plain) {
  const MappedScatter::List plain = list;
  const auto expect_without = [&](const char* what, const std::function<void()>& change) {
    change();
    expect_refused(what);
    list = plain;
  };
  expect_without("nothing", [&] { list.offsets = {}; });
  expect_without("no elements", [&] { list.elements = nullptr; });
  expect_without("a factor that it is not given", [&] { list.op = ops::Operator::scaled_sum; });
  expect_without("bits of a double", [&] {
    list.type = ops::ElementType::float64;
    list.op = ops::Operator::bxor;
  });
  view.domain.atomics_only = true;
  expect_without("no processor has atomics of 16 bytes", [&] { list.type = ops::ElementType::complex128; });
}

TEST_F(Scattering, leaves_to_the_long_way_what_no_epoch_allows) {
  for (const std::int32_t open : {std::int32_t{no_epoch}, std::int32_t{epoch_changing}}) {
    view.open.store(open);
    expect_refused("no epoch");
  }
  view.open.store(active_epoch);
  EXPECT_TRUE(run());
}

TEST_F(Scattering, names_who_died_with_the_stripe) {
  ASSERT_TRUE(stripe.try_acquire(7));
  death.dead = 6;
  ASSERT_TRUE(run());
  EXPECT_EQ(status.code(), Code::peer_failed);
  EXPECT_THAT(status.text(), HasSubstr("farsum_accumulate: window 3, rank 1: rank 6 of the job died while it held the "
                                       "lock of the stripe at offset 16"));
  EXPECT_EQ(words[2], 2);
}

}  // namespace
}  // namespace farsum
