// tools/hosts: what its hosts share and what not, its links, and that nothing stays behind. Without root, or where the
// kernel has no such namespaces, these are reported skips.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "shell.hpp"
#include "temporary_folder.hpp"

namespace farsum {
namespace {

using testing::HasSubstr;

constexpr int cannot_status = 77;  // as tools/hosts says it

const std::string tool = std::string(FARSUM_SOURCE_DIR) + "/tools/hosts";
const std::string agent = std::string(FARSUM_SOURCE_DIR) + "/tools/hosts_rsh";

using test::Ended;

// `timeout` is the watchdog of a host that does not answer. The command comes through the environment, so that it needs
// no quotes.
Ended shell(const std::string& command) {
  setenv("FARSUM_TEST_COMMAND", command.c_str(), 1);
  return test::shell("exec timeout 60 bash -c \"$FARSUM_TEST_COMMAND\"");
}

// The processes whose first word is this, one /proc/PID/cmdline a line.
std::string processes_named(const std::string& pattern) {
  return shell("grep -lz '^" + pattern + "' /proc/[0-9]*/cmdline 2> /dev/null").output;
}

int first_process(const std::string& processes) {
  const std::string folder = "/proc/";
  return processes.starts_with(folder) ? std::stoi(processes.substr(folder.size())) : -1;
}

bool runs(const std::string& process) {
  return std::filesystem::exists("/proc/" + std::to_string(std::stol("0" + process)) + "/exe");
}

void wait_for_end(int process) {
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (handle < 0) return;
  pollfd ended{.fd = handle, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ended, 1, 60'000), 1);
  close(handle);
}

// A process that is nobody's child here, as a user's shell would be; ended with the test.
class Owner {
 public:
  Owner() : process_(std::stoi(shell("sleep 1000 > /dev/null 2>&1 & echo $!").output)) {}
  ~Owner() { kill(process_, SIGKILL); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  int process() const { return process_; }

 private:
  int process_;
};

// Hosts under a name that no other test and no user has; they end with this process, should it be killed. They are
// noted where no other test's commands take away what is left of them.
class HostSet : public testing::Test {
 protected:
  HostSet() { setenv("FARSUM_HOSTS_FOLDER", folder_.path().c_str(), 1); }
  ~HostSet() override { unsetenv("FARSUM_HOSTS_FOLDER"); }

  // Behind it a test asks IsSkipped().
  void up(int count, int owner = getpid()) {
    const Ended made = hosts("up " + std::to_string(count) + " --owner " + std::to_string(owner));
    if (made.status == cannot_status) GTEST_SKIP() << made.output;
    ASSERT_EQ(made.status, 0) << made.output;
  }

  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_EQ(hosts("down").output, "");
    }
    expect_nothing_left();
  }

  void expect_nothing_left() const {
    EXPECT_FALSE(std::filesystem::exists(sets() / name_));
    EXPECT_EQ(processes_named("farsum-[a-z]*:" + name_ + "\\b"), "");
  }

  // What `up` does when it is killed at the worst time, all processes made and nothing noted: the first command that it
  // runs for the network kills it.
  Ended up_is_killed() const {
    return shell(
        "folder=$(mktemp -d) && cd $folder && echo -e '#!/bin/sh\nkill -KILL $PPID' > nsenter && chmod +x nsenter; "
        "PATH=$PWD:$PATH " +
        tool + " --name " + name_ + " up 2 --owner " + std::to_string(getpid()) +
        "; status=$?; rm -r $folder; exit $status");
  }

  Ended hosts(const std::string& words) const { return shell(tool + " --name " + name_ + " " + words); }

  Ended link_check(const std::string& what, const std::string& one, const std::string& other) const {
    return shell(std::string(FARSUM_SOURCE_DIR) + "/tests/hosts/link_check.py " + what + " " + tool + " " + name_ +
                 " " + one + " " + other);
  }

  std::filesystem::path sets() const { return folder_.path() / "farsum-hosts"; }

  TemporaryFolder folder_;
  std::string name_ = "test-" + std::to_string(getpid());
};

// Two of them.
class Hosts : public HostSet {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(up(2)); }
};

TEST_F(Hosts, run_a_command_with_the_callers_folder_environment_input_and_exit_status_under_their_own_name) {
  const Ended ran = shell("cd /usr/lib; echo word | KEPT=here " + tool + " --name " + name_ +
                          R"( exec b sh -c 'read line; echo $line $KEPT; pwd; hostname; exit 9')");
  EXPECT_EQ(ran.output, "word here\n/usr/lib\nb\n");
  EXPECT_EQ(ran.status, 9);
}

TEST_F(Hosts, become_the_command_so_that_signals_reach_it) {
  EXPECT_EQ(shell("exec 2> /dev/null; " + tool + " --name " + name_ + " exec a sh -c 'kill -TERM $$'; echo $?").output,
            "143\n");
  EXPECT_EQ(
      shell("(echo $BASHPID; exec " + tool + " --name " + name_ + " exec a sh -c 'echo $$') | uniq | wc -l").output,
      "1\n");
}

TEST_F(Hosts, reach_each_other_by_name_and_see_only_their_own_network_and_shared_memory) {
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
  EXPECT_EQ(hosts("exec a ls /sys/class/net").output, "eth0\nlo\n");
  EXPECT_EQ(hosts("exec a sh -c 'touch /dev/shm/mine; ls /dev/shm'").output, "mine\n");
  EXPECT_EQ(hosts("exec a ls /dev/shm").output, "mine\n");
  EXPECT_EQ(hosts("exec b ls /dev/shm").output, "");
}

TEST_F(HostSet, leave_the_machines_own_network_and_mounts_as_they_are) {
  const std::string look =
      "ip -br link; ip -br addr; ip -4 route show table all; ip rule; ip neigh show nud permanent; tc qdisc; bridge "
      "fdb; "
      "wc -l < /proc/mounts; hostname; cat /etc/hosts; stat -c '%d %i %a' /dev/shm; ls /sys/class/net";
  const std::string before = shell(look).output;
  ASSERT_NO_FATAL_FAILURE(up(2));
  if (IsSkipped()) return;
  EXPECT_EQ(shell(look).output, before);
  EXPECT_EQ(hosts("slow --delay-us 100 --rate 1000").output, "");
  EXPECT_EQ(hosts("cut a b").output, "");
  EXPECT_EQ(shell(look).output, before);
  EXPECT_EQ(hosts("down").output, "");
  EXPECT_EQ(shell(look).output, before);
}

TEST_F(Hosts, reach_each_other_on_a_machine_whose_own_network_has_their_addresses) {
  const std::string machine =
      "ip link add name mine type veth peer name other; ip addr add 10.77.0.1/24 dev mine; ip link set mine up; ";
  const std::string check =
      std::string(FARSUM_SOURCE_DIR) + "/tests/hosts/link_check.py echo " + tool + " " + name_ + " a b; ";
  EXPECT_EQ(hosts("down").output, "");
  const Ended there = shell("unshare --net bash -ec \"" + machine + tool + " --name " + name_ + " up 2; " + check +
                            "ip -br -4 addr show dev mine\"");
  EXPECT_EQ(there.status, 0) << there.output;
  EXPECT_THAT(there.output, HasSubstr("10.77.0.1/24"));
  EXPECT_THAT(there.output, testing::Not(HasSubstr("10.77.0.2")));
}

// In make test-all: a link is cut for seconds.
TEST_F(Hosts, keep_a_connection_through_a_cut_that_swallows_its_packets_without_a_word) {
  const Ended check = link_check("cut", "a", "b");
  EXPECT_EQ(check.status, 0) << check.output;
}

// In make test-all: a link is cut for seconds.
TEST_F(Hosts, cut_a_delayed_link_as_well) {
  ASSERT_EQ(hosts("slow --delay-us 1000").output, "");
  const Ended check = link_check("cut", "a", "b");
  EXPECT_EQ(check.status, 0) << check.output;
}

TEST_F(HostSet, cut_one_link_and_no_other) {
  ASSERT_NO_FATAL_FAILURE(up(3));
  if (IsSkipped()) return;
  EXPECT_EQ(hosts("cut b a").status, 0);
  EXPECT_EQ(hosts("cut a b").status, 0);
  EXPECT_THAT(hosts("status").output, HasSubstr("a - b: cut"));
  EXPECT_EQ(link_check("echo", "a", "c").status, 0);
  EXPECT_EQ(link_check("echo", "c", "b").status, 0);
  EXPECT_EQ(hosts("heal").status, 0);
  EXPECT_EQ(hosts("heal").status, 0);
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

// Below are bounds that no load of the machine can break: a link may be slower than was said, never faster.
// Takes seconds: messages are delayed.
TEST_F(Hosts, delay_both_ways_of_a_link_by_what_was_said) {
  ASSERT_EQ(hosts("slow --delay-us 20000 a b").output, "");
  EXPECT_GE(std::stol("0" + link_check("round_trip", "a", "b").output), 40'000);
  ASSERT_EQ(hosts("slow --delay-us 60000").output, "");
  EXPECT_GE(std::stol("0" + link_check("round_trip", "b", "a").output), 120'000);
  ASSERT_EQ(hosts("slow --delay-us 0").output, "");
  EXPECT_THAT(hosts("status").output, testing::Not(HasSubstr("later")));
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

class HostsWithRate : public Hosts {
 protected:
  void pass_no_more_than(const std::string& how) const {
    ASSERT_EQ(hosts("slow --rate 100" + how).output, "");
    // 2 MB at 12.5 MB/s, less the first 80 kB that a full bucket and one large segment let through.
    EXPECT_GE(std::stol("0" + link_check("stream", "a", "b").output), 150'000);
  }
};

TEST_F(HostsWithRate, pass_no_more_than_it) {
  pass_no_more_than("");
  ASSERT_EQ(hosts("slow --rate 0").output, "");
  EXPECT_EQ(link_check("stream", "b", "a").status, 0);
}

// Takes seconds: a limited link is filled.
TEST_F(HostsWithRate, pass_no_more_than_it_where_the_relay_limits_it) {
  pass_no_more_than(" --relay");
  EXPECT_THAT(hosts("status").output, HasSubstr("at most 100 Mbit/s (relay)"));
  ASSERT_EQ(hosts("slow --rate 1000").output, "");
  EXPECT_THAT(hosts("status").output, testing::Not(HasSubstr("relay")));
  EXPECT_EQ(link_check("stream", "b", "a").status, 0);
}

TEST_F(Hosts, go_on_after_their_relay_was_killed) {
  ASSERT_EQ(hosts("slow --delay-us 100").output, "");
  const int relay = first_process(processes_named("farsum-relay:" + name_ + "$"));
  ASSERT_GT(relay, 0);
  ASSERT_EQ(kill(relay, SIGKILL), 0);
  wait_for_end(relay);
  EXPECT_THAT(hosts("status").output, HasSubstr("relay was killed"));
  EXPECT_EQ(hosts("slow --delay-us 200").output, "");
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

TEST_F(Hosts, may_be_made_twice_and_taken_away_twice) {
  EXPECT_EQ(hosts("up 2").status, 0);
  EXPECT_EQ(hosts("up 3").status, 1);
  EXPECT_EQ(hosts("down").status, 0);
  EXPECT_EQ(hosts("status").status, 1);
  EXPECT_EQ(hosts("exec a true").status, 125);
}

TEST_F(Hosts, stand_beside_another_set_with_the_same_names_and_addresses) {
  const std::string other = tool + " --name " + name_ + "-other ";
  ASSERT_EQ(shell(other + "up 2").output, "");
  EXPECT_EQ(shell(other + "cut a b").output, "");
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
  EXPECT_EQ(shell(other + "down").output, "");
  EXPECT_EQ(hosts("status").status, 0);
}

TEST_F(Hosts, end_what_still_runs_in_them_whatever_it_ignores) {
  const std::string stubborn =
      hosts("exec a env -i sh -c " +
            std::string(R"('trap "" TERM HUP INT; setsid sleep 1000 > /dev/null 2>&1 & echo $!')"))
          .output;
  ASSERT_NE(stubborn, "");
  EXPECT_EQ(hosts("down").output, "");
  EXPECT_FALSE(runs(stubborn));
}

TEST_F(Hosts, that_lost_a_part_say_so_and_are_made_anew) {
  const std::string running = hosts("exec b sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!'").output;
  const int holder = first_process(processes_named("farsum-hosts:" + name_ + ":b$"));
  ASSERT_GT(holder, 0);
  ASSERT_EQ(kill(holder, SIGKILL), 0);
  wait_for_end(holder);
  EXPECT_EQ(hosts("exec b true").status, 125);
  const Ended status = hosts("status");
  EXPECT_EQ(status.status, 1);
  EXPECT_THAT(status.output, HasSubstr("LOST"));
  EXPECT_EQ(hosts("up 2").output, "");
  EXPECT_FALSE(runs(running));
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

TEST_F(Hosts, that_a_killed_up_left_half_made_are_made_anew) {
  EXPECT_EQ(hosts("down").output, "");
  EXPECT_EQ(up_is_killed().status, 128 + SIGKILL);
  EXPECT_NE(processes_named("farsum-hosts:" + name_ + ":"), "");
  EXPECT_EQ(hosts("exec a true").status, 125);
  EXPECT_EQ(hosts("up 2").output, "");
  EXPECT_EQ(link_check("echo", "a", "b").status, 0);
}

TEST_F(Hosts, that_a_killed_up_left_half_made_go_with_the_next_up_of_another_name) {
  EXPECT_EQ(hosts("down").output, "");
  EXPECT_EQ(up_is_killed().status, 128 + SIGKILL);
  const std::string other = tool + " --name other-" + name_;
  EXPECT_EQ(shell(other + " up 1; " + other + " down").output, "");
  expect_nothing_left();
}

TEST_F(HostSet, end_with_their_owner_however_it_ends) {
  const Owner owner;
  ASSERT_NO_FATAL_FAILURE(up(2, owner.process()));
  if (IsSkipped()) return;
  const std::string running = hosts("exec b sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!'").output;
  const int watcher = first_process(processes_named("farsum-owner:" + name_ + "$"));
  ASSERT_GT(watcher, 0);
  EXPECT_EQ(hosts("up 2 --owner " + std::to_string(getpid())).status, 1);
  ASSERT_EQ(kill(owner.process(), SIGKILL), 0);
  wait_for_end(watcher);
  expect_nothing_left();
  EXPECT_FALSE(runs(running));
}

TEST_F(HostSet, whose_owner_and_its_watcher_were_killed_go_with_the_next_down_of_another_name) {
  const Owner owner;
  ASSERT_NO_FATAL_FAILURE(up(2, owner.process()));
  if (IsSkipped()) return;
  const int watcher = first_process(processes_named("farsum-owner:" + name_ + "$"));
  ASSERT_GT(watcher, 0);
  for (const int process : {watcher, owner.process()}) {
    ASSERT_EQ(kill(process, SIGKILL), 0);
    wait_for_end(process);
  }
  EXPECT_EQ(shell(tool + " --name other-" + name_ + " down").output, "");
  expect_nothing_left();
}

TEST_F(Hosts, describe_themselves_as_json) {
  EXPECT_EQ(hosts("cut a b; " + tool + " --name " + name_ + " slow --rate 50").output, "");
  const nlohmann::json whole = nlohmann::json::parse(hosts("status --json").output);
  EXPECT_EQ(whole["whole"], true);
  EXPECT_EQ(whole["owner"], getpid());
  EXPECT_EQ(whole["hosts"][1]["name"], "b");
  EXPECT_EQ(whole["hosts"][1]["address"], "10.77.0.2");
  EXPECT_EQ(whole["links"][0]["between"], nlohmann::json({"a", "b"}));
  EXPECT_EQ(whole["links"][0]["cut"], true);
  EXPECT_EQ(whole["links"][0]["rate_mbit"], 50);
  EXPECT_EQ(hosts("down").output, "");
  EXPECT_EQ(nlohmann::json::parse(hosts("status --json 2> /dev/null").output)["whole"], false);
}

TEST_F(Hosts, say_what_would_be_right) {
  EXPECT_THAT(hosts("exec c true").output, HasSubstr("there are a, b"));
  EXPECT_THAT(hosts("cut a a").output, HasSubstr("there are a, b"));
  EXPECT_THAT(hosts("heal a").output, HasSubstr("HOST HOST"));
  EXPECT_THAT(hosts("slow --rate -1").output, HasSubstr("from 0 to"));
  EXPECT_THAT(hosts("up 3").output, HasSubstr("tools/hosts down"));
  EXPECT_THAT(hosts("up 27").output, HasSubstr("1 to 26"));
  EXPECT_THAT(hosts("launcher lam").output, HasSubstr("tools/mpi_libraries"));
  EXPECT_THAT(shell(tool + " --name x" + name_ + " exec a true").output, HasSubstr(name_));
  EXPECT_THAT(shell(tool + " --name ../x up 1").output, HasSubstr("letters, digits"));
}

// What a remote shell does not hand over must not come over by accident here: it would hide what is lost between
// machines.
TEST_F(Hosts, take_a_launchers_command_as_a_remote_shell_does) {
  EXPECT_EQ(hosts("exec a env LOST=here " + agent + " -x -l somebody b 'hostname;' echo '$HOSTNAME$LOST'").output,
            "b\nb\n");
  EXPECT_EQ(hosts("exec a " + agent + " b pwd").output, shell("cd; pwd").output);
}

class HostsWithMpi : public Hosts, public testing::WithParamInterface<std::string> {};

// In make test-all: launchers of other libraries.
TEST_P(HostsWithMpi, are_two_nodes_to_its_launcher_and_its_ranks) {
  const Ended ran = shell(std::string(FARSUM_SOURCE_DIR) + "/tests/hosts/mpi_start.py " + tool + " " + name_ + " " +
                          GetParam() + " 1");
  if (ran.status == cannot_status) GTEST_SKIP() << ran.output;
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, HasSubstr("a b 1\n"));  // beside what a launcher says about itself
}

INSTANTIATE_TEST_SUITE_P(Library, HostsWithMpi, testing::Values("mpich", "openmpi", "mpich5", "openmpi5", "impi"),
                         [](const auto& library) { return library.param; });

TEST(HostsWithoutPermission, are_refused_with_the_status_of_a_skip_and_leave_nothing) {
  const std::string name = "test-refused-" + std::to_string(getpid());
  const std::string dropped = geteuid() == 0 ? "setpriv --bounding-set -sys_admin,-net_admin " : "";
  const TemporaryFolder folder;
  const Ended refused = shell("export FARSUM_HOSTS_FOLDER=" + folder.path().string() + "; " + dropped + tool +
                              " --name " + name + " up 2");
  EXPECT_EQ(refused.status, cannot_status) << refused.output;
  EXPECT_NE(refused.output, "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(HostsWithoutPermission, say_that_they_need_root) {
  if (geteuid() == 0 && shell("setpriv --reuid 65534 --clear-groups test -r " + tool).status != 0)
    GTEST_SKIP() << "another user cannot read " << tool;
  const Ended refused = shell((geteuid() == 0 ? "setpriv --reuid 65534 --clear-groups " : "") + tool + " up 2");
  EXPECT_EQ(refused.status, cannot_status);
  EXPECT_THAT(refused.output, HasSubstr("need root"));
}

class HostsHelp : public testing::TestWithParam<std::string> {};

TEST_P(HostsHelp, shows_an_example) {
  const Ended help = shell(tool + " " + GetParam() + " --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("example:\n  tools/hosts "));
}

INSTANTIATE_TEST_SUITE_P(Command, HostsHelp,
                         testing::Values("", "up", "exec", "rsh", "launcher", "cut", "heal", "slow", "status", "down"));

}  // namespace
}  // namespace farsum
