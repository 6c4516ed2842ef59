// Processing units read from files as the kernel writes them, of machines other than this one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/processors.hpp"
#include "temporary_folder.hpp"

namespace farsum::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ProcessorFiles : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& line) {
    const std::filesystem::path file = folder_.path() / "sys/devices/system" / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << line << "\n";
  }

  void unit(int number, const std::string& package, const std::string& core, const std::string& name) {
    const std::string topology = "cpu/cpu" + std::to_string(number) + "/topology/";
    write(topology + "physical_package_id", package);
    write(topology + name, core);
  }

  void cache(int number, int index, const std::string& level, const std::string& type, const std::string& size,
             const std::string& shared) {
    const std::string folder = "cpu/cpu" + std::to_string(number) + "/cache/index" + std::to_string(index) + "/";
    write(folder + "level", level);
    write(folder + "type", type);
    write(folder + "size", size);
    write(folder + "shared_cpu_list", shared);
  }

  Processors read() const { return read_processors(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST_F(ProcessorFiles, give_the_units_of_a_core_together_and_its_package_with_them) {
  write("cpu/online", "0-5,7");
  for (const int number : {0, 4}) unit(number, "0", "0,4", "core_cpus_list");
  for (const int number : {1, 5}) unit(number, "1", "1,5", "core_cpus_list");
  unit(2, "0", "2", "core_cpus_list");
  for (const int number : {3, 7}) unit(number, "1", "3,7", "thread_siblings_list");
  const Processors found = read();
  EXPECT_THAT(found.cores, ElementsAre(CpuList{0, 4}, CpuList{2}, CpuList{1, 5}, CpuList{3, 7}));
  EXPECT_EQ(found.packages, 2);
}

TEST_F(ProcessorFiles, count_each_shared_cache_once_and_none_of_instructions) {
  write("cpu/online", "0-1");
  for (const int number : {0, 1}) {
    unit(number, "0", std::to_string(number), "core_cpus_list");
    cache(number, 0, "1", "Data", "48K", std::to_string(number));
    cache(number, 1, "1", "Instruction", "32K", std::to_string(number));
    cache(number, 2, "3", "Unified", "2M", "0-1");
  }
  const Processors found = read();
  ASSERT_EQ(found.caches.size(), 2u);
  EXPECT_EQ(found.caches.at(1).count, 2);
  EXPECT_EQ(found.caches.at(1).bytes, 48u << 10);
  EXPECT_EQ(found.caches.at(3).count, 1);
  EXPECT_EQ(found.caches.at(3).bytes, 2u << 20);
}

TEST_F(ProcessorFiles, count_the_nodes_of_memory_and_take_one_where_none_are_told) {
  EXPECT_EQ(read().numa_nodes, 1);
  write("node/online", "0-1,8");
  EXPECT_EQ(read().numa_nodes, 3);
}

TEST_F(ProcessorFiles, make_a_unit_a_core_where_they_do_not_say_whose_it_is) {
  EXPECT_THAT(read().cores, IsEmpty());
  write("cpu/online", "0-1");
  EXPECT_THAT(read().cores, ElementsAre(CpuList{0}, CpuList{1}));
}

// As a container does it whose files of the machine are only in part its own.
TEST_F(ProcessorFiles, count_a_core_whose_first_unit_is_not_there) {
  write("cpu/online", "4-5");
  unit(4, "0", "0,4", "core_cpus_list");
  unit(5, "0", "1,5", "core_cpus_list");
  const Processors found = read();
  EXPECT_EQ(found.cores.size(), 2U);
  EXPECT_EQ(found.packages, 1);
}

TEST(CoresWithin, leave_out_what_is_not_allowed_and_make_unknown_units_cores) {
  EXPECT_THAT(cores_within({{0, 4}, {1, 5}, {2, 6}}, {4, 2, 6}), ElementsAre(CpuList{4}, CpuList{2, 6}));
  EXPECT_THAT(cores_within({}, {3, 1}), ElementsAre(CpuList{1}, CpuList{3}));
}

TEST(AllowedCores, are_those_that_this_process_may_run_on) {
  cpu_set_t affinity;
  if (sched_getaffinity(0, sizeof affinity, &affinity) != 0) GTEST_SKIP() << "there are more than a set holds";
  std::size_t units = 0;
  for (const CpuList& core : allowed_cores()) {
    for (const int unit : core) EXPECT_TRUE(CPU_ISSET(unit, &affinity)) << unit;
    units += core.size();
  }
  EXPECT_EQ(units, static_cast<std::size_t>(CPU_COUNT(&affinity)));
}

}  // namespace
}  // namespace farsum::cli
