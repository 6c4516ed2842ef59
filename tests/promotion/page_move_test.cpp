#include "promotion/page_move.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "huge_pages.hpp"
#include "mib.hpp"
#include "os/own_map.hpp"
#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

using test::huge_bytes;
using test::PlacedMap;

using test::mib;

TEST(Steps, end_where_huge_pages_do_and_leave_nothing_out) {
  const Stretch stretch{0x10'0000'3000, 0x10'0000'3000 + 200 * mib};
  std::vector<Stretch> steps;
  EXPECT_EQ(for_each_step(stretch,
                          [&](const Stretch& step) {
                            steps.push_back(step);
                            return 0;
                          }),
            0);
  ASSERT_EQ(steps.size(), 4U);
  std::uintptr_t reached = stretch.begin;
  for (const Stretch& step : steps) {
    EXPECT_EQ(step.begin, reached);
    EXPECT_LE(step.bytes(), step_bytes);
    EXPECT_TRUE(step.end == stretch.end || step.end % huge_page_bytes == 0);
    reached = step.end;
  }
  EXPECT_EQ(reached, stretch.end);
}

TEST(Steps, of_a_stretch_that_fits_into_one_are_one) {
  const Stretch stretch{0x3000, 0x3000 + step_bytes};
  int steps = 0;
  EXPECT_EQ(for_each_step(stretch,
                          [&](const Stretch& step) {
                            EXPECT_EQ(step.end, stretch.end);
                            return ++steps == 1 ? 0 : 1;
                          }),
            0);
}

class HugePages : public testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override {
    if (GetParam() == Carrier::kernel && !has_raw_calls)
      GTEST_SKIP() << "no calls straight to the kernel in this build";
    if (const std::string reason = test::why_no_huge_pages(); !reason.empty()) GTEST_SKIP() << reason;
  }

  // What of the file is on huge pages, seen through a map that has none of its own.
  std::size_t huge_bytes_of_file(std::size_t bytes) const {
    const PlacedMap map(bytes, 0);
    EXPECT_NE(mmap(map.data(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_.fd(), 0),
              MAP_FAILED);
    return huge_bytes(map.data(), bytes);
  }

  SharedFile file_{64 * mib};
};

INSTANTIATE_TEST_SUITE_P(carriers, HugePages, testing::Values(Carrier::library, Carrier::kernel));

TEST_P(HugePages, back_a_files_part_that_is_congruent_to_the_memory_and_no_more) {
  // Two whole huge pages, and most of one on either side.
  const PlacedMap map(8 * mib, 1 * mib);
  const Stretch step = stretch_of(map.data() + 4096, 6 * mib - 8192);
  ASSERT_TRUE(make_huge(step, file_.fd(), 1 * mib + 4096, GetParam()));
  EXPECT_EQ(huge_bytes_of_file(16 * mib), 2 * huge_page_bytes);
}

TEST_P(HugePages, are_not_asked_for_where_they_could_not_be_mapped) {
  const PlacedMap map(8 * mib, 0);
  EXPECT_FALSE(make_huge(stretch_of(map.data(), 8 * mib), file_.fd(), 1 * mib, GetParam()));
  EXPECT_FALSE(make_huge(stretch_of(map.data() + 4096, 2 * mib), file_.fd(), 4096, GetParam()));
  EXPECT_EQ(huge_bytes_of_file(16 * mib), 0U);
}

TEST_P(HugePages, keep_what_the_file_holds_already) {
  const PlacedMap map(4 * mib, 0);
  ASSERT_EQ(pwrite(file_.fd(), "farsum", 6, 3 * mib), 6);
  ASSERT_TRUE(make_huge(stretch_of(map.data(), 4 * mib), file_.fd(), 0, GetParam()));
  char seen[6] = {};
  ASSERT_EQ(pread(file_.fd(), seen, 6, 3 * mib), 6);
  EXPECT_EQ(std::string_view(seen, 6), "farsum");
}

TEST_P(HugePages, leave_no_map_of_the_file_behind) {
  const PlacedMap map(4 * mib, 0);
  ASSERT_TRUE(make_huge(stretch_of(map.data(), 4 * mib), file_.fd(), 0, GetParam()));
  struct stat file {};
  ASSERT_EQ(fstat(file_.fd(), &file), 0);
  for (const Map& other : read_maps()) EXPECT_FALSE(other.device == file.st_dev && other.inode == file.st_ino);
}

}  // namespace
}  // namespace farsum::os
