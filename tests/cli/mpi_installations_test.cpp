// The MPI libraries of Python environments, made of scripts and empty files, as wheels, conda and pip lay them down.
#include "cli/mpi/mpi_installations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "mpi_folder.hpp"

namespace farsum::cli::test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class PythonEnvironment : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "bin");
    fs::create_directories(root_ / "lib");
  }
  void add_launcher(const std::string& name, const std::string& version) const {
    folder_.add_launcher("env/bin/" + name, version);
  }
  void add_library(const std::string& name) const { std::ofstream(root_ / "lib" / name) << "no library"; }
  [[nodiscard]] std::vector<MpiInstallation> found() const { return find_mpi_of_environment(root_); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const MpiInstallation& one : found()) names.push_back(one.name);
    return names;
  }

  MpiFolder folder_;
  fs::path root_ = folder_.path("env");
};

TEST_F(PythonEnvironment, without_an_mpi_has_none) { EXPECT_THAT(found(), IsEmpty()); }

TEST_F(PythonEnvironment, has_the_mpi_of_a_wheel_with_both_of_its_interfaces) {
  add_launcher("mpiexec", "HYDRA build details:\n    Version:   4.3.1\n");
  add_library("libmpi.so.12");
  add_library("libmpi_abi.so.1");
  ASSERT_THAT(names(), ElementsAre("mpich", "mpich-abi"));
  EXPECT_EQ(found()[0].abi, MpiAbi::mpich);
  EXPECT_EQ(found()[1].abi, MpiAbi::standard);
  EXPECT_EQ(version_of(found()[0]), "4.3.1");
  EXPECT_THAT(found()[0].mpirun, ElementsAre((root_ / "bin" / "mpiexec").string()));
  EXPECT_EQ(found()[0].library, (root_ / "lib" / "libmpi.so.12").string());
}

TEST_F(PythonEnvironment, asks_its_launcher_once_for_all_of_its_mpis) {
  add_launcher("mpiexec", "HYDRA build details:\n    Version:   4.3.1\n");
  add_library("libmpi.so.12");
  add_library("libmpi_abi.so.1");
  const std::vector<MpiInstallation> installations = found();
  ASSERT_THAT(installations, SizeIs(2));
  fs::remove(root_ / "bin" / "mpiexec");
  for (const MpiInstallation& one : installations) EXPECT_EQ(version_of(one), "4.3.1") << one.name;
}

TEST_F(PythonEnvironment, tells_intels_mpi_from_mpich_by_its_launcher) {
  add_launcher("mpiexec.hydra", "Intel(R) MPI Library for Linux* OS, Version 2021.16 Build 1");
  add_library("libmpi.so.12");
  EXPECT_THAT(names(), ElementsAre("impi"));
  EXPECT_EQ(version_of(found()[0]), "2021.16");
}

TEST_F(PythonEnvironment, has_the_open_mpi_of_conda) {
  add_launcher("mpirun", "mpirun (Open MPI) 5.0.8");
  add_library("libmpi.so.40");
  EXPECT_THAT(names(), ElementsAre("openmpi"));
  EXPECT_EQ(found()[0].abi, MpiAbi::openmpi);
}

TEST_F(PythonEnvironment, has_the_mpi_that_its_own_mpi4py_is_linked_to) {
  if (!has_compiler()) GTEST_SKIP() << "there is no C compiler";
  const fs::path package = root_ / "lib" / "python3.11" / "site-packages" / "mpi4py";
  fs::create_directories(package);
  const std::string module = folder_.add_program("MPI.cpython.so", {"libmpi.so.40"});
  fs::rename(module, package / "MPI.cpython.so");
  fs::create_directory_symlink(folder_.path("mpi"), package / "mpi");
  ASSERT_THAT(names(), ElementsAre("mpi4py"));
  EXPECT_EQ(found()[0].abi, MpiAbi::openmpi);
  EXPECT_EQ(version_of(found()[0]), "unknown");
  // As conda lays it down.
  fs::create_directory_symlink("python3.11", root_ / "lib" / "python3.1");
  EXPECT_THAT(names(), ElementsAre("mpi4py"));
  // A wheel's modules are several, and which of them is loaded is not known here.
  fs::copy(package / "MPI.cpython.so", package / "MPI.mpich.cpython.so");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(PythonEnvironment, counts_where_it_is_active_or_has_this_command) {
  const std::string before = std::getenv("VIRTUAL_ENV") == nullptr ? "" : std::getenv("VIRTUAL_ENV");
  unsetenv("VIRTUAL_ENV");
  const std::string folder = fs::weakly_canonical(root_);
  EXPECT_THAT(python_environments("/usr"), Not(Contains(folder)));
  EXPECT_THAT(python_environments(root_), Not(Contains(folder)));
  std::ofstream(root_ / "pyvenv.cfg") << "home = /usr/bin\n";
  EXPECT_THAT(python_environments(root_), Contains(folder));
  setenv("VIRTUAL_ENV", root_.c_str(), 1);
  EXPECT_THAT(python_environments("/usr"), Contains(folder));
  EXPECT_THAT(python_environments(root_), SizeIs(python_environments("/usr").size())) << "once each";
  unsetenv("VIRTUAL_ENV");
  if (!before.empty()) setenv("VIRTUAL_ENV", before.c_str(), 1);
}

}  // namespace
}  // namespace farsum::cli::test
