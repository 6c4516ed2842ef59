// Single maps asked of the kernel, and read from its text where it does not answer.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "mib.hpp"
#include "os/memory_map.hpp"
#include "own_map.hpp"

namespace farsum::os {
namespace {

using test::mib;

std::uintptr_t number_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool kernel_answers() {
  const long fd = library_map_calls().open(0);
  if (fd < 0) return false;
  BareMap map;
  const long result = ask_for_map(library_map_calls(), static_cast<int>(fd), 0, map);
  library_map_calls().close(static_cast<int>(fd));
  return result == 0;
}

// A kernel before Linux 6.11.
const MapCalls& older_kernel() {
  static const MapCalls calls = [] {
    MapCalls changed = library_map_calls();
    changed.ask = [](int, MapQuestion*) -> long { return -ENOTTY; };
    return changed;
  }();
  return calls;
}

// Four pages: read and write, none, a hole, read only.
struct Patchwork {
  Patchwork() : map(OwnMap::alone(4 * page)) {
    mprotect(map.middle() + page, page, PROT_NONE);
    munmap(map.middle() + 2 * page, page);
    mprotect(map.middle() + 3 * page, page, PROT_READ);
  }
  std::byte* at(std::size_t index) const { return map.middle() + index * page; }

  const std::size_t page = test_page_bytes();
  OwnMap map;
};

using Line = std::tuple<std::uintptr_t, std::uintptr_t, bool, bool, bool, bool, std::uint64_t, std::uint64_t,
                        std::uint64_t, std::string>;

std::vector<Line> lines_of(const std::vector<Map>& maps) {
  std::vector<Line> lines;
  for (const Map& map : maps) {
    lines.emplace_back(map.begin, map.end, map.readable, map.writable, map.executable, map.shared, map.file_offset,
                       map.device, map.inode, map.name);
  }
  return lines;
}

// Looks at maps of this process, as `look` does and as the file has them, until the file says the same before and
// after: what looks allocates, and where a sanitizer does that it maps.
template <class Look, class Expect>
void expect_the_same(Look look, Expect expect) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto before = expect();
    const auto seen = look();
    if (before != expect()) continue;
    EXPECT_EQ(seen, before);
    return;
  }
  FAIL() << "the maps change with every look";
}

class EitherKernel : public testing::TestWithParam<const MapCalls*> {};

INSTANTIATE_TEST_SUITE_P(kernels, EitherKernel, testing::Values(&library_map_calls(), &older_kernel()),
                         [](const auto& kernel) { return kernel.param == &older_kernel() ? "older" : "this"; });

TEST_P(EitherKernel, tells_of_a_range_what_the_file_says) {
  const MapReader reader(*GetParam());
  const Patchwork patchwork;
  const SharedFile file(2 * mib);
  const OwnMap shared(mib, PROT_READ, MAP_SHARED, file.fd());
  int on_stack = 0;
  static int in_data = 1;
  const void* const places[] = {patchwork.at(0), shared.data(), &on_stack, &in_data, sbrk(0)};
  for (const void* place : places) {
    const std::uintptr_t begin = number_of(place) - mib;
    const std::uintptr_t end = number_of(place) + mib;
    expect_the_same([&] { return lines_of(reader.maps(begin, end, MapReader::Names::asked)); },
                    [&] {
                      std::vector<Map> expected = read_maps();
                      std::erase_if(expected, [&](const Map& map) { return !map.overlaps(begin, end); });
                      return lines_of(expected);
                    });
  }
}

TEST_P(EitherKernel, says_what_every_byte_of_a_range_may_be) {
  const MapReader reader(*GetParam());
  const Patchwork patchwork;
  const auto may = [&](std::size_t from, std::size_t pages) {
    const MapReader::Access access = reader.access(patchwork.at(from), pages * patchwork.page);
    return std::string(access.readable ? "r" : "-") + (access.writable ? "w" : "-");
  };
  EXPECT_EQ(may(0, 1), "rw");
  EXPECT_EQ(may(0, 2), "--");
  EXPECT_EQ(may(1, 1), "--");
  EXPECT_EQ(may(1, 2), "--");
  EXPECT_EQ(may(2, 1), "--");
  EXPECT_EQ(may(2, 2), "--");
  EXPECT_EQ(may(3, 1), "r-");
  EXPECT_EQ(may(3, 2), "--");
  EXPECT_TRUE(reader.access(patchwork.at(3), 0).readable);
  EXPECT_FALSE(reader.access(patchwork.at(0), SIZE_MAX).readable);
}

TEST_P(EitherKernel, cuts_a_range_where_its_bytes_become_others) {
  const MapReader reader(*GetParam());
  const Patchwork patchwork;
  const std::size_t half = patchwork.page / 2;
  std::string found;
  std::uintptr_t reached = number_of(patchwork.at(0)) + half;
  const std::size_t bytes = 4 * patchwork.page;
  for (const MapReader::Part& part : reader.parts(patchwork.at(0) + half, bytes)) {
    EXPECT_EQ(part.begin, reached);
    reached = part.end;
    found += std::to_string((part.end - part.begin) / half) + (part.readable ? "r" : "-") + (part.writable ? "w" : "-");
  }
  EXPECT_EQ(reached, number_of(patchwork.at(0)) + half + bytes);
  // A guard page and a hole are alike here. Behind the last page OwnMap has a guard of its own.
  EXPECT_EQ(found, "1rw4--2r-1--");
  EXPECT_TRUE(reader.parts(patchwork.at(0), 0).size() <= 1);
}

TEST_P(EitherKernel, tells_a_forked_child_of_its_own_maps) {
  const MapReader reader(*GetParam());
  OwnMap map = OwnMap::alone(mib);
  ASSERT_TRUE(reader.access(map.middle(), mib).readable);
  EXPECT_EQ(run_in_child([&] {
              mprotect(map.middle(), mib, PROT_NONE);
              return reader.access(map.middle(), mib).readable ? 1 : 0;
            }),
            0);
  EXPECT_TRUE(reader.access(map.middle(), mib).readable);
}

TEST_P(EitherKernel, is_walked_in_steps) {
  const Patchwork patchwork;
  const std::uintptr_t begin = number_of(patchwork.at(0)) - mib;
  const std::uintptr_t end = number_of(patchwork.at(0)) + mib;
  const auto walk_all = [&] {
    // So small that lines are cut anywhere.
    std::array<char, 37> buffer;
    MapWalk walk(buffer, *GetParam());
    EXPECT_TRUE(walk.is_open());
    std::vector<std::uintptr_t> seen;
    BareMap map;
    for (std::uintptr_t at = begin; walk.next(at, map) && map.begin < end; at = map.end) seen.push_back(map.begin);
    EXPECT_FALSE(walk.failed());
    return seen;
  };
  expect_the_same(walk_all, [&] {
    std::vector<std::uintptr_t> expected;
    for (const Map& one : read_maps()) {
      if (one.overlaps(begin, end)) expected.push_back(one.begin);
    }
    return expected;
  });
}

TEST_P(EitherKernel, is_walked_to_the_last_map) {
  std::array<char, 4096> buffer;
  MapWalk walk(buffer, *GetParam());
  BareMap map;
  std::uintptr_t at = 0;
  while (walk.next(at, map)) at = map.end;
  EXPECT_FALSE(walk.failed());
  int on_stack = 0;
  EXPECT_GT(at, number_of(&on_stack));
}

TEST(MapReader, asks_one_question_about_memory_in_one_map) {
  if (!kernel_answers()) GTEST_SKIP() << "this kernel answers no questions about single maps";
  const MapReader reader;
  const OwnMap map = OwnMap::alone(mib);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(reader.access(map.middle(), mib).writable);
    EXPECT_EQ(reader.questions(), i);
  }
  EXPECT_EQ(reader.readings(), 0U);
}

TEST(MapReader, asks_an_older_kernel_no_more) {
  const MapReader reader(older_kernel());
  const OwnMap map = OwnMap::alone(mib);
  EXPECT_TRUE(reader.access(map.middle(), mib).writable);
  const std::uint64_t questions = reader.questions();
  EXPECT_TRUE(reader.access(map.middle(), mib).writable);
  EXPECT_EQ(reader.questions(), questions);
  EXPECT_EQ(reader.readings(), 2U);
}

// Some programs close all descriptors that they know nothing of, and give out the numbers anew.
TEST(MapReader, survives_the_loss_of_its_descriptor) {
  if (!kernel_answers()) GTEST_SKIP() << "this kernel answers no questions about single maps";
  const OwnMap map = OwnMap::alone(mib);
  int taken = -1;
  {
    const MapReader reader;
    const int next = dup(STDIN_FILENO);
    close(next);
    ASSERT_TRUE(reader.access(map.middle(), mib).writable);
    ASSERT_NE(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(next)).string().find("/maps"),
              std::string::npos);
    close(next);
    EXPECT_TRUE(reader.access(map.middle(), mib).writable);
    taken = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(dup2(taken, next), next);
    EXPECT_TRUE(reader.access(map.middle(), mib).writable);
    close(taken);
    taken = next;
  }
  // What has the number now is the program's.
  EXPECT_EQ(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(taken)).string(), "/dev/null");
  close(taken);
}

}  // namespace
}  // namespace farsum::os
