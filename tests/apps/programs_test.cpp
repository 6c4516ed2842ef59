// Hands the programs to run_apps.py, which runs them as a user does. Skipped where they are not built.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

void run_apps(const char* program, const char* tests) {
  const std::filesystem::path bin = FARSUM_BIN_DIR;
  for (const char* needed : {"farsum", program}) {
    if (!std::filesystem::exists(bin / needed)) GTEST_SKIP() << needed << " is not built";
  }
  const std::string command =
      fmt::format("python3 -B '{}/tests/apps/run_apps.py' '{}' {}", FARSUM_SOURCE_DIR, bin.string(), tests);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

// Takes seconds: it starts several jobs.
TEST(CounterProgram, hands_out_every_ticket_exactly_once) { run_apps("counter", "Counter"); }

// Takes seconds: it starts several jobs.
TEST(GupsProgram, loses_no_update_where_the_way_is_atomic) { run_apps("gups", "Gups"); }

TEST(ExamplePrograms, do_what_their_comments_say) { run_apps("example-strided_accumulate", "Examples"); }

}  // namespace
