// tools/setup on machines that stand-ins for dpkg-query and apt-get describe: what is missing is installed, and only
// that.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shell.hpp"
#include "temporary_folder.hpp"

namespace farsum::test {

namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* dpkg_query = R"(#!/bin/sh
# -W -f FORMAT PACKAGE...: as dpkg-query, which fails for a name that it never heard of.
shift 3
status=0
for package in "$@"; do grep -sx "[a-z-]* $package" "$MACHINE/packages" || status=1; done
exit $status
)";
constexpr const char* says_what_it_does = "#!/bin/sh\necho \"$(basename $0) $*\"\n";

class Setup : public testing::Test {
 protected:
  Setup() {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
    std::filesystem::create_directory(folder_.path() / "bin");
    std::filesystem::copy(FARSUM_SOURCE_DIR "/tools/setup", folder_.path() / "setup");
    write("bin/dpkg-query", dpkg_query);
    for (const char* name : {"bin/apt-get", "slurm", "mpi_libraries", "zoo", "conformance"})
      write(name, says_what_it_does);
  }

  // Lines of a state and a name, as dpkg-query prints them.
  void knows(const std::string& packages) { write("packages", packages); }

  Ended setup(const std::string& options = "", const std::string& as = "") {
    const std::string path = folder_.path().string();
    return shell(as + "env MACHINE=" + path + " PATH=" + path + "/bin:$PATH " + path + "/setup " + options);
  }

  // Every package that it wants, all of them installed.
  std::string all_installed() {
    knows("");
    const Ended listed = setup("", not_root());
    const std::size_t start = listed.output.find("apt-get install ") + sizeof "apt-get install";
    std::string lines;
    std::istringstream names(listed.output.substr(start));
    for (std::string name; names >> name;) lines += "installed " + name + "\n";
    return lines;
  }

  static std::string not_root() { return geteuid() == 0 ? "setpriv --reuid 65534 --clear-groups " : ""; }

 private:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = folder_.path() / name;
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms::all);
  }

  TemporaryFolder folder_;
};

class SetupAsRoot : public Setup {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root installs";
  }
};

TEST_F(SetupAsRoot, installs_everything_where_nothing_is_known) {
  const Ended ended = setup();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("apt-get update"));
  EXPECT_THAT(ended.output, ContainsRegex("apt-get install -y .* g\\+\\+ .* libucx-dev .* libcoarrays-openmpi-dev\n"));
  EXPECT_THAT(ended.output, HasSubstr("slurm fetch\nmpi_libraries --optional\nzoo fetch\n"));
}

TEST_F(SetupAsRoot, installs_what_is_missing_and_what_was_removed) {
  std::string packages = all_installed();
  packages.erase(packages.find("installed spin\n"), sizeof "installed spin");
  packages.replace(packages.find("installed gfortran\n"), sizeof "installed" - 1, "config-files");
  knows(packages);
  const Ended ended = setup();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("setup: installing gfortran spin\n"));
}

TEST_F(SetupAsRoot, installs_nwchem_when_asked) {
  knows(all_installed());
  EXPECT_THAT(setup("--with-nwchem").output, HasSubstr("setup: installing nwchem-openmpi nwchem-mpich\n"));
}

TEST_F(SetupAsRoot, installs_the_programs_of_the_zoo_when_asked) {
  knows(all_installed());
  EXPECT_THAT(setup("--with-zoo").output, HasSubstr("setup: installing bagel petsc-dev libcombblas-dev\n"));
}

TEST_F(SetupAsRoot, installs_for_the_demo_what_it_shows_and_fetches_nothing_else) {
  knows("");
  const Ended ended = setup("--for-demo --with-nwchem");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("apt-get install -y .* g\\+\\+ .* libint2-dev .* nwchem-mpich\n"));
  for (const char* other : {"clang", "spin", "matplotlib", "slurm", "mpi_libraries", "coarrays", "zoo"})
    EXPECT_THAT(ended.output, Not(HasSubstr(other)));
}

TEST_F(SetupAsRoot, installs_for_make_test_what_that_runs_and_fetches_no_other_library) {
  knows("");
  const Ended ended = setup("--for-test");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("apt-get install -y .* nwchem-mpich gfortran .* python3-matplotlib\n"));
  for (const char* other : {"clang", "spin", "slurm", "mpi_libraries", "coarrays", "zoo", "nwchem-openmpi"})
    EXPECT_THAT(ended.output, Not(HasSubstr(other)));
}

TEST_F(Setup, fetches_nothing_for_the_demo_where_all_is_there) {
  knows(all_installed());
  const Ended ended = setup("--for-demo");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("^setup: all [0-9]+ packages are installed\n$"));
}

TEST_F(Setup, installs_nothing_where_all_is_there) {
  knows(all_installed());
  const Ended ended = setup();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("packages are installed\nslurm fetch\nmpi_libraries --optional\nzoo fetch\n"));
  EXPECT_THAT(ended.output, Not(HasSubstr("apt-get")));
}

TEST_F(Setup, without_root_lists_what_is_missing_and_stops) {
  std::string packages = all_installed();
  packages.erase(packages.find("installed spin\n"), sizeof "installed spin");
  knows(packages);
  const Ended ended = setup("", not_root());
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.output, HasSubstr("\n  apt-get install spin\n"));
  EXPECT_THAT(ended.output, Not(HasSubstr("mpi_libraries")));
}

TEST_F(Setup, names_each_of_its_options_in_its_help) {
  const Ended ended = setup("--help");
  EXPECT_EQ(ended.status, 0);
  for (const char* option : {"--with-nwchem", "--with-zoo", "--for-release", "--for-test", "--for-demo"})
    EXPECT_THAT(ended.output, HasSubstr(option));
  EXPECT_THAT(ended.output, HasSubstr("(tools/slurm).\n"));
  EXPECT_THAT(ended.output, Not(HasSubstr("pipefail")));
}

TEST_F(Setup, refuses_an_option_that_it_does_not_have) {
  const Ended ended = setup("--with-everything");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.output, HasSubstr("unknown option '--with-everything'"));
}

}  // namespace

}  // namespace farsum::test
