#include "promotion/map_check.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <vector>

#include "os/own_map.hpp"
#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

constexpr int read_write = PROT_READ | PROT_WRITE;

class MapCheck : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_raw_calls) GTEST_SKIP() << "this build makes no calls of its own";
  }

  static bool are_as(const std::vector<ExpectedPiece>& pieces) {
    // So small that lines are cut anywhere.
    std::array<char, 37> buffer{};
    return are_mapped(pieces, buffer);
  }

  static ExpectedPiece piece(const std::byte* at, std::size_t bytes, int protection = read_write) {
    return {.at = stretch_of(at, bytes), .protection = protection};
  }

  const std::size_t page_ = test_page_bytes();
};

TEST_F(MapCheck, knows_anonymous_memory_and_its_protection) {
  const OwnMap map = OwnMap::alone(8 * page_);
  EXPECT_TRUE(are_as({piece(map.middle(), 8 * page_)}));
  EXPECT_TRUE(are_as({piece(map.middle() + page_, page_)}));
  EXPECT_FALSE(are_as({piece(map.middle(), 8 * page_, PROT_READ)}));
  EXPECT_FALSE(are_as({piece(map.middle(), 9 * page_)})) << "the last page may not be touched";
  EXPECT_FALSE(are_as({piece(map.middle() - page_, 2 * page_)}));
}

TEST_F(MapCheck, finds_pieces_over_several_maps_and_several_in_one) {
  const OwnMap map = OwnMap::alone(8 * page_);
  ASSERT_EQ(mprotect(map.middle() + 3 * page_, page_, PROT_READ), 0);
  EXPECT_FALSE(are_as({piece(map.middle(), 8 * page_)}));
  EXPECT_TRUE(are_as({piece(map.middle(), page_), piece(map.middle() + 2 * page_, page_),
                      piece(map.middle() + 3 * page_, page_, PROT_READ), piece(map.middle() + 4 * page_, 4 * page_)}));
  // Two maps that differ in what this check does not ask for.
  ASSERT_EQ(mprotect(map.middle() + 3 * page_, page_, read_write), 0);
  ASSERT_EQ(madvise(map.middle() + 5 * page_, page_, MADV_DONTFORK), 0);
  EXPECT_TRUE(are_as({piece(map.middle(), 8 * page_)}));
}

TEST_F(MapCheck, sees_holes_and_what_ends_early) {
  const OwnMap map = OwnMap::alone(8 * page_);
  ASSERT_EQ(munmap(map.middle() + 3 * page_, page_), 0);
  EXPECT_FALSE(are_as({piece(map.middle(), 8 * page_)}));
  EXPECT_FALSE(are_as({piece(map.middle() + 3 * page_, page_)}));
  EXPECT_TRUE(are_as({piece(map.middle(), 3 * page_), piece(map.middle() + 4 * page_, 4 * page_)}));
  EXPECT_FALSE(are_as({{.at = {UINTPTR_MAX - 2 * page_ + 1, UINTPTR_MAX - page_ + 1}, .protection = read_write}}));
}

TEST_F(MapCheck, knows_a_file_and_the_place_in_it) {
  const SharedFile file(16 * page_);
  struct stat facts {};
  ASSERT_EQ(fstat(file.fd(), &facts), 0);
  const OwnMap map(4 * page_, read_write, MAP_SHARED, file.fd());
  const auto of_file = [&](std::size_t first, std::uint64_t offset) {
    return ExpectedPiece{.at = stretch_of(map.data() + first, page_),
                         .protection = read_write,
                         .shared = true,
                         .device = facts.st_dev,
                         .inode = facts.st_ino,
                         .file_offset = offset};
  };
  EXPECT_TRUE(are_as({of_file(0, 0), of_file(2 * page_, 2 * page_)}));
  EXPECT_FALSE(are_as({of_file(page_, 0)}));
  ExpectedPiece other = of_file(0, 0);
  other.inode += 1;
  EXPECT_FALSE(are_as({other}));
  other = of_file(0, 0);
  other.device += 1;
  EXPECT_FALSE(are_as({other}));
  EXPECT_FALSE(are_as({piece(map.data(), page_)})) << "not anonymous";
}

}  // namespace
}  // namespace farsum::os
