// tools/hosts: what its hosts share and what not, its links, and that nothing stays behind. Without root, or where the
// kernel has no such namespaces, these are reported skips.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

constexpr int cannot_status = 77;  // as tools/hosts says it

const std::string tool = std::string(FARSUM_SOURCE_DIR) + "/tools/hosts";
const std::string agent = std::string(FARSUM_SOURCE_DIR) + "/tools/hosts_rsh";

struct Ended {
  int status;
  std::string output;
};

// `timeout` is the watchdog of a host that does not answer. The command comes through the environment, so that it needs
// no quotes.
Ended shell(const std::string& command) {
  setenv("FARSUM_TEST_COMMAND", command.c_str(), 1);
  std::FILE* pipe = popen("exec timeout 60 bash -c \"$FARSUM_TEST_COMMAND\" 2>&1 < /dev/null", "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), got);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

bool installed(const std::string& program) { return shell("command -v " + program).status == 0; }

class Hosts : public testing::Test {
 protected:
  // Two or more hosts under a name that no other test and no user has. No quotes of the shell's single kind may stand
  // in commands.
  void up(int count = 2) {
    const Ended made = hosts("up " + std::to_string(count));
    if (made.status == cannot_status) GTEST_SKIP() << made.output;
    ASSERT_EQ(made.status, 0) << made.output;
  }

  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_EQ(hosts("down").output, "");
    }
    EXPECT_FALSE(std::filesystem::exists("/run/farsum-hosts/" + name_));
    EXPECT_EQ(shell("grep -lz '^farsum-[a-z]*:" + name_ + "\\b' /proc/[0-9]*/cmdline 2> /dev/null").output, "");
  }

  Ended hosts(const std::string& words) const { return shell(tool + " --name " + name_ + " " + words); }

  Ended link_check(const std::string& what, const std::string& one, const std::string& other) const {
    return shell(std::string(FARSUM_SOURCE_DIR) + "/tests/hosts/link_check.py " + what + " " + tool + " " + name_ +
                 " " + one + " " + other);
  }

  std::string name_ = "test-" + std::to_string(getpid());
};

TEST_F(Hosts, run_a_command_with_the_callers_folder_environment_input_and_exit_status_under_their_own_name) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  const Ended ran = shell("cd /usr/lib; echo word | KEPT=here " + tool + " --name " + name_ +
                          R"( exec b sh -c 'read line; echo $line $KEPT; pwd; hostname; exit 9')");
  EXPECT_EQ(ran.output, "word here\n/usr/lib\nb\n");
  EXPECT_EQ(ran.status, 9);
}

TEST_F(Hosts, become_the_command_so_that_signals_reach_it) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  EXPECT_EQ(shell("exec 2> /dev/null; " + tool + " --name " + name_ + " exec a sh -c 'kill -TERM $$'; echo $?").output,
            "143\n");
  EXPECT_EQ(
      shell("(echo $BASHPID; exec " + tool + " --name " + name_ + " exec a sh -c 'echo $$') | uniq | wc -l").output,
      "1\n");
}

TEST_F(Hosts, reach_each_other_by_name_and_see_only_their_own_network_and_shared_memory) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
  EXPECT_EQ(hosts("exec a ls /sys/class/net").output, "eth0\nlo\n");
  EXPECT_EQ(hosts("exec a sh -c 'touch /dev/shm/mine; ls /dev/shm'").output, "mine\n");
  EXPECT_EQ(hosts("exec a ls /dev/shm").output, "mine\n");
  EXPECT_EQ(hosts("exec b ls /dev/shm").output, "");
}

TEST_F(Hosts, leave_the_machines_own_network_and_mounts_as_they_are) {
  const std::string look = "ip -o link | wc -l; ip route; ip rule; wc -l < /proc/mounts; hostname; cat /etc/hosts";
  const std::string before = shell(look).output;
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  EXPECT_EQ(shell(look).output, before);
}

TEST_F(Hosts, keep_a_connection_through_a_cut_that_swallows_its_packets_without_a_word) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  const Ended check = link_check("cut", "a", "b");
  EXPECT_EQ(check.status, 0) << check.output;
}

TEST_F(Hosts, cut_one_link_and_no_other) {
  ASSERT_NO_FATAL_FAILURE(up(3));
  if (IsSkipped()) return;
  EXPECT_EQ(hosts("cut b a").status, 0);
  EXPECT_EQ(hosts("cut a b").status, 0);
  EXPECT_NE(hosts("status").output.find("a - b: cut"), std::string::npos);
  EXPECT_EQ(link_check("echo", "a", "c").status, 0);
  EXPECT_EQ(link_check("echo", "c", "b").status, 0);
  EXPECT_EQ(hosts("heal").status, 0);
  EXPECT_EQ(hosts("heal").status, 0);
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

// Below are bounds that no load of the machine can break: a link may be slower than was said, never faster.
TEST_F(Hosts, delay_both_ways_of_a_link_by_what_was_said) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  ASSERT_EQ(hosts("slow --delay-us 20000 a b").output, "");
  EXPECT_GE(std::stol("0" + link_check("round_trip", "a", "b").output), 40'000);
  ASSERT_EQ(hosts("slow --delay-us 0").output, "");
  EXPECT_EQ(hosts("status").output.find("later"), std::string::npos);
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

TEST_F(Hosts, pass_no_more_than_the_rate_of_a_link) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  ASSERT_EQ(hosts("slow --rate 100").output, "");
  // 2 MB at 12.5 MB/s, less the first 80 kB that a full bucket and one large segment let through.
  EXPECT_GE(std::stol("0" + link_check("stream", "a", "b").output), 150'000);
  ASSERT_EQ(hosts("slow --rate 0").output, "");
  EXPECT_EQ(link_check("stream", "b", "a").status, 0);
}

TEST_F(Hosts, may_be_made_twice_and_taken_away_twice) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  EXPECT_EQ(hosts("up 2").status, 0);
  EXPECT_EQ(hosts("up 3").status, 1);
  EXPECT_EQ(hosts("down").status, 0);
  EXPECT_EQ(hosts("status").status, 1);
  EXPECT_EQ(hosts("exec a true").status, 125);
}

TEST_F(Hosts, stand_beside_another_set_with_the_same_names_and_addresses) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  const std::string other = tool + " --name " + name_ + "-other ";
  ASSERT_EQ(shell(other + "up 2").output, "");
  EXPECT_EQ(shell(other + "cut a b").output, "");
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
  EXPECT_EQ(shell(other + "down").output, "");
  EXPECT_EQ(hosts("status").status, 0);
}

TEST_F(Hosts, end_what_still_runs_in_them_whatever_it_ignores) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  const std::string stubborn =
      hosts("exec a env -i sh -c " +
            std::string(R"('trap "" TERM HUP INT; setsid sleep 1000 > /dev/null 2>&1 & echo $!')"))
          .output;
  ASSERT_NE(stubborn, "");
  EXPECT_EQ(hosts("down").output, "");
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(std::stol(stubborn)) + "/exe"));
}

TEST_F(Hosts, that_lost_a_part_say_so_and_are_made_anew) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  const std::string running = hosts("exec b sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!'").output;
  const std::string holder = shell("grep -lz '^farsum-hosts:" + name_ + ":b$' /proc/[0-9]*/cmdline").output;
  ASSERT_EQ(holder.find("/proc/"), 0U) << holder;
  ASSERT_EQ(kill(std::stoi(holder.substr(6)), SIGKILL), 0);
  EXPECT_EQ(hosts("exec b true").status, 125);
  const Ended status = hosts("status");
  EXPECT_EQ(status.status, 1);
  EXPECT_NE(status.output.find("LOST"), std::string::npos) << status.output;
  EXPECT_EQ(hosts("up 2").output, "");
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(std::stol("0" + running)) + "/exe"));
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

TEST_F(Hosts, take_a_launchers_command_as_rsh_does) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  EXPECT_EQ(hosts("exec a " + agent + " -x -l somebody b 'hostname;' echo '$HOSTNAME'").output, "b\nb\n");
}

TEST_F(Hosts, are_hosts_to_the_launchers_of_mpich_and_open_mpi) {
  ASSERT_NO_FATAL_FAILURE(up());
  if (IsSkipped()) return;
  if (!installed("mpiexec.mpich") && !installed("mpirun.openmpi"))
    GTEST_SKIP() << "neither MPICH nor Open MPI is installed";
  if (installed("mpiexec.mpich")) {
    EXPECT_EQ(
        hosts("exec a mpiexec.mpich -launcher rsh -launcher-exec " + agent + " -hosts a:1,b:1 -n 2 hostname | sort")
            .output,
        "a\nb\n");
  }
  if (installed("mpirun.openmpi")) {
    EXPECT_EQ(hosts("exec a mpirun.openmpi --allow-run-as-root --bind-to none --mca plm_rsh_agent " + agent +
                    " --host a:1,b:1 -n 2 hostname | sort")
                  .output,
              "a\nb\n");
  }
}

TEST(HostsWithoutPermission, are_refused_with_the_status_of_a_skip_and_leave_nothing) {
  const std::string name = "test-refused-" + std::to_string(getpid());
  const std::string dropped = geteuid() == 0 ? "setpriv --bounding-set -sys_admin,-net_admin " : "";
  const Ended refused = shell(dropped + tool + " --name " + name + " up 2");
  EXPECT_EQ(refused.status, cannot_status) << refused.output;
  EXPECT_NE(refused.output, "");
  EXPECT_FALSE(std::filesystem::exists("/run/farsum-hosts/" + name));
}

TEST(HostsHelp, shows_an_example) {
  const Ended help = shell(tool + " --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.output.find("tools/hosts up 2\n"), std::string::npos);
}

}  // namespace
