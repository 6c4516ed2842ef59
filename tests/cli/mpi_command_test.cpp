// `farsum mpi` from the command line to the ranks, with launchers that only say what they got and with those installed
// here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "cli/mpi/mpi_installations.hpp"
#include "mpi_folder.hpp"

namespace farsum::cli::test {
namespace {

using testing::_;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class MpiCommand : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_compiler()) GTEST_SKIP() << "there is no C compiler";
    program_ = folder_.add_program("prog", {"libmpi.so.12"});
  }
  MpiFolder folder_;
  std::string program_;
};

TEST_F(MpiCommand, becomes_the_launcher_and_ends_with_its_code) {
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  const CapturedRun run = folder_.farsum_mpi({launcher, "-n", "2", program_, "a b", "--verbose"});
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_THAT(run.out, AllOf(HasSubstr("-genv\nLD_PRELOAD\n" + folder_.front(MpiAbi::mpich)),
                             HasSubstr("-genv\nFARSUM_MPI_LAUNCHED\n1\n"),
                             HasSubstr("-n\n2\n" + program_ + "\na b\n--verbose\n")));
}

TEST_F(MpiCommand, never_gives_the_launcher_the_preload) {
  for (const char* version : {"HYDRA build details:", "slurm 23.11.4"}) {
    const std::string launcher = folder_.add_launcher("srun", version);
    EXPECT_THAT(folder_.farsum_mpi({launcher, program_}).out, HasSubstr("own preload: \n")) << version;
  }
}

TEST_F(MpiCommand, passes_its_options_on_as_settings) {
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  const std::string out =
      folder_.farsum_mpi({"--stats", "--json-stats", "/tmp/s.json", "--path", "owner", launcher, program_}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("FARSUM_MPI_STATS\n1\n"), HasSubstr("FARSUM_MPI_STATS_FILE\n/tmp/s.json\n"),
                         HasSubstr("FARSUM_PATH\nowner\n")));
  const CapturedRun wrong = folder_.farsum_mpi({"--path", "sideways", launcher, program_});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.out, HasSubstr("FARSUM_PATH"));
}

TEST_F(MpiCommand, prints_the_command_and_starts_nothing_when_asked_to) {
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  const CapturedRun run = folder_.farsum_mpi({"--dry-run", "--verbose", launcher, "-n", "2", program_});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("Hydra (MPICH)"), HasSubstr("needs libmpi.so.12"), Not(HasSubstr("own preload"))));
}

TEST_F(MpiCommand, refuses_with_two_what_it_cannot_serve) {
  const std::string launcher = folder_.add_launcher("mpirun", "mpirun (Open MPI) 5.0.11");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {},
           {"--no-such-option", launcher, program_},
           {launcher},
           {launcher, "-n", "2", program_},  // a program of another MPI than the launcher's
           {launcher, "-n", "2", "ls"},
           {folder_.add_launcher("mpiexec", "something else"), program_},
           {"mpirun_rsh", program_},
           {folder_.path("absent/mpirun"), program_},
           {"ls"}}) {
    const CapturedRun run = folder_.farsum_mpi(command);
    EXPECT_EQ(run.exit_code, 2) << shell_words(command);
    EXPECT_THAT(run.out, Not(HasSubstr("own preload"))) << shell_words(command);
  }
}

TEST_F(MpiCommand, takes_the_users_word_for_the_mpi) {
  const std::string launcher = folder_.add_launcher("mpirun", "slurm 23.11.4");
  const CapturedRun run = folder_.farsum_mpi({"--abi", "abi", launcher, "anything"});
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_THAT(run.out, HasSubstr("LD_PRELOAD=" + folder_.front(MpiAbi::standard)));
}

TEST_F(MpiCommand, says_so_when_the_front_was_not_built) {
  unlink(folder_.front(MpiAbi::mpich).c_str());
  const LaunchPlan plan = plan_launch(folder_.request({program_}));
  EXPECT_THAT(plan.refusal, AllOf(HasSubstr("was not built"), HasSubstr("libfarsum_mpi_mpich.so")));
}

TEST_F(MpiCommand, refuses_to_preload_from_a_folder_whose_name_would_be_split) {
  for (const char* name : {"a b", "a:b"}) {
    const std::filesystem::path folder = folder_.path(name);
    std::filesystem::copy(folder_.path("lib"), folder, std::filesystem::copy_options::recursive);
    LaunchRequest request = folder_.request({program_});
    request.libraries = folder;
    EXPECT_THAT(plan_launch(request).refusal, AllOf(HasSubstr("LD_PRELOAD"), HasSubstr(name)));
  }
}

TEST_F(MpiCommand, starts_a_program_without_a_launcher_with_the_preload_in_its_environment) {
  const LaunchPlan plan = plan_launch(folder_.request({program_, "x"}));
  EXPECT_EQ(plan.refusal, "");
  EXPECT_EQ(plan.program, program_);
  EXPECT_EQ(plan.own_environment.at("LD_PRELOAD"), folder_.front(MpiAbi::mpich));
}

TEST_F(MpiCommand, takes_a_program_that_is_named_like_a_launcher_for_a_program) {
  for (const char* name : {"mpirun-test", "srun", "flux"}) {
    const std::string program = folder_.add_program(name, {"libmpi.so.12"});
    const LaunchPlan plan = plan_launch(folder_.request({"env", "A=1", program, "-n", "2"}));
    EXPECT_EQ(plan.refusal, "");
    EXPECT_EQ(plan.own_environment.at("LD_PRELOAD"), folder_.front(MpiAbi::mpich)) << name;
  }
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  const LaunchPlan plan = plan_launch(folder_.request({launcher, "-n", "2", folder_.path("srun"), "-n", "3"}));
  EXPECT_EQ(plan.refusal, "");
  EXPECT_THAT(plan.command, ElementsAre(launcher, "-genv", _, _, "-n", "2", folder_.path("srun"), "-n", "3"));
}

TEST_F(MpiCommand, puts_the_runtimes_of_sanitizers_first_and_says_which) {
  const std::string program = folder_.add_program("sanitized", {"libmpi.so.12", "libasan.so.8"});
  const std::string runtime = folder_.path("mpi/libasan.so.8");
  const std::string preload = runtime + ":" + folder_.front(MpiAbi::mpich);
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  const Variables passed = plan_launch(folder_.request({launcher, program})).passed_environment;
  EXPECT_EQ(passed.at("LD_PRELOAD"), preload);
  EXPECT_EQ(passed.at("FARSUM_MPI_RUNTIMES"), runtime);
  LaunchRequest alone = folder_.request({program});
  alone.abi = MpiAbi::mpich;
  EXPECT_EQ(plan_launch(alone).own_environment.at("LD_PRELOAD"), preload);
  alone.environment["LD_PRELOAD"] = "libasan.so.8";
  const LaunchPlan named = plan_launch(alone);
  EXPECT_EQ(named.own_environment.at("LD_PRELOAD"), "libasan.so.8:" + folder_.front(MpiAbi::mpich));
  EXPECT_EQ(named.own_environment.count("FARSUM_MPI_RUNTIMES"), 0u);
}

TEST_F(MpiCommand, gives_what_any_program_needs_where_a_launcher_gives_all_the_same) {
  const std::string sanitized = folder_.add_program("sanitized", {"libmpi.so.12", "libasan.so.8"});
  const std::string other = folder_.add_program("other", {"libmpi.so.12", "libtsan.so.2"});
  const std::string hydra = folder_.add_launcher("mpirun", "HYDRA build details:");
  const LaunchPlan plan = plan_launch(folder_.request({hydra, program_, ":", sanitized}));
  EXPECT_THAT(plan.command, Contains(HasSubstr("libasan.so.8:")));
  EXPECT_THAT(plan_launch(folder_.request({hydra, other, ":", sanitized})).refusal,
              AllOf(HasSubstr("exclude each other"), HasSubstr("libasan.so.8"), HasSubstr("libtsan.so.2")));
}

TEST_F(MpiCommand, finds_a_launcher_behind_wrappers) {
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  const LaunchPlan plan = plan_launch(folder_.request({"env", "A=1", launcher, "-n", "2", program_}));
  ASSERT_EQ(plan.refusal, "");
  EXPECT_THAT(plan.program, HasSubstr("/env"));
  EXPECT_EQ(plan.command[2], launcher);
  EXPECT_EQ(plan.command[3], "-genv");
  EXPECT_EQ(plan.own_environment.count("LD_PRELOAD"), 0u);
}

TEST_F(MpiCommand, looks_for_the_program_where_the_launcher_will) {
  const std::string launcher = folder_.add_launcher("mpirun", "HYDRA build details:");
  EXPECT_EQ(plan_launch(folder_.request({launcher, "-wdir", folder_.path("."), "./prog"})).refusal, "");
  EXPECT_THAT(plan_launch(folder_.request({launcher, "./prog"})).refusal, HasSubstr("no such file"));
}

TEST_F(MpiCommand, passes_the_farsum_variables_of_its_environment_on) {
  LaunchRequest request = folder_.request({program_});
  request.environment["FARSUM_AGENT_CPUS"] = "0,1";
  request.environment["FARSUM_RANK"] = "3";
  request.environment["LD_PRELOAD"] = "/mine.so";
  const LaunchPlan plan = plan_launch(request);
  EXPECT_EQ(plan.passed_environment.at("FARSUM_AGENT_CPUS"), "0,1");
  EXPECT_EQ(plan.passed_environment.count("FARSUM_RANK"), 0u);
  EXPECT_EQ(plan.passed_environment.at("LD_PRELOAD"), folder_.front(MpiAbi::mpich) + ":/mine.so");
}

// What one rank and its parent, the launcher or the launcher's daemon, have in their environments. It stays for a while
// first: MPICH 4.0's mpiexec, which hands its standard input on, dies of SIGPIPE where ranks end as soon as they begin.
constexpr const char* look_around =
    "sleep 0.3; echo \"rank: $LD_PRELOAD $FARSUM_MPI_LAUNCHED\"; "
    "tr '\\0' '\\n' </proc/$PPID/environ | grep libfarsum_mpi | sed 's/^/parent: /'";

// In make test-all: each installed launcher starts a job.
TEST(InstalledLauncher, gives_every_rank_the_preload_and_has_none_itself) {
  if (!has_compiler()) GTEST_SKIP() << "there is no C compiler";
  std::vector<MpiInstallation> installations = find_mpi_installations();
  if (installations.empty()) GTEST_SKIP() << "there is no MPI library on this machine";
  const MpiFolder folder;
  for (const MpiInstallation& mpi : installations) {
    SCOPED_TRACE(mpi.name);
    const std::string front = folder.front(mpi.abi);
    const std::string dummy = folder.add_library("front.so");
    std::filesystem::copy_file(dummy, front, std::filesystem::copy_options::overwrite_existing);
    std::vector<std::string> command{"--abi", name_of(mpi.abi)};
    command.insert(command.end(), mpi.mpirun.begin(), mpi.mpirun.end());
    command.insert(command.end(),
                   {"-n", "1", "/bin/sh", "-c", look_around, ":", "-n", "1", "/bin/sh", "-c", look_around});
    const CapturedRun run = folder.farsum_mpi(command);
    EXPECT_EQ(run.exit_code, 0) << run.out;
    const std::string line = "rank: " + front + " 1\n";
    const std::size_t first = run.out.find(line);
    ASSERT_NE(first, std::string::npos) << run.out;
    EXPECT_NE(run.out.find(line, first + 1), std::string::npos) << run.out;
    EXPECT_THAT(run.out, Not(HasSubstr("parent: ")));
  }
}

}  // namespace
}  // namespace farsum::cli::test
