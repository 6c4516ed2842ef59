#include "cluster/paper_rows.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/paper_cluster.hpp"
#include "cluster/samples.hpp"

namespace farsum::cluster {
namespace {

constexpr PaperRowOptions short_form{.calls = 1'000, .is_short = true};

const std::vector<PaperRow>& short_rows() {
  static const std::vector<PaperRow> rows = paper_rows(short_form);
  return rows;
}

// The one row of a figure with such a curve, quantity, vector, elements, splits and ranks.
const PaperRow& row(const std::string& figure, const std::string& curve, const std::string& quantity,
                    const PaperRow& wanted) {
  const PaperRow* found = nullptr;
  for (const PaperRow& row : short_rows()) {
    if (row.figure != figure || row.curve != curve || row.quantity != quantity || row.vector != wanted.vector) continue;
    if (row.ranks != wanted.ranks || row.nodes != wanted.nodes || row.elements != wanted.elements) continue;
    if (row.splits != wanted.splits) continue;
    EXPECT_EQ(found, nullptr) << "two rows of " << curve << ", " << quantity;
    found = &row;
  }
  static const PaperRow none;
  EXPECT_NE(found, nullptr) << "no row of " << curve << ", " << quantity;
  return found == nullptr ? none : *found;
}

PaperRow of(std::uint32_t nodes, std::uint32_t ranks, const char* vector, std::uint64_t elements = 1,
            std::uint32_t splits = 0) {
  PaperRow wanted;
  wanted.nodes = nodes;
  wanted.ranks = ranks;
  wanted.vector = vector;
  wanted.elements = elements;
  wanted.splits = splits;
  return wanted;
}

TEST(PaperRows, fit_the_barrier_on_the_40_us_alone_and_miss_the_65) {
  const PaperRow& barrier = row("figure 11", "card", "barrier", of(906, 906, "int32 sum"));
  EXPECT_DOUBLE_EQ(barrier.ours, 10.92);
  EXPECT_EQ(barrier.basis, Basis::fitted);
  EXPECT_DOUBLE_EQ(row("figure 11", "card", "average", of(906, 906, "int32 sum")).ours, 40);
  const PaperRow& predicted = row("figure 11", "card", "average", of(906, 906, "float64 sum"));
  EXPECT_DOUBLE_EQ(predicted.ours, 57.5);
  EXPECT_EQ(predicted.paper, 65);
  EXPECT_EQ(predicted.basis, Basis::predicted);
}

TEST(PaperRows, fit_the_load_on_the_73_us_alone) {
  const PaperRow& fitted = row("figure 11", "card", "average", of(906, 1812, "int32 sum"));
  EXPECT_NEAR(fitted.ours, 73, 2);
  EXPECT_EQ(fitted.basis, Basis::fitted);
  const PaperRow& predicted = row("figure 11", "card", "average", of(906, 1812, "float64 sum"));
  EXPECT_EQ(predicted.basis, Basis::predicted);
  EXPECT_EQ(predicted.paper, 118);
  EXPECT_GT(predicted.ours, fitted.ours);
}

TEST(PaperRows, have_splits_as_their_events_have_them) {
  EXPECT_DOUBLE_EQ(row("figure 13", "degree 4", "average", of(512, 512, "float64 sum", 2)).ours, 63.51 + 10.92);
  EXPECT_DOUBLE_EQ(row("figure 13", "degree 4", "average", of(512, 512, "float64 sum", 2, 1)).ours, 47.18 + 10.92);
  const PaperRow& factor = row("figure 13", "degree 4", "times as fast as unsplit", of(512, 512, "float64 sum", 8, 3));
  EXPECT_NEAR(factor.ours, 2.80, 0.01);
  EXPECT_EQ(factor.paper, 3);
  EXPECT_EQ(row("figure 13", "best degree", "average", of(512, 512, "float64 sum", 1)).degree, 3U);
}

TEST(PaperRows, have_a_curve_for_each_carrier_wherever_there_is_noise) {
  for (const char* curve : {"host", "card", "agent as a thread", "dedicated agent"}) {
    EXPECT_GT(row("figure 11", curve, "average", of(906, 1812, "float64 sum")).ours, 20) << curve;
    EXPECT_GE(row("table 3", curve, "standard deviation", of(900, 900, "float64 sum")).ours, 0) << curve;
    EXPECT_LE(row("figure 12", curve, "share within 4 us", of(900, 900, "float64 sum")).ours, 1) << curve;
  }
}

TEST(PaperRows, are_the_same_with_the_same_seed) {
  const std::vector<PaperRow> again = paper_rows(short_form);
  ASSERT_EQ(again.size(), short_rows().size());
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].ours, short_rows()[i].ours) << again[i].curve;
}

TEST(ThePapersHost, has_the_best_time_that_its_crossing_of_the_bus_was_taken_for) {
  const Reduction reduction{.nodes = 900, .type = ops::ElementType::float64};
  const Lists lists = paper_lists(CarrierKind::host, reduction);
  const Machine machine = paper_machine(CarrierKind::host, reduction, {});
  // A third of 89.30 us, as section 6.4 says.
  EXPECT_NEAR(measure(machine, lists, 1).averaged_us, 89.30 / 3, 0.5);
}

}  // namespace
}  // namespace farsum::cluster
