#include "promotion/touched_pages.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "mib.hpp"
#include "os/own_map.hpp"

namespace farsum::os {
namespace {

using Source = TouchedPages::Source;

using test::mib;

bool kernel_scans() {
  const OwnMap map = OwnMap::alone(test_page_bytes());
  return TouchedPages().bytes_in(stretch_of(map.middle(), test_page_bytes())) == 0 &&
         TouchedPages(Source::none).bytes_in(stretch_of(map.middle(), test_page_bytes())) != 0;
}

class Touched : public testing::TestWithParam<Source> {
 protected:
  void SetUp() override {
    if (!kernel_scans()) GTEST_SKIP() << "this kernel does not tell which pages are there";
  }
  // All runs of a stretch; those that touch each other at the end of a look are one.
  static std::vector<Stretch> runs_of(const Stretch& stretch) {
    TouchedPages pages(GetParam());
    std::vector<Stretch> runs;
    for (Stretch left = stretch; !left.is_empty();) {
      const Stretch seen = pages.look(left);
      EXPECT_EQ(seen.begin, left.begin);
      EXPECT_GT(seen.end, seen.begin);
      for (const Stretch& run : pages.runs()) {
        EXPECT_TRUE(seen.holds(run));
        if (!runs.empty() && runs.back().end == run.begin) {
          runs.back().end = run.end;
        } else {
          runs.push_back(run);
        }
      }
      left.begin = seen.end;
    }
    return runs;
  }
};

INSTANTIATE_TEST_SUITE_P(sources, Touched, testing::Values(Source::scan, Source::entries),
                         [](const auto& source) { return source.param == Source::scan ? "scan" : "entries"; });

TEST_P(Touched, are_those_that_were_written) {
  const OwnMap map = OwnMap::alone(8 * mib);
  const std::size_t page = test_page_bytes();
  const Stretch stretch = stretch_of(map.middle(), 8 * mib);
  EXPECT_TRUE(runs_of(stretch).empty());
  for (const std::size_t index : {0UL, 5UL, 6UL, 8 * mib / page - 1}) map.middle()[index * page] = std::byte{1};
  const std::vector<Stretch> runs = runs_of(stretch);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].bytes(), page);
  EXPECT_EQ(runs[1].begin, stretch.begin + 5 * page);
  EXPECT_EQ(runs[1].bytes(), 2 * page);
  EXPECT_EQ(runs[2].end, stretch.end);
  EXPECT_EQ(TouchedPages(GetParam()).bytes_in(stretch), 4 * page);
  EXPECT_EQ(TouchedPages(GetParam()).bytes_in({stretch.begin + page, stretch.begin + 6 * page}), page);
}

// More than one look has room for.
TEST_P(Touched, are_found_however_many_runs_there_are) {
  constexpr std::size_t count = 1500;
  const std::size_t page = test_page_bytes();
  const OwnMap map = OwnMap::alone(2 * count * page);
  for (std::size_t i = 0; i < count; ++i) map.middle()[2 * i * page] = std::byte{1};
  const std::vector<Stretch> runs = runs_of(stretch_of(map.middle(), 2 * count * page));
  ASSERT_EQ(runs.size(), count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(runs[i].begin, stretch_of(map.middle() + 2 * i * page, 1).begin);
}

TEST_P(Touched, are_all_where_all_were_written) {
  const OwnMap map = OwnMap::alone(5 * mib);
  fill(map.middle(), 5 * mib, 1);
  EXPECT_EQ(TouchedPages(GetParam()).bytes_in(stretch_of(map.middle(), 5 * mib)), 5 * mib);
}

TEST(TouchedPages, are_not_those_that_were_only_read) {
  if (!kernel_scans()) GTEST_SKIP() << "this kernel does not tell which pages are there";
  const OwnMap map = OwnMap::alone(mib);
  std::byte sum{};
  for (std::size_t i = 0; i < mib; i += test_page_bytes()) sum |= map.middle()[i];
  EXPECT_EQ(sum, std::byte{});
  EXPECT_EQ(TouchedPages().bytes_in(stretch_of(map.middle(), mib)), 0U);
}

TEST(TouchedPages, are_all_where_the_kernel_does_not_tell) {
  const OwnMap map = OwnMap::alone(mib);
  EXPECT_EQ(TouchedPages(Source::none).bytes_in(stretch_of(map.middle(), mib)), mib);
}

}  // namespace
}  // namespace farsum::os
