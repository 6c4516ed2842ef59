// The launcher's small parts, one by one: lines, lists of processing units, the search for programs, the split of
// command lines, the walk over descendants, the table of paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/info/info_paths.hpp"
#include "cli/run/run_binding.hpp"
#include "cli/run/run_output.hpp"
#include "cli/run/run_program.hpp"
#include "cli/run/run_sweep.hpp"

namespace farsum::cli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string fed(LineBuffer& buffer, std::string_view bytes) {
  std::string lines;
  buffer.feed(bytes, lines);
  return lines;
}

std::string finished(LineBuffer& buffer) {
  std::string lines;
  buffer.finish(lines);
  return lines;
}

TEST(LineBuffer, holds_a_line_until_it_is_whole) {
  LineBuffer buffer("[2] ");
  EXPECT_EQ(fed(buffer, "on"), "");
  EXPECT_EQ(fed(buffer, "e\n\ntw"), "[2] one\n[2] \n");
  EXPECT_EQ(fed(buffer, "o"), "");
  EXPECT_EQ(finished(buffer), "[2] two");
  EXPECT_EQ(finished(buffer), "");
}

TEST(LineBuffer, passes_on_a_line_beyond_its_limit_in_parts_with_one_tag) {
  LineBuffer buffer("[0] ");
  const std::string below(LineBuffer::longest_held_bytes - 1, 'x');
  EXPECT_EQ(fed(buffer, below), "");
  EXPECT_EQ(fed(buffer, "y"), "[0] " + below + "y");
  EXPECT_EQ(fed(buffer, "z\nnext\n"), "z\n[0] next\n");
}

TEST(CpuList, reads_numbers_and_ranges) {
  EXPECT_THAT(parse_cpu_list("0,1").cpus, ElementsAre(0, 1));
  EXPECT_THAT(parse_cpu_list("0-3,6").cpus, ElementsAre(0, 1, 2, 3, 6));
  EXPECT_THAT(parse_cpu_list("65535").cpus, ElementsAre(65535));
  EXPECT_THAT(parse_cpu_list("2").sentence, IsEmpty());
}

TEST(CpuList, refuses_what_is_no_list) {
  for (const char* text : {"", ",", "1,", "-1", "1-", "3-1", "a", "1 2", "65536", "99999999999", "1--2"}) {
    EXPECT_THAT(parse_cpu_list(text).sentence, HasSubstr("--bind takes")) << text;
  }
}

TEST(Bindings, give_each_rank_a_core_in_turn_or_none_when_there_are_too_few) {
  const std::vector<CpuList> cores{{0, 2}, {1, 3}};
  EXPECT_THAT(choose_bindings("none", 2, cores).of_ranks, IsEmpty());
  EXPECT_EQ(choose_bindings("core", 2, cores).of_ranks, cores);
  EXPECT_THAT(choose_bindings("core", 3, cores).of_ranks, IsEmpty());
  EXPECT_THAT(choose_bindings("3,0", 5, cores).of_ranks, ElementsAre(CpuList{3}, CpuList{0}));
  EXPECT_THAT(choose_bindings("0,4", 2, cores).sentence, HasSubstr("processing unit 4"));
}

TEST(FindProgram, searches_the_path_for_plain_names_only) {
  EXPECT_THAT(find_program("sh", "/nowhere:/bin").path, "/bin/sh");
  EXPECT_EQ(find_program("sh", "/nowhere").exit_code, 127);
  EXPECT_EQ(find_program("", "/bin").exit_code, 127);
  EXPECT_EQ(find_program("/bin/sh", "").path, "/bin/sh");
  EXPECT_THAT(find_program("/bin", "").sentence, HasSubstr("it is a folder"));
  EXPECT_EQ(find_program("passwd", "/etc").exit_code, 126);
  EXPECT_EQ(find_program("/etc/passwd/x", "").exit_code, 127);
}

class SplitAtProgram : public testing::Test {
 protected:
  SplitAtProgram() {
    command_.add_option("-n,--ranks", number_);
    command_.add_flag("--tag", flag_);
  }

  CommandLine split(const std::vector<std::string>& arguments) const {
    CommandLine line;
    split_at_program(command_, arguments, line);
    return line;
  }

 private:
  CLI::App command_;
  int number_ = 0;
  bool flag_ = false;
};

TEST_F(SplitAtProgram, takes_the_first_word_that_is_no_value_of_an_option) {
  const CommandLine line = split({"-n", "3", "--tag", "--ranks=2", "-n4", "prog", "-n", "5", "--tag"});
  EXPECT_THAT(line.own, ElementsAre("-n", "3", "--tag", "--ranks=2", "-n4"));
  EXPECT_THAT(line.program, ElementsAre("prog", "-n", "5", "--tag"));
}

TEST_F(SplitAtProgram, takes_what_follows_two_dashes) {
  const CommandLine line = split({"--tag", "--", "--odd", "--"});
  EXPECT_THAT(line.own, ElementsAre("--tag"));
  EXPECT_THAT(line.program, ElementsAre("--odd", "--"));
}

TEST_F(SplitAtProgram, may_find_none) {
  EXPECT_THAT(split({"-n"}).own, ElementsAre("-n"));
  EXPECT_THAT(split({"-n", "2"}).program, IsEmpty());
  EXPECT_THAT(split({}).program, IsEmpty());
}

TEST(Descendants, are_found_with_their_children_unless_spared) {
  std::array<int, 2> up{};
  ASSERT_EQ(pipe(up.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) pause();
    [[maybe_unused]] const ssize_t told = write(up[1], &grandchild, sizeof(grandchild));
    pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(up[0], &grandchild, sizeof(grandchild)), static_cast<ssize_t>(sizeof(grandchild)));
  EXPECT_THAT(descendants_of(getpid(), {}), ElementsAre(child, grandchild));
  EXPECT_THAT(descendants_of(getpid(), {grandchild}), ElementsAre(child));
  EXPECT_THAT(descendants_of(getpid(), {child}), IsEmpty());
  kill(grandchild, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(up[0]);
  close(up[1]);
}

std::vector<std::string> paths_of(const PathFacts& facts, const std::string& memory) {
  std::vector<std::string> paths;
  for (const PathRow& row : explain_paths(facts)) {
    if (row.memory == memory) paths.push_back(row.path);
  }
  return paths;
}

TEST(ExplainPaths, attaches_to_adopted_memory_where_the_kernel_lets_it) {
  EXPECT_THAT(paths_of({{true, true, ""}, -1, {}}, "adopted, dynamic"), ElementsAre("attach", "attach", "attach"));
  EXPECT_THAT(paths_of({{false, true, ""}, 1, {}}, "adopted, dynamic"), ElementsAre("attach", "attach", "attach"));
}

TEST(ExplainPaths, falls_back_to_the_owner_and_says_who_refused) {
  const PathFacts refused{{false, false, "Operation not permitted"}, 2, {}};
  EXPECT_THAT(paths_of(refused, "adopted, dynamic"), ElementsAre("owner"));
  EXPECT_THAT(explain_paths(refused)[1].reason, HasSubstr("Operation not permitted, Yama ptrace_scope 2"));
  PathFacts by_setting{{true, true, ""}, -1, {}};
  by_setting.settings.attach = Permission::refuse;
  EXPECT_THAT(paths_of(by_setting, "adopted, dynamic"), ElementsAre("owner"));
  EXPECT_THAT(explain_paths(by_setting)[1].reason, HasSubstr("FARSUM_ATTACH=refuse"));
}

TEST(ExplainPaths, says_whether_memory_is_promoted_beside_threads) {
  const auto reason = [](const PathFacts& facts) {
    for (const PathRow& row : explain_paths(facts)) {
      if (row.memory == "adopted, promoted") return row.reason;
    }
    return std::string();
  };
  PathFacts facts{{true, true, ""}, -1, {}};
  EXPECT_THAT(reason(facts), HasSubstr("with the program's other threads held meanwhile"));
  facts.held_threads_refusal = "process 7 traces this one";
  EXPECT_THAT(reason(facts), HasSubstr("no other threads, which cannot be held: process 7 traces this one"));
  facts.settings.hold_threads = Permission::refuse;
  EXPECT_THAT(reason(facts), HasSubstr("FARSUM_HOLD_THREADS=refuse"));
}

TEST(ExplainPaths, notes_a_path_that_was_forced) {
  Settings settings;
  EXPECT_THAT(forced_path_note(settings), IsEmpty());
  settings.path = PathChoice::owner;
  EXPECT_THAT(forced_path_note(settings), HasSubstr("FARSUM_PATH=owner"));
}

}  // namespace
}  // namespace farsum::cli
