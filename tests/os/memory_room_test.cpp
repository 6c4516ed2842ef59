#include "os/memory_room.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "mib.hpp"
#include "temporary_folder.hpp"

namespace farsum::os {
namespace {

namespace fs = std::filesystem;

using test::mib;

// A machine made of text files: 1000 MiB available, no cgroup, no limits.
class MemoryRoomTest : public testing::Test {
 protected:
  void SetUp() override {
    write("proc/meminfo",
          "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    1024000 kB\nCommitLimit: 2048 kB\nCommitted_AS: 1024 kB\n");
    write("proc/sys/vm/overcommit_memory", "0\n");
    write("proc/self/limits",
          "Limit  Soft Limit  Hard Limit  Units\nMax address space         unlimited            unlimited            "
          "bytes\n");
    write("proc/self/statm", "256 10 5 1 0 20 0\n");
    write("proc/self/cgroup", "");
    write("proc/self/mountinfo", "");
  }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void write(const fs::path& path, std::uint64_t number) const { write(path, std::to_string(number) + "\n"); }

  MemoryRoom room() const { return available({.root = root_}); }

  const TemporaryFolder own_;
  const fs::path root_ = own_.path();
};

TEST_F(MemoryRoomTest, is_what_the_machine_has_where_nothing_else_bounds) {
  EXPECT_EQ(room().bytes, 1000 * mib);
  EXPECT_EQ(room().bound, RoomLimit::machine);
  EXPECT_EQ(room().where, (root_ / "proc/meminfo").string());
}

TEST_F(MemoryRoomTest, is_unknown_where_nothing_can_be_read) {
  const MemoryRoom none = available({.root = root_ / "nowhere"});
  EXPECT_EQ(none.bound, RoomLimit::unknown);
  EXPECT_EQ(none.bytes, UINT64_MAX);
}

TEST_F(MemoryRoomTest, heeds_the_commit_limit_only_under_strict_overcommit) {
  write("proc/sys/vm/overcommit_memory", "1\n");
  EXPECT_EQ(room().bound, RoomLimit::machine);
  write("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(room().bound, RoomLimit::commit_limit);
  EXPECT_EQ(room().bytes, 1 * mib);
}

TEST_F(MemoryRoomTest, heeds_the_limit_on_address_space_unless_told_not_to) {
  const std::uint64_t used = 256 * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  write("proc/self/limits",
        "Max address space         " + std::to_string(used + 5 * mib) + "            unlimited            bytes\n");
  EXPECT_EQ(room().bound, RoomLimit::address_space);
  EXPECT_EQ(room().bytes, 5 * mib);
  EXPECT_EQ(available({.root = root_, .count_address_space = false}).bound, RoomLimit::machine);
}

TEST_F(MemoryRoomTest, is_zero_where_a_limit_is_passed_already) {
  write("proc/self/limits", "Max address space         4096            4096            bytes\n");
  EXPECT_EQ(room().bytes, 0U);
}

class CgroupTwo : public MemoryRoomTest {
 protected:
  void SetUp() override {
    MemoryRoomTest::SetUp();
    write("proc/self/cgroup", "0::/user/job/step\n");
    write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    for (const char* folder : {"user", "user/job", "user/job/step"}) {
      write(base_ / folder / "memory.max", "max\n");
      write(base_ / folder / "memory.current", 100 * mib);
      write(base_ / folder / "memory.stat", "anon 5\ninactive_file 0\n");
    }
  }
  fs::path base_ = "sys/fs/cgroup";
};

TEST_F(CgroupTwo, without_limits_leaves_the_machine_to_bound) { EXPECT_EQ(room().bound, RoomLimit::machine); }

TEST_F(CgroupTwo, bounds_by_its_own_limit) {
  write(base_ / "user/job/step/memory.max", 300 * mib);
  EXPECT_EQ(room().bytes, 200 * mib);
  EXPECT_EQ(room().bound, RoomLimit::cgroup);
  EXPECT_EQ(room().where, (root_ / base_ / "user/job/step").string());
}

TEST_F(CgroupTwo, bounds_by_the_tightest_group_above_it) {
  write(base_ / "user/job/step/memory.max", 300 * mib);
  write(base_ / "user/memory.max", 150 * mib);
  EXPECT_EQ(room().bytes, 50 * mib);
  EXPECT_EQ(room().where, (root_ / base_ / "user").string());
}

TEST_F(CgroupTwo, counts_cache_that_can_be_dropped_as_room) {
  write(base_ / "user/job/memory.max", 120 * mib);
  write(base_ / "user/job/memory.stat", "anon 5\nfile 9\ninactive_file " + std::to_string(30 * mib) + "\n");
  EXPECT_EQ(room().bytes, 50 * mib);
}

TEST_F(CgroupTwo, in_a_container_looks_at_the_groups_that_its_mount_shows) {
  write("proc/self/mountinfo", "30 23 0:26 /user /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write(base_ / "job/step/memory.max", 130 * mib);
  write(base_ / "job/step/memory.current", 100 * mib);
  EXPECT_EQ(room().bytes, 30 * mib);
}

TEST_F(CgroupTwo, outside_its_mount_is_judged_by_the_mount_alone) {
  write("proc/self/cgroup", "0::/../../elsewhere\n");
  write(base_ / "memory.max", 140 * mib);
  write(base_ / "memory.current", 100 * mib);
  EXPECT_EQ(room().bytes, 40 * mib);
}

class CgroupOne : public MemoryRoomTest {
 protected:
  void SetUp() override {
    MemoryRoomTest::SetUp();
    write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/batch/job\n1:cpuset:/other\n0::/\n");
    write("proc/self/mountinfo",
          "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
          "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n");
    for (const char* folder : {"", "batch", "batch/job"}) {
      write(base_ / folder / "memory.limit_in_bytes", 9'223'372'036'854'771'712U);
      write(base_ / folder / "memory.usage_in_bytes", 100 * mib);
    }
  }
  fs::path base_ = "sys/fs/cgroup/memory";
};

TEST_F(CgroupOne, takes_the_largest_number_for_no_limit) { EXPECT_EQ(room().bound, RoomLimit::machine); }

TEST_F(CgroupOne, bounds_by_the_tightest_of_all_groups_above) {
  write(base_ / "batch/job/memory.limit_in_bytes", 400 * mib);
  write(base_ / "batch/memory.limit_in_bytes", 250 * mib);
  write(base_ / "batch/memory.stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(20 * mib) + "\n");
  EXPECT_EQ(room().bytes, 170 * mib);
  EXPECT_EQ(room().bound, RoomLimit::cgroup);
  EXPECT_EQ(room().where, (root_ / base_ / "batch").string());
}

TEST(MemoryRoom, of_this_machine_is_known) {
  const MemoryRoom room = available();
  EXPECT_NE(room.bound, RoomLimit::unknown);
  EXPECT_FALSE(room.where.empty());
  EXPECT_FALSE(name_of(room.bound).empty());
}

}  // namespace
}  // namespace farsum::os
