// Which front a program needs, read from real ELF files, and the refusals of those that none can serve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/mpi/mpi_program.hpp"
#include "mpi_folder.hpp"

namespace farsum::cli::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

ProgramFinding examine(const std::vector<std::string>& command, std::optional<MpiAbi> assumed = {},
                       const std::string& library_path = {}) {
  ProgramSurroundings surroundings;
  surroundings.search_path = "/usr/bin:/bin";
  surroundings.library_path = library_path;
  surroundings.assumed = assumed;
  return examine_program(command, 0, command.size(), surroundings);
}

class MpiProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_compiler()) GTEST_SKIP() << "there is no C compiler";
  }
  MpiFolder folder_;
};

TEST_F(MpiProgram, is_known_by_the_name_of_the_library_that_it_needs) {
  EXPECT_THAT(examine({folder_.add_program("a", {"libmpi.so.12"})}).abi, Optional(MpiAbi::mpich));
  EXPECT_THAT(examine({folder_.add_program("b", {"libmpich.so.12"})}).abi, Optional(MpiAbi::mpich));
  EXPECT_THAT(examine({folder_.add_program("c", {"libmpi.so.40"})}).abi, Optional(MpiAbi::openmpi));
  EXPECT_THAT(examine({folder_.add_program("d", {"libmpi_abi.so.1"})}).abi, Optional(MpiAbi::standard));
}

TEST_F(MpiProgram, may_reach_mpi_through_other_libraries_along_runpath_and_library_path) {
  const std::string program = folder_.add_program("p", {"libsolver.so"}, "int main(void) { return 0; }", {});
  const std::string mpi = folder_.add_library("libmpi.so.40");
  // The solver is made anew, with a need of its own.
  ASSERT_EQ(run_captured({"/usr/bin/cc", "-shared", "-Wl,--no-as-needed", "-Wl,-soname,libsolver.so", mpi, "-o",
                          folder_.path("mpi/libsolver.so")},
                         ErrorOutput::kept)
                .exit_code,
            0);
  EXPECT_EQ(examine({program}).abi, std::nullopt);
  EXPECT_THAT(examine({program}).sentence, HasSubstr("libsolver.so could not be found"));
  EXPECT_THAT(examine({program}, {}, "/nowhere:" + folder_.path("mpi")).abi, Optional(MpiAbi::openmpi));
}

TEST_F(MpiProgram, with_libraries_of_two_mpis_is_refused) {
  EXPECT_THAT(examine({folder_.add_program("p", {"libmpi.so.12", "libmpi.so.40"})}).sentence,
              AllOf(HasSubstr("more than one MPI"), HasSubstr("libmpi.so.12"), HasSubstr("libmpi.so.40")));
}

TEST_F(MpiProgram, of_an_mpi_without_a_front_is_refused) {
  EXPECT_THAT(examine({folder_.add_program("p", {"libmpi.so.20"})}).sentence, HasSubstr("no front"));
}

TEST_F(MpiProgram, of_an_open_mpi_that_carried_mpichs_number_is_refused) {
  const std::string program = folder_.add_program("p", {"libmpi.so.12"});
  folder_.add_library("libmpi.so.12", "int ompi_mpi_comm_world;");
  EXPECT_THAT(examine({program}).sentence, HasSubstr("no front"));
}

TEST_F(MpiProgram, with_mpi_linked_in_statically_is_refused) {
  const std::string source =
      "int MPI_Init(int* c, char*** v) { (void)c; (void)v; return 0; } int main(void) { return 0; }";
  EXPECT_THAT(examine({folder_.add_program("p", {}, source)}).sentence,
              AllOf(HasSubstr("linked in statically"), HasSubstr("MPI_Init")));
}

TEST_F(MpiProgram, that_defines_mpi_calls_in_front_of_a_library_is_a_profiled_one_and_served) {
  const std::string source =
      "int MPI_Init(int* c, char*** v) { (void)c; (void)v; return 0; } int main(void) { return 0; }";
  EXPECT_THAT(examine({folder_.add_program("p", {"libmpi.so.12"}, source)}).abi, Optional(MpiAbi::mpich));
}

TEST_F(MpiProgram, without_mpi_or_without_shared_libraries_is_refused) {
  EXPECT_THAT(examine({folder_.add_program("p", {})}).sentence,
              AllOf(HasSubstr("needs no MPI library"), HasSubstr("--abi")));
  EXPECT_THAT(examine({folder_.add_program("s", {}, "int main(void) { return 0; }", {"-static"})}).sentence,
              HasSubstr("linked statically"));
}

TEST_F(MpiProgram, is_found_behind_wrappers) {
  const std::string program = folder_.add_program("p", {"libmpi.so.12"});
  const ProgramFinding found = examine({"env", "A=1", "nice", "-n", "5", program, "x"});
  EXPECT_THAT(found.abi, Optional(MpiAbi::mpich));
  EXPECT_THAT(found.sentence, AllOf(HasSubstr("through env"), HasSubstr("through nice")));
  EXPECT_THAT(examine({"env", "-i", program}).sentence, HasSubstr("takes away the environment"));
  EXPECT_THAT(examine({"env", "LD_PRELOAD=x", program}).sentence, HasSubstr("in front of all"));
}

// A program of these names is in everybody's folder, and the words behind it are its own.
TEST_F(MpiProgram, named_like_a_wrapper_is_a_program) {
  for (const char* name : {"perf", "time", "rr", "strace", "gdb"}) {
    const std::string program = folder_.add_program(name, {"libmpi.so.12"});
    EXPECT_THAT(examine({program}).abi, Optional(MpiAbi::mpich)) << name;
    EXPECT_THAT(examine({program, "-n", "input", "--args", "x"}).abi, Optional(MpiAbi::mpich)) << name;
    EXPECT_THAT(examine({"env", "A=1", program}).sentence, HasSubstr("through env: " + program)) << name;
  }
  const std::string source =
      "int MPI_Init(int* c, char*** v) { (void)c; (void)v; return 0; } int main(void) { return 0; }";
  EXPECT_THAT(examine({folder_.add_program("perf", {}, source)}).sentence, HasSubstr("linked in statically"));
}

TEST_F(MpiProgram, named_like_a_wrapper_may_be_a_script_of_the_users) {
  const std::string script = folder_.add_script("perf", "#!/bin/sh\n");
  EXPECT_THAT(examine({script}, MpiAbi::openmpi).sentence, HasSubstr("is a script of /bin/sh"));
  EXPECT_THAT(examine({script, "stat", "no-such-input"}, MpiAbi::openmpi).abi, Optional(MpiAbi::openmpi));
  const std::string program = folder_.add_program("p", {"libmpi.so.12"});
  EXPECT_THAT(examine({script, "stat", program}).sentence, HasSubstr("through " + script));
}

TEST_F(MpiProgram, behind_a_wrapper_that_is_named_by_its_path_is_found) {
  const std::string program = folder_.add_program("p", {"libmpi.so.12"});
  EXPECT_THAT(examine({"/usr/bin/nice", "-n", "5", program}).sentence, HasSubstr("through /usr/bin/nice"));
  EXPECT_THAT(examine({folder_.add_program("strace", {}), "-o", "file", program}).abi, Optional(MpiAbi::mpich));
}

// It may load MPI while it runs, or need a library that is on other hosts alone: --abi helps, and is what is said.
// Takes seconds: real launchers are asked what they are.
TEST_F(MpiProgram, named_like_a_wrapper_by_a_path_is_a_program_where_none_follows_it) {
  for (const char* name : {"perf", "time", "rr", "strace", "env", "gdb"}) {
    const std::string program = folder_.add_program(name, {});
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{program}, {program, "-n", "3", "no-such-program"}}) {
      EXPECT_THAT(examine(command).sentence, AllOf(HasSubstr(program + " needs no MPI library"), HasSubstr("--abi")))
          << name;
    }
  }
  const std::string numactl = folder_.add_program("numactl", {});
  EXPECT_THAT(examine({numactl, "-N", "0", "./typo", "-x"}).sentence,
              HasSubstr(numactl + " needs no MPI library, and ./typo was not found; "));
  EXPECT_THAT(examine({numactl, "-N", "0", "/dev/null"}).sentence, HasSubstr(numactl + " needs no MPI library; "));
  EXPECT_THAT(examine({numactl, "-N", "0"}).sentence, HasSubstr(numactl + " needs no MPI library; "));
  const std::string away = folder_.add_program("time", {"libsolver.so"}, "int main(void) { return 0; }", {});
  EXPECT_THAT(examine({away}).sentence, HasSubstr("libsolver.so could not be found"));
  EXPECT_THAT(examine({"nice"}).sentence, HasSubstr("no program follows nice"));
}

TEST_F(MpiProgram, of_a_sanitizer_names_the_runtimes_that_it_needs) {
  const std::string program = folder_.add_program("p", {"libmpi.so.12", "libubsan.so.1", "libasan.so.8"});
  EXPECT_THAT(examine({program}).runtimes,
              ElementsAre(folder_.path("mpi/libubsan.so.1"), folder_.path("mpi/libasan.so.8")));
  EXPECT_THAT(examine({"env", "A=1", program}).runtimes, SizeIs(2));
  // What the user says of its MPI changes nothing about them.
  const std::string without = folder_.add_program("q", {"libclang_rt.tsan-x86_64.so"});
  EXPECT_EQ(examine({without}).abi, std::nullopt);
  EXPECT_THAT(examine({without}).runtimes, ElementsAre(folder_.path("mpi/libclang_rt.tsan-x86_64.so")));
  EXPECT_THAT(examine({folder_.add_program("r", {"libmpi.so.12"})}).runtimes, IsEmpty());
}

TEST_F(MpiProgram, of_a_sanitizer_may_need_its_runtime_through_a_library) {
  const std::string program = folder_.add_program("p", {"libmpi.so.12", "libsolver.so"});
  const std::string runtime = folder_.add_library("libtsan.so.2");
  ASSERT_EQ(run_captured({"/usr/bin/cc", "-shared", "-Wl,--no-as-needed", "-Wl,-soname,libsolver.so",
                          "-Wl,-rpath,$ORIGIN", runtime, "-o", folder_.path("mpi/libsolver.so")},
                         ErrorOutput::kept)
                .exit_code,
            0);
  EXPECT_THAT(examine({program}).runtimes, ElementsAre(runtime));
}

TEST_F(MpiProgram, that_is_a_script_has_the_launchers_mpi_or_must_be_told) {
  const std::string script = folder_.add_script("run.sh", "#!/bin/sh\n");
  EXPECT_THAT(examine({script}, MpiAbi::openmpi).abi, Optional(MpiAbi::openmpi));
  EXPECT_THAT(examine({script}, MpiAbi::openmpi).sentence, HasSubstr("--abi"));
  EXPECT_THAT(examine({script}).sentence, HasSubstr("say which MPI it uses with --abi"));
  EXPECT_THAT(examine({"sh", "-c", "./prog"}, MpiAbi::mpich).abi, Optional(MpiAbi::mpich));
}

TEST_F(MpiProgram, of_python_follows_what_mpi4py_was_told) {
  ProgramSurroundings surroundings;
  surroundings.assumed = MpiAbi::mpich;
  surroundings.mpi4py_abi = "openmpi";
  const std::vector<std::string> command{folder_.add_script("python3", "#!/bin/sh\n"), "x.py"};
  EXPECT_THAT(examine_program(command, 0, 2, surroundings).abi, Optional(MpiAbi::openmpi));
}

TEST_F(MpiProgram, that_is_no_program_is_refused) {
  EXPECT_THAT(examine({folder_.add_script("text", "hello\n")}).sentence, HasSubstr("neither a 64-bit program"));
  EXPECT_THAT(examine({folder_.path("absent")}).sentence, HasSubstr("there is no such file"));
}

TEST_F(MpiProgram, survives_every_cut_of_its_file) {
  const std::string program = folder_.add_program("p", {"libmpi.so.12"});
  const auto size = std::filesystem::file_size(program);
  for (std::uintmax_t kept = size; kept > 0; kept = kept * 7 / 8) {
    std::filesystem::resize_file(program, kept);
    (void)examine({program}, MpiAbi::mpich);
  }
}

TEST(InstalledMpiProgram, is_known_by_its_files) {
  if (access("/usr/bin/nwchem.mpich", X_OK) != 0 || access("/usr/bin/nwchem.openmpi", X_OK) != 0) {
    GTEST_SKIP() << "Debian's NWChem is not installed (tools/setup --with-nwchem)";
  }
  EXPECT_THAT(examine({"nwchem.mpich"}).abi, Optional(MpiAbi::mpich));
  EXPECT_THAT(examine({"nwchem.openmpi"}).abi, Optional(MpiAbi::openmpi));
}

}  // namespace
}  // namespace farsum::cli::test
