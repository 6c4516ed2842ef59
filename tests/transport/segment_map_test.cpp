// How much of the node segment a process maps, and when.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mib.hpp"

#include "transport/shm/segment_map.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

using test::mib;
constexpr std::uint64_t granule = SegmentMap::granule_bytes;
constexpr std::uint64_t most_step = SegmentMap::most_step_bytes;

class MapByUse : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = memfd_create("farsum-test", MFD_CLOEXEC);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(ftruncate(fd_, static_cast<off_t>(file_bytes)), 0);
  }
  void TearDown() override { close(fd_); }
  std::unique_ptr<SegmentMap> make() const {
    Result<std::unique_ptr<SegmentMap>> made = SegmentMap::make(fd_, file_bytes);
    EXPECT_TRUE(made.is_ok());
    return made.is_ok() ? std::move(made.value()) : nullptr;
  }
  // Runs it in a process of its own, whose limits it may lower.
  template <class Body>
  static void in_child(Body body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status << "; its report is above";
  }
  static void limit_address_space(std::uint64_t more) {
    std::uint64_t pages = 0;
    FILE* const file = std::fopen("/proc/self/statm", "r");
    ASSERT_EQ(std::fscanf(file, "%lu", &pages), 1);
    std::fclose(file);
    const rlimit limit{pages * page_bytes + more, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }

  static constexpr std::uint64_t file_bytes = std::uint64_t{4} << 30;
  int fd_ = -1;
};

TEST_F(MapByUse, begins_on_a_boundary_of_huge_pages_with_one_step) {
  const auto map = make();
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(map->begin()) % huge_page_bytes, 0U);
  EXPECT_EQ(map->mapped_bytes(), map->is_limited() ? granule : most_step);
}

TEST_F(MapByUse, shows_two_maps_of_a_process_the_same_bytes) {
  const auto one = make(), other = make();
  ASSERT_TRUE(one != nullptr && other != nullptr);
  EXPECT_NE(one->begin(), other->begin());
  for (const std::uint64_t offset :
       {std::uint64_t{0}, most_step - 1, most_step, 3 * most_step + 5 * granule - 1, file_bytes - 1}) {
    ASSERT_TRUE(one->reach(offset, 1).is_ok());
    ASSERT_TRUE(other->reach(offset, 1).is_ok());
    one->begin()[offset] = std::byte{7};
    EXPECT_EQ(other->begin()[offset], std::byte{7}) << offset;
    one->begin()[offset] = std::byte{0};
  }
}

TEST_F(MapByUse, maps_no_byte_outside_the_steps_that_are_used) {
  const auto map = make();
  ASSERT_TRUE(map->reach(8 * most_step - 1, 2).is_ok());
  EXPECT_TRUE(map->is_reached(7 * most_step, 2 * most_step));
  EXPECT_FALSE(map->is_reached(7 * most_step - 1, 1));
  EXPECT_FALSE(map->is_reached(9 * most_step, 1));
  EXPECT_FALSE(map->is_reached(9 * most_step - 1, 2));
  EXPECT_EQ(map->mapped_bytes(), 3 * most_step);
  // What lies between what is mapped, whatever its length.
  ASSERT_TRUE(map->reach(most_step / 2, 20 * most_step).is_ok());
  EXPECT_TRUE(map->is_reached(0, 21 * most_step));
  EXPECT_EQ(map->mapped_bytes(), 21 * most_step);
}

TEST_F(MapByUse, grows_by_granules_where_what_is_mapped_is_locked) {
  const auto map = make();
  map->map_exactly();
  const std::uint64_t before = map->mapped_bytes();
  ASSERT_TRUE(map->reach(5 * most_step, 1).is_ok());
  EXPECT_EQ(map->mapped_bytes(), before + granule);
  ASSERT_TRUE(map->reach(5 * most_step + granule - 1, 2).is_ok());
  EXPECT_EQ(map->mapped_bytes(), before + 2 * granule);
}

TEST_F(MapByUse, leaves_whole_granules_and_no_more) {
  const auto map = make();
  ASSERT_TRUE(map->reach(0, 4 * most_step).is_ok());
  map->leave(granule + 1, 3 * granule);
  EXPECT_TRUE(map->is_reached(0, 2 * granule));
  EXPECT_FALSE(map->is_reached(2 * granule, 1));
  EXPECT_FALSE(map->is_reached(4 * granule - 1, 1));
  EXPECT_TRUE(map->is_reached(4 * granule, 1));
  map->leave(5 * granule + 1, granule);
  EXPECT_TRUE(map->is_reached(4 * granule, 4 * granule));
  EXPECT_EQ(map->mapped_bytes(), 4 * most_step - 2 * granule);
  ASSERT_TRUE(map->reach(0, 4 * most_step).is_ok());
  EXPECT_EQ(map->mapped_bytes(), 4 * most_step);
}

TEST_F(MapByUse, takes_smaller_steps_where_something_else_is_in_the_way_and_fails_only_on_it) {
  const auto map = make();
  std::byte* const taken = map->begin() + 10 * most_step + 3 * granule;
  ASSERT_EQ(mmap(taken, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            taken);
  *taken = std::byte{9};
  EXPECT_TRUE(map->reach(10 * most_step, 1).is_ok());
  EXPECT_TRUE(map->reach(10 * most_step + 5 * granule, 1).is_ok());
  const Status status = map->reach(10 * most_step + 2 * granule, 2 * granule);
  EXPECT_EQ(status.code(), Code::no_memory);
  EXPECT_THAT(std::string(status.text()), HasSubstr("something else"));
  EXPECT_FALSE(map->is_reached(10 * most_step + 3 * granule, 1));
  EXPECT_EQ(*taken, std::byte{9});
  munmap(taken, page_bytes);
  EXPECT_TRUE(map->reach(10 * most_step + 2 * granule, 2 * granule).is_ok());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(MapByUse, goes_by_a_limit_of_address_space_down_to_its_last_granule) {
  in_child([this] {
    limit_address_space(20 * mib);
    const auto map = make();
    ASSERT_NE(map, nullptr);
    EXPECT_LT(map->mapped_bytes(), most_step);
    EXPECT_TRUE(map->is_limited());
    std::uint64_t reached = 0;
    Status status;
    while ((status = map->reach(reached, 1)).is_ok()) reached += granule;
    EXPECT_GE(reached, 16 * mib);
    EXPECT_LE(reached, 20 * mib);
    EXPECT_EQ(status.code(), Code::no_memory);
    EXPECT_THAT(std::string(status.text()), HasSubstr("ulimit -v"));
    map->leave(0, 4 * granule);
    EXPECT_TRUE(map->reach(reached, 1).is_ok());
  });
}

TEST_F(MapByUse, takes_a_share_of_a_limit_at_a_time) {
  in_child([this] {
    const rlimit limit{std::uint64_t{3} << 30, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    const auto map = make();
    ASSERT_NE(map, nullptr);
    EXPECT_EQ(map->mapped_bytes(), 32 * mib);
  });
}
#endif

TEST_F(MapByUse, is_asked_by_many_threads_at_once) {
  const auto map = make();
  map->map_exactly();
  constexpr std::uint64_t places = 64;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < places; ++i) {
        const std::uint64_t place = (i * 29 + thread * 7) % places;
        ASSERT_TRUE(map->reach(place * granule, granule).is_ok());
        map->begin()[place * granule + thread] = static_cast<std::byte>(place);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t place = 0; place < places; ++place)
    for (std::uint64_t thread = 0; thread < 4; ++thread)
      ASSERT_EQ(map->begin()[place * granule + thread], static_cast<std::byte>(place));
}

}  // namespace
}  // namespace farsum
