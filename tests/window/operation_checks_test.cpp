// What an operation must satisfy before anything is touched, and what the sentences name.
#include "window/operation_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace farsum {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A window 3 'field' of two ranks with 64 bytes each, on another node.
class Checks : public testing::Test {
 protected:
  Checks() {
    const auto whole = std::make_shared<std::vector<Region>>(1);
    whole->front().bytes = 64;
    told_ = {whole, whole};
    for (std::uint32_t target = 0; target < 2; ++target) (void)regions_.read(target);
    operation.kind = OperationKind::accumulate;
    operation.type = ops::ElementType::int64;
    operation.op = ops::Operator::sum;
    operation.operand = reinterpret_cast<const std::byte*>(words.data());
    operation.bytes = 8;
    operation.target_layout = operation.operand_layout = ops::LayoutView::contiguous(8);
  }

  Status checked(std::uint32_t promises = 0) {
    const OperationChecks checks(
        {.sizes = sizes_, .promises = promises, .notification_slots = 2, .regions = regions_, .texts = texts_});
    return checks.all(operation, 1, at);
  }

  std::array<std::int64_t, 8> words{};
  Operation operation;
  RegionRef at;

 private:
  std::string name_ = "field";
  std::vector<Rank> ranks_ = {4, 5};
  std::vector<RankWindow> shared_ = {RankWindow(), RankWindow()};
  std::vector<RegionTable> told_;
  std::vector<std::uint64_t> sizes_ = {64, 64};
  LockAgent agent_;
  std::function<Region(Rank, const SharedRegion&)> make_;
  std::function<std::string(std::uint32_t, const Region&)> explain_;
  std::function<bool(const void*, std::uint64_t)> reach_;
  RegionTables regions_{{.ranks = ranks_,
                         .shared = shared_,
                         .told = told_,
                         .agent = agent_,
                         .make = make_,
                         .explain = explain_,
                         .reach = reach_}};
  WindowTexts texts_{3, name_, ranks_, nullptr};
};

TEST_F(Checks, find_the_region_of_what_is_sound) {
  EXPECT_TRUE(checked().is_ok());
  ASSERT_NE(at.region, nullptr);
  EXPECT_TRUE(at.whole);
}

TEST_F(Checks, name_call_window_rank_and_range_of_what_lies_outside) {
  operation.offset = 60;
  const Status status = checked();
  EXPECT_EQ(status.code(), Code::range);
  EXPECT_THAT(status.text(), AllOf(HasSubstr("farsum_accumulate: window 3 'field', rank 1"), HasSubstr("[60, 68)"),
                                   HasSubstr("[0, 64)")));
}

TEST_F(Checks, do_not_let_an_offset_wrap_into_the_window) {
  operation.offset = ~std::uint64_t{0} - 3;
  EXPECT_EQ(checked().code(), Code::range);
}

TEST_F(Checks, refuse_an_operator_that_the_type_has_not) {
  operation.type = ops::ElementType::float64;
  operation.op = ops::Operator::bxor;
  EXPECT_EQ(checked().code(), Code::type);
}

TEST_F(Checks, refuse_what_breaks_the_promise_of_single_elements) {
  EXPECT_TRUE(checked(promise_single_element).is_ok());
  operation.bytes = 16;
  operation.target_layout = operation.operand_layout = ops::LayoutView::contiguous(16);
  EXPECT_TRUE(checked().is_ok());
  EXPECT_EQ(checked(promise_single_element).code(), Code::type);
}

TEST_F(Checks, refuse_layouts_of_other_bytes_than_the_operations) {
  operation.operand_layout = ops::LayoutView::contiguous(16);
  const Status status = checked();
  EXPECT_EQ(status.code(), Code::layout);
  EXPECT_THAT(status.text(), AllOf(HasSubstr("origin"), HasSubstr("16 bytes"), HasSubstr("8")));
}

TEST_F(Checks, refuse_buffers_and_values_that_are_null) {
  operation.operand = nullptr;
  EXPECT_EQ(checked().code(), Code::argument);
  operation.kind = OperationKind::get;
  operation.result_layout = ops::LayoutView::contiguous(8);
  EXPECT_EQ(checked().code(), Code::argument);
}

TEST_F(Checks, refuse_notifications_that_the_window_has_not) {
  operation.kind = OperationKind::put;
  operation.notify = true;
  operation.notify_slot = 2;
  EXPECT_EQ(checked().code(), Code::range);
  operation.notify_slot = 1;
  EXPECT_TRUE(checked().is_ok());
}

TEST_F(Checks, ask_for_no_region_where_nothing_is_touched) {
  operation.bytes = 0;
  operation.offset = 1000;
  operation.target_layout = operation.operand_layout = ops::LayoutView::contiguous(0);
  EXPECT_TRUE(checked().is_ok());
  EXPECT_EQ(at.region, nullptr);
}

}  // namespace
}  // namespace farsum
