// What is put into a launcher's command line, and what becomes of the user's own variables there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/mpi/mpi_insertion.hpp"
#include "cli/mpi/mpi_preload.hpp"

namespace farsum::cli {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Pair;

using Words = std::vector<std::string>;

InsertionRequest request_for(LauncherKind kind, const Words& arguments) {
  InsertionRequest request;
  request.kind = kind;
  request.arguments = arguments;
  request.contexts = read_launch(kind, arguments, [](const std::string& token) { return token == "./prog"; });
  request.library = "/f.so";
  return request;
}

Words inserted(LauncherKind kind, const Words& arguments) {
  return insert_variables(request_for(kind, arguments)).arguments;
}

TEST(Insertion, gives_open_mpi_4_each_context_its_variables) {
  EXPECT_THAT(
      inserted(LauncherKind::openmpi4, {"-n", "1", "./prog", ":", "-n", "2", "./prog"}),
      ElementsAre("-x", "LD_PRELOAD=/f.so", "-n", "1", "./prog", ":", "-x", "LD_PRELOAD=/f.so", "-n", "2", "./prog"));
}

TEST(Insertion, gives_open_mpi_5_and_hydra_the_variables_once) {
  EXPECT_THAT(inserted(LauncherKind::openmpi5, {"./prog", ":", "./prog"}),
              ElementsAre("-x", "LD_PRELOAD=/f.so", "./prog", ":", "./prog"));
  EXPECT_THAT(inserted(LauncherKind::hydra, {"./prog", ":", "./prog"}),
              ElementsAre("-genv", "LD_PRELOAD", "/f.so", "./prog", ":", "./prog"));
}

TEST(Insertion, puts_the_front_before_the_users_preloads) {
  EXPECT_EQ(merge_preload("/f.so", {}, ""), "/f.so");
  EXPECT_EQ(merge_preload("/f.so", {}, "/a.so /b.so:/f.so"), "/f.so:/a.so:/b.so");
  EXPECT_THAT(inserted(LauncherKind::openmpi4, {"-x", "LD_PRELOAD=/mine.so", "./prog"}),
              ElementsAre("-x", "LD_PRELOAD=/f.so", "-x", "LD_PRELOAD=/f.so:/mine.so", "./prog"));
  EXPECT_THAT(inserted(LauncherKind::hydra, {"-n", "1", "-env", "LD_PRELOAD", "/mine.so", "./prog"}),
              ElementsAre("-genv", "LD_PRELOAD", "/f.so", "-n", "1", "-env", "LD_PRELOAD", "/f.so:/mine.so", "./prog"));
}

TEST(Preload, knows_the_runtimes_of_sanitizers_by_their_names) {
  for (const char* name : {"libasan.so.8", "/usr/lib/gcc/x86_64-linux-gnu/12/libasan.so", "libclang_rt.asan-x86_64.so",
                           "/opt/llvm/libclang_rt.asan.so"}) {
    EXPECT_EQ(sanitizer_of(name), "asan") << name;
  }
  EXPECT_EQ(sanitizer_of("libtsan.so.2"), "tsan");
  EXPECT_EQ(sanitizer_of("libclang_rt.ubsan_standalone-x86_64.so"), "ubsan");
  EXPECT_EQ(sanitizer_of("libhwasan.so.0"), "hwasan");
  for (const char* name :
       {"libasanity.so.1", "libtsan_helper.so", "libclang_rt.profile-x86_64.so", "asan", "libm.so"}) {
    EXPECT_EQ(sanitizer_of(name), "") << name;
  }
  EXPECT_TRUE(exclude_each_other("asan", "tsan"));
  EXPECT_FALSE(exclude_each_other("asan", "ubsan"));
  EXPECT_FALSE(exclude_each_other("tsan", "tsan"));
}

TEST(Preload, begins_with_the_runtimes_that_the_program_needs) {
  const Words needed = {"/l/libubsan.so.1", "/l/libasan.so.8"};
  EXPECT_EQ(merge_preload("/f.so", needed, "/a.so"), "/l/libasan.so.8:/l/libubsan.so.1:/f.so:/a.so");
  EXPECT_THAT(runtimes_to_add(needed, "/a.so"), ElementsAreArray(needed));
}

TEST(Preload, keeps_a_runtime_that_the_user_names_and_puts_it_first) {
  EXPECT_EQ(merge_preload("/f.so", {"/l/libasan.so.8"}, "/mine/libasan.so:/a.so"), "/mine/libasan.so:/f.so:/a.so");
  EXPECT_EQ(merge_preload("/f.so", {"/l/libasan.so.8"}, "/a.so:libasan.so.8"), "libasan.so.8:/f.so:/a.so");
  // Also one that the program does not show: an interpreter's, whose module was built with it.
  EXPECT_EQ(merge_preload("/f.so", {}, "libtsan.so.2"), "libtsan.so.2:/f.so");
  EXPECT_THAT(runtimes_to_add({"/l/libasan.so.8", "/l/libubsan.so.1"}, "libasan.so.8"),
              ElementsAre("/l/libubsan.so.1"));
}

TEST(Insertion, gives_each_context_the_runtimes_of_its_program_in_every_form) {
  const auto inserted_with = [](LauncherKind kind, const Words& arguments) {
    InsertionRequest request = request_for(kind, arguments);
    request.contexts.front().runtimes = {"/libasan.so.8"};
    return insert_variables(request).arguments;
  };
  EXPECT_THAT(inserted_with(LauncherKind::openmpi4, {"./prog", ":", "./prog"}),
              ElementsAre("-x", "LD_PRELOAD=/libasan.so.8:/f.so", "./prog", ":", "-x", "LD_PRELOAD=/f.so", "./prog"));
  EXPECT_THAT(
      inserted_with(LauncherKind::openmpi5, {"-x", "LD_PRELOAD=/mine.so", "./prog"}),
      ElementsAre("-x", "LD_PRELOAD=/libasan.so.8:/f.so", "-x", "LD_PRELOAD=/libasan.so.8:/f.so:/mine.so", "./prog"));
  for (const LauncherKind kind : {LauncherKind::hydra, LauncherKind::intel}) {
    EXPECT_THAT(inserted_with(kind, {"-env", "LD_PRELOAD", "/mine.so", "./prog"}),
                ElementsAre("-genv", "LD_PRELOAD", "/libasan.so.8:/f.so", "-env", "LD_PRELOAD",
                            "/libasan.so.8:/f.so:/mine.so", "./prog"));
  }
  EXPECT_THAT(inserted_with(LauncherKind::slurm, {"--export=ALL,LD_PRELOAD=/mine.so", "./prog", ":", "./prog"}),
              ElementsAre("--export=ALL,LD_PRELOAD=/libasan.so.8:/f.so:/mine.so", "./prog", ":",
                          "--export=ALL,LD_PRELOAD=/f.so", "./prog"));
}

TEST(Insertion, leaves_the_users_own_settings_in_force_below_the_options_of_farsum_mpi) {
  InsertionRequest request = request_for(LauncherKind::openmpi5, {"-x", "FARSUM_PATH=direct", "./prog"});
  request.variables = {{"FARSUM_PATH", "caller"}, {"FARSUM_ISA", "avx2"}};
  EXPECT_THAT(insert_variables(request).arguments,
              ElementsAre("-x", "FARSUM_ISA=avx2", "-x", "LD_PRELOAD=/f.so", "-x", "FARSUM_PATH=direct", "./prog"));
  request.overriding = {{"FARSUM_PATH", "owner"}};
  EXPECT_THAT(insert_variables(request).arguments, testing::Contains("FARSUM_PATH=owner"));
}

TEST(Insertion, adds_to_what_srun_exports) {
  EXPECT_THAT(inserted(LauncherKind::slurm, {"-n2", "./prog"}),
              ElementsAre("--export=ALL,LD_PRELOAD=/f.so", "-n2", "./prog"));
  EXPECT_THAT(inserted(LauncherKind::slurm, {"--export", "ALL,LD_PRELOAD=/mine.so,A=1", "./prog"}),
              ElementsAre("--export=ALL,A=1,LD_PRELOAD=/f.so:/mine.so", "./prog"));
  EXPECT_THAT(inserted(LauncherKind::slurm, {"--export=NONE", "./prog"}),
              ElementsAre("--export=LD_PRELOAD=/f.so", "./prog"));
}

TEST(Insertion, keeps_values_with_commas_out_of_sruns_option) {
  InsertionRequest request = request_for(LauncherKind::slurm, {"--export=HOME", "./prog"});
  request.variables = {{"FARSUM_AGENT_CPUS", "0,2"}};
  const Insertion named = insert_variables(request);
  EXPECT_THAT(named.arguments, ElementsAre("--export=HOME,FARSUM_AGENT_CPUS,LD_PRELOAD=/f.so", "./prog"));
  EXPECT_THAT(named.own_environment, ElementsAre(Pair("FARSUM_AGENT_CPUS", "0,2")));
  request.library = "/a,b/f.so";
  EXPECT_THAT(insert_variables(request).arguments,
              ElementsAre("--export=HOME,FARSUM_AGENT_CPUS", "env", "LD_PRELOAD=/a,b/f.so", "./prog"));
}

TEST(Insertion, takes_the_exports_of_the_slurm_environment_as_the_base) {
  InsertionRequest request = request_for(LauncherKind::slurm, {"./prog"});
  request.slurm_exports = "NONE";
  EXPECT_THAT(insert_variables(request).arguments, ElementsAre("--export=LD_PRELOAD=/f.so", "./prog"));
}

TEST(Insertion, never_gives_the_launcher_itself_a_preload) {
  for (const LauncherKind kind : {LauncherKind::openmpi4, LauncherKind::openmpi5, LauncherKind::hydra,
                                  LauncherKind::intel, LauncherKind::slurm}) {
    EXPECT_EQ(insert_variables(request_for(kind, {"./prog"})).own_environment.count("LD_PRELOAD"), 0u);
  }
}

TEST(Insertion, refuses_command_lines_that_come_from_a_file) {
  EXPECT_THAT(insert_variables(request_for(LauncherKind::openmpi4, {"--app", "file"})).refusal,
              HasSubstr("from a file"));
  EXPECT_THAT(insert_variables(request_for(LauncherKind::hydra, {"-configfile", "file"})).refusal,
              HasSubstr("from a file"));
}

TEST(ShellWords, are_quoted_where_a_shell_would_split_or_expand_them) {
  EXPECT_EQ(shell_words({"a", "b c", "it's", "", "$x"}), R"(a 'b c' 'it'\''s' '' '$x')");
}

}  // namespace
}  // namespace farsum::cli
