#include "os/usable_processors.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>
#include <vector>

#include "temporary_folder.hpp"

namespace farsum::os {
namespace {

namespace fs = std::filesystem;

ProcessorSet set_of(std::initializer_list<int> numbers) {
  ProcessorSet set;
  for (const int number : numbers) set.set(static_cast<std::size_t>(number));
  return set;
}

constexpr std::uint32_t online = 16;

ProcessorSet first(int count) {
  ProcessorSet set;
  for (int number = 0; number < count; ++number) set.set(static_cast<std::size_t>(number));
  return set;
}

// On a node of 16, bound to nothing.
ProcessorBounds free_rank() { return {online, 0, 0, first(online), {}}; }
ProcessorBounds bound_to(std::initializer_list<int> numbers) { return {online, 0, 0, set_of(numbers), {}}; }
ProcessorBounds in_group(std::uint64_t group, std::uint32_t quota) { return {online, quota, group, first(online), {}}; }

std::vector<ProcessorBounds> times(std::size_t count, const ProcessorBounds& rank) { return {count, rank}; }

std::vector<ProcessorBounds> together(std::vector<ProcessorBounds> ranks, const std::vector<ProcessorBounds>& others) {
  ranks.insert(ranks.end(), others.begin(), others.end());
  return ranks;
}

TEST(ProcessorShares, are_crowded_from_one_rank_more_than_are_online) {
  EXPECT_FALSE(scarcest_share(times(16, free_rank())).is_crowded());
  const ProcessorShare share = scarcest_share(times(17, free_rank()));
  EXPECT_TRUE(share.is_crowded());
  EXPECT_EQ(share.bound, ProcessorBound::online);
  EXPECT_EQ(share.ranks, 17U);
  EXPECT_EQ(share.processors, 16U);
}

TEST(ProcessorShares, are_whole_where_a_launcher_binds_each_rank_to_one_of_its_own) {
  std::vector<ProcessorBounds> ranks;
  for (int number = 0; number < 16; ++number) ranks.push_back(bound_to({number}));
  EXPECT_FALSE(scarcest_share(ranks).is_crowded());
  ranks.push_back(bound_to({3}));
  EXPECT_TRUE(scarcest_share(ranks).is_crowded());
}

TEST(ProcessorShares, are_crowded_where_all_ranks_are_bound_to_one_though_others_are_online) {
  const ProcessorShare share = scarcest_share(times(4, bound_to({0})));
  EXPECT_TRUE(share.is_crowded());
  EXPECT_EQ(share.bound, ProcessorBound::affinity);
  EXPECT_EQ(share.ranks, 4U);
  EXPECT_EQ(share.processors, 1U);
}

TEST(ProcessorShares, are_crowded_where_some_ranks_share_a_narrow_set_and_others_have_room) {
  EXPECT_FALSE(scarcest_share(together(times(2, bound_to({0, 1})), times(2, free_rank()))).is_crowded());
  EXPECT_TRUE(scarcest_share(together(times(3, bound_to({0, 1})), times(2, free_rank()))).is_crowded());
}

TEST(ProcessorShares, count_ranks_that_are_bound_to_some_of_a_set_with_those_that_have_all_of_it) {
  const std::vector<ProcessorBounds> ranks = {bound_to({0}), bound_to({1}), bound_to({0, 1})};
  EXPECT_TRUE(scarcest_share(ranks).is_crowded());
}

TEST(ProcessorShares, have_the_union_of_what_ranks_are_bound_to) {
  const std::vector<ProcessorBounds> ranks = {bound_to({0, 1}), bound_to({1, 2}), bound_to({0, 2}), bound_to({0, 1})};
  const ProcessorShare share = scarcest_share(ranks);
  EXPECT_TRUE(share.is_crowded());
  EXPECT_EQ(share.processors, 3U);
}

TEST(ProcessorShares, are_crowded_by_the_quota_of_one_cgroup_and_not_by_the_sum_of_several) {
  EXPECT_FALSE(scarcest_share(times(2, in_group(1, 2))).is_crowded());
  const ProcessorShare share = scarcest_share(times(3, in_group(1, 2)));
  EXPECT_TRUE(share.is_crowded());
  EXPECT_EQ(share.bound, ProcessorBound::quota);
  EXPECT_FALSE(scarcest_share(together(times(2, in_group(1, 2)), times(2, in_group(2, 2)))).is_crowded());
  EXPECT_TRUE(scarcest_share(together(times(3, in_group(1, 2)), times(1, in_group(2, 2)))).is_crowded());
}

TEST(ProcessorShares, are_crowded_by_an_agent_that_spins_where_it_has_no_processor_of_its_own) {
  ProcessorBounds alone = bound_to({0});
  EXPECT_FALSE(scarcest_share(times(1, alone)).is_crowded());
  alone.spinning_agent = set_of({1});
  EXPECT_FALSE(scarcest_share(times(1, alone)).is_crowded());
  alone.spinning_agent = set_of({0});
  const ProcessorShare share = scarcest_share(times(1, alone));
  EXPECT_TRUE(share.is_crowded());
  EXPECT_EQ(share.ranks, 2U);
  ProcessorBounds free = free_rank();
  free.spinning_agent = free.affinity;
  EXPECT_FALSE(scarcest_share(times(8, free)).is_crowded());
  EXPECT_TRUE(scarcest_share(times(9, free)).is_crowded());
}

TEST(ProcessorShares, are_not_crowded_by_what_could_not_be_read) {
  EXPECT_FALSE(scarcest_share(times(9, ProcessorBounds{})).is_crowded());
  EXPECT_FALSE(scarcest_share({}).is_crowded());
}

// A machine's cgroups as text files.
class ProcessorBoundsOfCgroups : public testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::uint32_t quota() const { return read_processor_bounds(root_).quota; }
  ProcessorReport report() const { return report_processors(root_); }

  const TemporaryFolder own_;
  const fs::path root_ = own_.path();
};

class ProcessorsInCgroupTwo : public ProcessorBoundsOfCgroups {
 protected:
  void SetUp() override {
    write("proc/self/cgroup", "0::/user/job/step\n");
    write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    for (const char* folder : {"user", "user/job", "user/job/step"}) write(base_ / folder / "cpu.max", "max 100000\n");
  }
  fs::path base_ = "sys/fs/cgroup";
};

TEST_F(ProcessorsInCgroupTwo, are_all_without_a_quota) { EXPECT_EQ(quota(), 0U); }

TEST_F(ProcessorsInCgroupTwo, are_whole_ones_of_a_quota_and_at_least_one) {
  write(base_ / "user/job/step/cpu.max", "399999 100000\n");
  EXPECT_EQ(quota(), 3U);
  write(base_ / "user/job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4U);
  write(base_ / "user/job/step/cpu.max", "5000 100000\n");
  EXPECT_EQ(quota(), 1U);
}

TEST_F(ProcessorsInCgroupTwo, are_the_least_of_all_groups_above_which_tells_groups_apart) {
  write(base_ / "user/job/step/cpu.max", "800000 100000\n");
  const ProcessorBounds by_own = read_processor_bounds(root_);
  write(base_ / "user/cpu.max", "300000 100000\n");
  const ProcessorBounds by_above = read_processor_bounds(root_);
  EXPECT_EQ(by_own.quota, 8U);
  EXPECT_EQ(by_above.quota, 3U);
  EXPECT_NE(by_own.quota_group, by_above.quota_group);
  write("proc/self/cgroup", "0::/user/other\n");
  EXPECT_EQ(read_processor_bounds(root_).quota_group, by_above.quota_group);
}

TEST_F(ProcessorsInCgroupTwo, in_a_container_are_by_the_groups_that_its_mount_shows) {
  write("proc/self/mountinfo", "30 23 0:26 /user /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write(base_ / "job/step/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2U);
  write("proc/self/cgroup", "0::/../elsewhere\n");
  write(base_ / "cpu.max", "100000 100000\n");
  EXPECT_EQ(quota(), 1U);
}

TEST_F(ProcessorsInCgroupTwo, are_reported_with_each_bound_and_what_decides) {
  write(base_ / "user/job/cpuset.cpus.effective", "0-3,8,10-11\n");
  EXPECT_EQ(report().cgroup_set, 7U);
  EXPECT_GT(report().affinity, 0U);
  write(base_ / "user/job/cpu.max", "100000 100000\n");
  EXPECT_EQ(report().cgroup_quota, 1U);
  EXPECT_EQ(report().usable, 1U);
}

class ProcessorsInCgroupOne : public ProcessorBoundsOfCgroups {
 protected:
  void SetUp() override {
    write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,cpuacct:/batch/job\n1:cpuset:/batch\n0::/\n");
    write("proc/self/mountinfo",
          "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
          "32 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    for (const char* folder : {"batch", "batch/job"}) {
      write(base_ / folder / "cpu.cfs_quota_us", "-1\n");
      write(base_ / folder / "cpu.cfs_period_us", "50000\n");
    }
  }
  fs::path base_ = "sys/fs/cgroup/cpu";
};

TEST_F(ProcessorsInCgroupOne, are_all_without_a_quota) { EXPECT_EQ(quota(), 0U); }

TEST_F(ProcessorsInCgroupOne, are_the_least_quota_in_its_own_periods) {
  write(base_ / "batch/job/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(quota(), 4U);
  write(base_ / "batch/cpu.cfs_quota_us", "149999\n");
  EXPECT_EQ(quota(), 2U);
}

TEST_F(ProcessorsInCgroupOne, are_reported_with_the_set_of_the_other_controller) {
  write("sys/fs/cgroup/cpuset/batch/cpuset.cpus", "2,5\n");
  EXPECT_EQ(report().cgroup_set, 2U);
}

TEST(ProcessorBounds, of_a_thread_are_those_that_it_is_bound_to) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "this thread may not be bound";
    EXPECT_EQ(read_processor_bounds().affinity.count(), 1U);
  }).join();
}

TEST(ProcessorBounds, of_this_machine_are_known) {
  const ProcessorBounds bounds = read_processor_bounds();
  EXPECT_GT(bounds.online, 0U);
  EXPECT_TRUE(bounds.affinity.any());
  EXPECT_FALSE(report_processors().decided_by.empty());
}

}  // namespace
}  // namespace farsum::os
