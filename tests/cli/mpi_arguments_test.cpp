// Launchers by what they say of themselves, and the way through their command lines to the programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/mpi/mpi_arguments.hpp"
#include "cli/mpi/mpi_wrappers.hpp"

namespace farsum::cli {
namespace {

using testing::ElementsAre;
using testing::Optional;

using Words = std::vector<std::string>;

// The programs of a command line; "-" for a context without one.
Words programs_of(LauncherKind kind, const Words& arguments, const Words& executables = {"./prog", "other"}) {
  Words programs;
  const auto is_program = [&](const std::string& token) {
    return std::find(executables.begin(), executables.end(), token) != executables.end();
  };
  for (const LaunchContext& context : read_launch(kind, arguments, is_program)) {
    programs.push_back(context.program ? arguments[*context.program] : "-");
  }
  return programs;
}

TEST(Launcher, is_told_by_what_its_version_says) {
  EXPECT_THAT(classify_launcher("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to"), Optional(LauncherKind::openmpi4));
  EXPECT_THAT(classify_launcher("mpirun (Open MPI) 4.1.6\n"), Optional(LauncherKind::openmpi4));
  EXPECT_THAT(classify_launcher("mpirun (Open MPI) 5.0.11\n"), Optional(LauncherKind::openmpi5));
  EXPECT_THAT(classify_launcher("prterun (PRRTE) 3.0.5\n"), Optional(LauncherKind::openmpi5));
  EXPECT_THAT(classify_launcher("HYDRA build details:\n    Version:   4.0.2\n"), Optional(LauncherKind::hydra));
  EXPECT_THAT(classify_launcher("Intel(R) MPI Library for Linux* OS, Version 2021.19.0"),
              Optional(LauncherKind::intel));
  EXPECT_THAT(classify_launcher("slurm-wlm 22.05.8\n"), Optional(LauncherKind::slurm));
  EXPECT_EQ(classify_launcher("mpirun: unknown option\n"), std::nullopt);
}

TEST(Launcher, is_suspected_by_its_name_only) {
  for (const char* name :
       {"mpirun", "/usr/bin/mpirun.mpich", "mpiexec.hydra", "mpirun-openmpi-gcc", "orterun", "srun"}) {
    EXPECT_EQ(judge_launcher_name(name), LauncherName::candidate) << name;
  }
  for (const char* name : {"./prog", "mpirunner", "time"})
    EXPECT_EQ(judge_launcher_name(name), LauncherName::none) << name;
  EXPECT_EQ(judge_launcher_name("/opt/bin/mpirun_rsh"), LauncherName::unsupported);
}

TEST(LauncherArguments, of_open_mpi_lead_to_the_program) {
  for (const LauncherKind kind : {LauncherKind::openmpi4, LauncherKind::openmpi5}) {
    EXPECT_THAT(programs_of(kind, {"-np", "2", "./prog", "-n", "3"}), ElementsAre("./prog"));
    EXPECT_THAT(programs_of(kind, {"--mca", "btl", "self,vader", "--bind-to", "none", "--map-by", "ppr:2:node", "-x",
                                   "A=B", "-x", "C", "--oversubscribe", "-H", "a:1,b:1", "./prog"}),
                ElementsAre("./prog"));
    EXPECT_THAT(programs_of(kind, {"-n", "1", "--", "./prog"}), ElementsAre("./prog"));
  }
  EXPECT_THAT(
      programs_of(LauncherKind::openmpi5, {"--prtemca", "a", "b", "--display", "map", "--np=2", "-n2", "./prog"}),
      ElementsAre("./prog"));
}

TEST(LauncherArguments, of_hydra_and_intel_lead_to_the_program) {
  for (const LauncherKind kind : {LauncherKind::hydra, LauncherKind::intel}) {
    EXPECT_THAT(programs_of(kind, {"-genv", "A", "1", "-hosts", "a,b", "-ppn", "1", "-bind-to", "core:1", "-l", "-n",
                                   "2", "-env", "B", "2", "./prog", "x"}),
                ElementsAre("./prog"));
    EXPECT_THAT(programs_of(kind, {"-n=2", "--genvall", "-f", "hosts", "./prog"}), ElementsAre("./prog"));
  }
  EXPECT_THAT(programs_of(LauncherKind::intel, {"-tune", "-n", "2", "-gtool", "vtune:0=exclusive", "./prog"}),
              ElementsAre("./prog"));
  EXPECT_THAT(programs_of(LauncherKind::intel, {"-tune", "file.dat", "-n", "2", "./prog"}), ElementsAre("./prog"));
}

TEST(LauncherArguments, of_srun_lead_to_the_program) {
  EXPECT_THAT(programs_of(LauncherKind::slurm, {"-n4", "-N", "2", "--cpu-bind=cores", "--export", "ALL,A=1", "-lu",
                                                "--mpi=pmix", "./prog", "-n", "9"}),
              ElementsAre("./prog"));
  EXPECT_THAT(programs_of(LauncherKind::slurm, {"--exclusive", "-K", "./prog"}), ElementsAre("./prog"));
}

TEST(LauncherOptions, are_found_by_their_whole_names) {
  EXPECT_THAT(find_option(LauncherKind::openmpi4, "report-child-jobs-separately"), Optional(OptionValues::none));
  EXPECT_THAT(find_option(LauncherKind::hydra, "disable-hostname-propagation"), Optional(OptionValues::none));
  EXPECT_THAT(find_option(LauncherKind::openmpi5, "mca"), Optional(OptionValues::two));
  EXPECT_EQ(find_option(LauncherKind::openmpi4, "mca gmca"), std::nullopt);
  EXPECT_EQ(find_option(LauncherKind::openmpi4, "report"), std::nullopt);
  EXPECT_EQ(find_option(LauncherKind::openmpi4, ""), std::nullopt);
}

TEST(LauncherArguments, hold_one_program_between_colons) {
  EXPECT_THAT(programs_of(LauncherKind::openmpi4, {"-n", "1", "./prog", "a", ":", "-n", "2", "other", ":", "-n", "3"}),
              ElementsAre("./prog", "other", "-"));
}

TEST(LauncherArguments, may_hold_unknown_options_with_and_without_a_value) {
  EXPECT_THAT(programs_of(LauncherKind::hydra, {"-new-flag", "./prog", "x"}), ElementsAre("./prog"));
  EXPECT_THAT(programs_of(LauncherKind::hydra, {"-new-option", "value", "./prog", "x"}), ElementsAre("./prog"));
  EXPECT_THAT(programs_of(LauncherKind::hydra, {"-new-flag", "-n", "2", "./prog"}), ElementsAre("./prog"));
  EXPECT_THAT(programs_of(LauncherKind::hydra, {"--new=value", "./prog"}), ElementsAre("./prog"));
}

// The program behind a wrapper.
std::string inner(const Words& arguments) {
  const auto found = look_through(arguments, 0, arguments.size());
  return found ? arguments[found->position] : "-";
}

TEST(Wrapper, names_the_program_behind_its_own_options) {
  EXPECT_EQ(inner({"env", "A=1", "-u", "B", "./prog", "C=2"}), "./prog");
  EXPECT_EQ(inner({"time", "-f", "%e", "-v", "./prog"}), "./prog");
  EXPECT_EQ(inner({"timeout", "-k", "5", "60", "./prog"}), "./prog");
  EXPECT_EQ(inner({"taskset", "-c", "0,1", "./prog"}), "./prog");
  EXPECT_EQ(inner({"taskset", "0x3", "./prog"}), "./prog");
  EXPECT_EQ(inner({"/usr/bin/numactl", "-N", "0", "--membind=0", "./prog", "-N", "8"}), "./prog");
  EXPECT_EQ(inner({"numactl", "--interleave", "all", "./prog"}), "./prog");
  EXPECT_EQ(inner({"nice", "-n5", "./prog"}), "./prog");
  EXPECT_EQ(inner({"stdbuf", "-oL", "./prog"}), "./prog");
  EXPECT_EQ(inner({"gdb", "-batch", "-ex", "run", "--args", "./prog", "x"}), "./prog");
  EXPECT_EQ(inner({"valgrind", "--tool=memcheck", "-q", "./prog"}), "./prog");
  EXPECT_EQ(inner({"perf", "stat", "-e", "cycles", "./prog"}), "./prog");
  EXPECT_EQ(inner({"env", "A=1"}), "-");
}

TEST(Wrapper, is_seen_when_it_takes_the_preload_away) {
  EXPECT_TRUE(look_through({"env", "-i", "./prog"}, 0, 3)->clears_environment);
  EXPECT_TRUE(look_through({"env", "-u", "LD_PRELOAD", "./prog"}, 0, 4)->clears_environment);
  EXPECT_FALSE(look_through({"env", "-u", "OTHER", "./prog"}, 0, 4)->clears_environment);
  EXPECT_TRUE(look_through({"env", "LD_PRELOAD=x.so", "./prog"}, 0, 3)->sets_preload);
}

}  // namespace
}  // namespace farsum::cli
