// `farsum info` and `farsum bench` as a user and a script see them.
#include <farsum.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "launched_job.hpp"
#include "shell.hpp"
#include "temporary_folder.hpp"

namespace farsum::cli::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Command, names_all_its_subcommands_and_has_the_help_of_each) {
  const Ended all = run_farsum({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* name : {"run", "info", "bench", "mpi", "lab"}) {
    EXPECT_THAT(all.out, HasSubstr(fmt::format("\n  {} ", name)));
    const Ended one = run_farsum({name, "--help"});
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_THAT(one.out, HasSubstr(fmt::format("Usage: farsum {}", name)));
    EXPECT_EQ(run_farsum({name, "--no-such-option"}).exit_code, 2) << name;
  }
}

// As where nothing but a part of it is built.
TEST(Command, says_what_is_not_there_of_it) {
  const TemporaryFolder folder;
  const std::filesystem::path alone = folder.path() / "farsum";
  std::filesystem::copy_file(FARSUM_BIN_DIR "/farsum", alone);
  const auto said = farsum::test::shell(fmt::format("{} info", alone.string()));
  EXPECT_EQ(said.status, 125);
  EXPECT_THAT(said.output, HasSubstr("farsum info: " + (folder.path() / "farsum-tools").string() + " cannot be run"));
}

TEST(InfoCommand, gives_the_build_the_machine_and_the_permissions_as_json) {
  const Ended ended = run_farsum({"info", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json report = json::parse(ended.out);
  EXPECT_GE(report.at("machine").at("processing_units").get<int>(), 1);
  EXPECT_GT(report.at("machine").at("memory_bytes").get<std::uint64_t>(), 0u);
  EXPECT_FALSE(report.at("build").at("kernels_runnable_here").empty());
  EXPECT_EQ(report.at("permissions").at("memory_files"), "work");
}

TEST(InfoCommand, begins_with_a_verdict_and_says_all_when_asked_to) {
  const Ended brief = run_farsum({"info"});
  ASSERT_EQ(brief.exit_code, 0) << brief.err;
  EXPECT_THAT(brief.out, testing::MatchesRegex("Farsum [0-9.]+ (works here|does not work here: |works here, but ).*"));
  EXPECT_THAT(brief.out, HasSubstr("\n  processors  "));
  EXPECT_THAT(brief.out, HasSubstr("\n  MPI         "));
  EXPECT_THAT(brief.out, HasSubstr("farsum info --all"));
  EXPECT_LT(std::count(brief.out.begin(), brief.out.end(), '\n'), 25);
  const Ended all = run_farsum({"info", "--all"});
  const std::string first_line = brief.out.substr(0, brief.out.find('\n') + 1);
  EXPECT_THAT(all.out, testing::StartsWith(first_line));
  for (const char* part : {"\nbuild\n", "\nmachine\n", "\npermissions\n", "\nnetwork\n", "mpi_front"})
    EXPECT_THAT(all.out, HasSubstr(part));
}

TEST(InfoCommand, names_the_mpi_of_the_active_environment_first) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "bin");
  std::filesystem::create_directories(folder.path() / "lib");
  std::ofstream(folder.path() / "lib" / "libmpi.so.12") << "no library";
  const std::filesystem::path launcher = folder.path() / "bin" / "mpiexec";
  std::ofstream(launcher) << "#!/bin/sh\necho 'HYDRA build details:'\necho 'Version: 4.3.1'\n";
  std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
  const Ended ended =
      run_farsum({"run", "--env", "VIRTUAL_ENV=" + folder.path().string(), FARSUM_BIN_DIR "/farsum", "info", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json first = json::parse(ended.out).at("mpi_libraries").at(0);
  EXPECT_EQ(first.at("mpi_library"), "mpich");
  EXPECT_EQ(first.at("version"), "4.3.1");
  EXPECT_EQ(first.at("launcher"), std::filesystem::canonical(launcher).string());
  EXPECT_EQ(first.at("environment"), std::filesystem::canonical(folder.path()).string());
}

TEST(InfoCommand, explains_the_paths_of_each_kind_of_memory) {
  const json report = json::parse(run_farsum({"info", "--paths", "--json"}).out);
  EXPECT_EQ(report.at("paths").at(0).at("memory"), "allocated");
  EXPECT_EQ(report.at("paths").at(0).at("path"), "direct");
  const Ended text = run_farsum({"info", "--paths"});
  EXPECT_THAT(text.out, HasSubstr("adopted"));
}

TEST(InfoCommand, says_what_there_is_for_messages_between_hosts_and_how_windows_use_it) {
  const json network = json::parse(run_farsum({"info", "--json"}).out).at("network");
  const auto carried_by = network.at("messages_between_hosts").get<std::string>();
  const bool is_carried = !carried_by.starts_with("none: UCX: ");
  EXPECT_THAT(network.at("windows_across_hosts").get<std::string>(),
              HasSubstr(is_carried ? "carried by messages" : carried_by));
  if (!is_carried) GTEST_SKIP() << carried_by;
  EXPECT_FALSE(network.at("ucx_version").get<std::string>().empty());
  EXPECT_FALSE(network.at("ucx_library").get<std::string>().empty());
  EXPECT_THAT(network.at("transports").dump(), HasSubstr("tcp over "));
  EXPECT_GE(network.at("longest_message_bytes").get<int>(), 8000);
}

TEST(InfoCommand, says_what_each_path_uses_between_hosts) {
  const json report = json::parse(run_farsum({"info", "--paths", "--json"}).out);
  const auto how = report.at("windows_across_hosts").get<std::string>();
  EXPECT_THAT(how, HasSubstr("Windows across hosts: "));
  std::map<std::string, std::string> says;
  for (const json& row : report.at("paths_across_hosts"))
    says[row.at("path").get<std::string>()] = row.at("between_hosts").get<std::string>();
  if (how.find("none: UCX: ") != std::string::npos) {
    EXPECT_THAT(says.at("all"), HasSubstr("none: UCX: "));
    GTEST_SKIP() << how;
  }
  EXPECT_THAT(says.at("direct"), HasSubstr("none: "));
  EXPECT_THAT(says.at("attach"), HasSubstr("none: "));
  EXPECT_FALSE(says.at("offload").empty());
  EXPECT_THAT(says.at("owner"), HasSubstr("messages by tcp over "));
  EXPECT_EQ(says.at("aggregated"), says.at("owner"));
  EXPECT_THAT(says.at("caller"), HasSubstr("two messages each"));
}

TEST(InfoCommand, says_whether_reads_between_hosts_may_be_answered_from_copies) {
  const auto reads = [](const std::string& age) {
    const Ended ended =
        run_farsum({"run", "--env", "FARSUM_READ_AGE=" + age, FARSUM_BIN_DIR "/farsum", "info", "--paths", "--json"});
    const json rows = json::parse(ended.out).at("paths_across_hosts");
    const auto found =
        std::find_if(rows.begin(), rows.end(), [](const json& row) { return row.at("path") == "reads"; });
    return found != rows.end() ? found->at("between_hosts").get<std::string>() : std::string();
  };
  const std::string with_copies = reads("50");
  if (with_copies.empty()) GTEST_SKIP() << "no messages between hosts here";
  EXPECT_THAT(with_copies, HasSubstr("copies of at most 50 ms"));
  EXPECT_THAT(reads("0"), HasSubstr("always of the owner (FARSUM_READ_AGE=0)"));
}

TEST(InfoCommand, names_a_ucx_library_that_is_not_there_and_what_would_be_right) {
  const Ended ended =
      run_farsum({"run", "--env", "FARSUM_UCX_LIBRARY=/nonexistent", FARSUM_BIN_DIR "/farsum", "info", "--json"});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const auto sentence = json::parse(ended.out).at("network").at("messages_between_hosts").get<std::string>();
  if (sentence.find("found no headers") != std::string::npos) GTEST_SKIP() << sentence;
  EXPECT_THAT(sentence, HasSubstr("/nonexistent"));
  EXPECT_THAT(sentence, HasSubstr("FARSUM_UCX_LIBRARY must name"));
}

TEST(InfoCommand, lists_every_setting_with_its_value) {
  const json report = json::parse(run_farsum({"info", "--settings", "--json"}).out);
  const auto& settings = report.at("settings");
  for (const char* name : {"FARSUM_PATH", "FARSUM_REDUCE_DEGREE", "FARSUM_REDUCE_MODEL", "FARSUM_NET_TIMEOUT",
                           "FARSUM_NET_UCX_*", "FARSUM_MPI_WITNESS"}) {
    const auto row =
        std::find_if(settings.begin(), settings.end(), [&](const json& each) { return each.at("name") == name; });
    ASSERT_NE(row, settings.end()) << name;
    EXPECT_FALSE(row->at("meaning").get<std::string>().empty()) << name;
    EXPECT_FALSE(row->at("type").get<std::string>().empty()) << name;
  }
}

TEST(InfoCommand, refuses_a_setting_that_cannot_be_read_with_two) {
  for (const std::string setting : {"FARSUM_PATH=nonsense", "FARSUM_REDUCE_DEGREE=1"}) {
    const Ended ended = run_farsum({"run", "--env", setting, FARSUM_BIN_DIR "/farsum", "info"});
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_THAT(ended.err, HasSubstr(setting.substr(0, setting.find('='))));
  }
}

// In make test-all: `make test` builds no benchmarks.
TEST(BenchCommand, names_what_there_is_when_asked_for_something_else) {
  const Ended ended = run_farsum({"bench", "no-such-benchmark"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("there is no benchmark called no-such-benchmark; there "));
  EXPECT_EQ(run_farsum({"bench"}).exit_code, 2);
  EXPECT_EQ(run_farsum({"bench", "../farsum"}).exit_code, 2);
}

TEST(BenchCommand, lists_names_as_json) {
  EXPECT_TRUE(json::parse(run_farsum({"bench", "--list", "--json"}).out).is_array());
}

// A busy machine, in short: both places for the loops, and what each side is held against.
// In make test-all: `make test` builds no benchmarks.
TEST(BenchCommand, sets_a_library_beside_busy_loops_without_and_with_farsum) {
  const Ended ended = run_farsum({"bench", "mpi", "--beside", "outside,inside", "--libraries", "mpich", "--ranks", "2",
                                  "--cases", "flush-clean", "--quick", "--json"});
  if (ended.err.find("cannot run under mpich here") != std::string::npos) GTEST_SKIP() << ended.err;
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::istringstream lines(ended.out);
  std::vector<std::string> cases;
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    cases.push_back(row.at("case"));
    EXPECT_EQ(row.at("row"), "beside");
    EXPECT_EQ(row.at("peer"), "mpich");
    EXPECT_EQ(row.at("aim"), 1.2);
    EXPECT_GT(row.at("ours").get<double>(), 0) << line;
    EXPECT_GT(row.at("limit").get<double>(), 0) << line;
  }
  EXPECT_THAT(cases, testing::ElementsAre("flush-clean, loops outside, 2 ranks", "flush-clean, loops inside, 2 ranks"));
}

// In make test-all: `make test` builds no benchmarks.
TEST(BenchRanks, refuses_with_a_sentence_what_it_cannot_do) {
  const Ended library = run_farsum({"bench", "ranks", "--libraries", "no-such-library"});
  EXPECT_EQ(library.exit_code, 2);
  EXPECT_THAT(library.err, HasSubstr("lab-ranks cannot run under no-such-library here; there are: native"));
  const Ended crowd = run_farsum({"bench", "ranks", "--ranks", "256", "--libraries", "native"});
  EXPECT_EQ(crowd.exit_code, 2);
  EXPECT_THAT(crowd.err, HasSubstr("256 ranks are more than the "));
  EXPECT_THAT(crowd.err, HasSubstr("--oversubscribe allows it"));
  const Ended row = run_farsum({"bench", "ranks", "--rows", "no-such-row"});
  EXPECT_EQ(row.exit_code, 2);
  EXPECT_THAT(row.err, HasSubstr("there is no row no-such-row; there are: lock-one, "));
}

// One row, short: each of the two has a line, with the figures of all that take part.
// In make test-all: `make test` builds no benchmarks.
TEST(BenchRanks, sets_a_library_alone_and_with_farsum_and_native_ranks_beside_bare_processes) {
  const Ended ended = run_farsum({"bench", "--json", "ranks", "--rows", "lock-one", "--libraries", "mpich,native",
                                  "--ranks", "2", "--quick", "--oversubscribe"});
  if (ended.err.find("cannot run under mpich here") != std::string::npos) GTEST_SKIP() << ended.err;
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::istringstream lines(ended.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const json header = json::parse(line);
  EXPECT_GE(header.at("usable_processors").get<int>(), 1);
  EXPECT_THAT(header.at("libraries").at("mpich").get<std::string>(), HasSubstr("MPICH"));
  for (const char* library : {"mpich", "native"}) {
    ASSERT_TRUE(std::getline(lines, line)) << library;
    const json row = json::parse(line);
    EXPECT_EQ(row.at("bench"), "ranks");
    EXPECT_EQ(row.at("case"), "lock-one, allocate, 2 ranks");
    EXPECT_EQ(row.at("library"), library);
    EXPECT_EQ(row.at("peer"), "mpich");
    EXPECT_EQ(row.at("aim_of"), "mpich alone");
    EXPECT_EQ(row.at("better"), "higher");
    EXPECT_EQ(row.at("alone").is_null(), library == std::string("native"));
    EXPECT_EQ(row.at("met"), row.at("ours").get<double>() >= row.at("aim_figure").get<double>());
    EXPECT_NEAR(row.at("ratio"), row.at("ours").get<double>() / row.at("limit").get<double>(), 1e-9);
    for (const char* figure : {"ours", "limit", "repetitions", "seconds", "checked", "slowest_to_fastest"})
      EXPECT_GT(row.at(figure).get<double>(), 0) << figure << " in " << line;
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

// In make test-all: `make test` builds no benchmarks.
TEST(BenchRanks, leaves_nothing_behind_when_it_is_interrupted) {
  LaunchedJob job({"bench", "--json", "ranks", "--rows", "lock-one", "--libraries", "native", "--ranks", "2",
                   "--seconds", "600", "--pairs", "1000", "--oversubscribe"});
  EXPECT_THAT(job.next_line(), HasSubstr("usable_processors"));
  job.send(SIGINT);
  EXPECT_EQ(job.wait().exit_code, 130);
  EXPECT_TRUE(job.nothing_is_left());
}

TEST(MainCommand, has_help_and_a_version_and_refuses_the_rest_with_two) {
  EXPECT_THAT(run_farsum({"--help"}).out, HasSubstr("farsum run -n 2 ./program"));
  EXPECT_THAT(run_farsum({"--version"}).out,
              testing::StartsWith(fmt::format("farsum {}.{}.", FARSUM_VERSION_MAJOR, FARSUM_VERSION_MINOR)));
  EXPECT_THAT(run_farsum({"--version"}).out, HasSubstr("\nbuilt with: "));
  EXPECT_EQ(run_farsum({}).exit_code, 2);
  EXPECT_EQ(run_farsum({"no-such-command"}).exit_code, 2);
  for (const char* command : {"run", "info", "bench"}) {
    EXPECT_THAT(run_farsum({command, "--help"}).out, HasSubstr("Examples:")) << command;
  }
}

}  // namespace
}  // namespace farsum::cli::test
