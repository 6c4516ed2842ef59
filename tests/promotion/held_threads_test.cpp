#include "promotion/held_threads.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/attach.hpp"
#include "os/own_map.hpp"
#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

void do_nothing(void*) {}

// Calls `work` as HeldWork; what it does has to keep to the rules of that.
template <class Work>
std::string hold(Work work, const HoldRules& rules = {}) {
  return run_with_threads_held([](void* argument) { (*static_cast<Work*>(argument))(); }, &work, rules);
}

std::string hold(const HoldRules& rules) { return run_with_threads_held(&do_nothing, nullptr, rules); }

std::string hold() { return hold(HoldRules{}); }

// A thread that says its number and runs until it is told to leave.
class Companion {
 public:
  explicit Companion(std::function<void(const std::atomic<bool>& leave)> body)
      : thread_([this, body = std::move(body)] {
          id_.set_value(gettid());
          body(leave_);
        }) {
    thread_id_ = id_.get_future().get();
  }
  ~Companion() { leave(); }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  pid_t id() const { return thread_id_; }
  void leave() {
    leave_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::promise<pid_t> id_;
  std::atomic<bool> leave_{false};
  pid_t thread_id_ = 0;
  std::thread thread_;
};

void yield_until(const std::atomic<bool>& leave) {
  while (!leave) std::this_thread::yield();
}

// Waits until the thread is asleep in the kernel: only then is what it waits in what the test is about.
void await_sleep(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  for (char state = '?'; state != 'S';) {
    std::array<char, 256> text{};
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = read(fd, text.data(), text.size() - 1);
    close(fd);
    const std::string line(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    const std::size_t bracket = line.rfind(')');
    state = bracket == std::string::npos ? 'S' : line[bracket + 2];
    std::this_thread::yield();
  }
}

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

class HeldThreads : public testing::Test {
 protected:
  void SetUp() override {
    const Companion one(&yield_until);
    const std::string reason = hold();
    if (!reason.empty()) GTEST_SKIP() << "no thread can be held here: " << reason;
  }
};

constexpr int rounds = 200;

// Takes seconds: threads are held again and again.
TEST_F(HeldThreads, do_nothing_while_the_work_runs_and_go_on_afterwards) {
  std::array<std::atomic<std::uint64_t>, 3> counts{};
  std::vector<std::unique_ptr<Companion>> companions;
  for (auto& count : counts) {
    companions.push_back(std::make_unique<Companion>([&count](const std::atomic<bool>& leave) {
      while (!leave) count.fetch_add(1);
    }));
  }
  for (auto& count : counts) {
    while (count == 0) std::this_thread::yield();
  }
  for (int round = 0; round < rounds; ++round) {
    bool has_changed = false;
    ASSERT_EQ(hold([&] {
                std::array<std::uint64_t, 3> before{};
                for (std::size_t i = 0; i < counts.size(); ++i) before[i] = counts[i];
                for (int look = 0; look < 20; ++look) raw_call(SYS_sched_yield);
                for (std::size_t i = 0; i < counts.size(); ++i) has_changed = has_changed || counts[i] != before[i];
              }),
              "");
    ASSERT_FALSE(has_changed) << "round " << round;
  }
  for (auto& count : counts) {
    const std::uint64_t before = count;
    while (count == before) std::this_thread::yield();
  }
}

TEST_F(HeldThreads, run_on_where_they_are_left_alone) {
  std::atomic<std::uint64_t> count{0};
  const Companion companion([&](const std::atomic<bool>& leave) {
    while (!leave) count.fetch_add(1);
  });
  const std::array<pid_t, 1> left_alone{companion.id()};
  EXPECT_EQ(hold(
                [&] {
                  for (const std::uint64_t before = count; count == before;) raw_call(SYS_sched_yield);
                },
                {.left_alone = left_alone}),
            "");
}

TEST_F(HeldThreads, may_be_none) {
  bool has_run = false;
  EXPECT_EQ(hold([&] { has_run = true; }), "");
  EXPECT_TRUE(has_run);
}

// Two helpers would each find threads that the other traces, and callers that wait in vfork for theirs.
TEST_F(HeldThreads, of_several_callers_at_once_are_held_for_each_in_turn) {
  constexpr int callers = 3, times = 20;
  int done = 0;  // by helpers only, while nothing else runs
  std::array<std::vector<std::string>, callers> answers;
  std::vector<std::thread> threads;
  for (auto& of_caller : answers) {
    threads.emplace_back([&] {
      for (int i = 0; i < times; ++i) of_caller.push_back(hold([&] { ++done; }));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_caller : answers) EXPECT_EQ(of_caller, std::vector<std::string>(times));
  EXPECT_EQ(done, callers * times);
}

TEST_F(HeldThreads, that_end_and_begin_all_the_time_are_all_held) {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<bool> leave{false};
  std::atomic<int> alive{0};
  std::function<void()> be_one;
  const auto begin_one = [&] {
    alive.fetch_add(1);
    std::thread(be_one).detach();
  };
  // Each makes the next and ends, so that there is always one that the list did not show.
  be_one = [&] {
    begun.fetch_add(1);
    if (!leave) begin_one();
    begun.fetch_add(1);
    alive.fetch_sub(1);
  };
  const std::size_t before_all = threads_of_this_process();
  // The last ones end by themselves; until then they use what is on this stack.
  const struct Ending {
    std::atomic<bool>& leave;
    const std::atomic<int>& alive;
    std::size_t others;
    ~Ending() {
      leave = true;
      while (alive.load() != 0 || threads_of_this_process() > others) std::this_thread::yield();
    }
  } ending{leave, alive, before_all};
  for (int chains = 0; chains < 2; ++chains) begin_one();
  int held = 0;
  for (int round = 0; round < rounds; ++round) {
    bool has_changed = false;
    const std::string reason = hold([&] {
      const std::uint64_t before = begun;
      for (int look = 0; look < 20; ++look) raw_call(SYS_sched_yield);
      has_changed = begun != before;
    });
    ASSERT_TRUE(reason.empty() || reason == "new ones keep coming") << reason;
    ASSERT_FALSE(has_changed);
    held += reason.empty() ? 1 : 0;
  }
  EXPECT_GT(held, 0);
}

// ---- calls that wait ----

TEST_F(HeldThreads, that_wait_for_a_mutex_or_a_condition_come_back_right) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  mutex.lock();
  Companion locking([&](const std::atomic<bool>&) {
    const std::lock_guard guard(mutex);
    turn += 10;
  });
  Companion waiting([&](const std::atomic<bool>&) {
    std::unique_lock guard(mutex);
    changed.wait_for(guard, std::chrono::hours(1), [&] { return turn == 11; });
    turn += 100;
  });
  await_sleep(locking.id());
  await_sleep(waiting.id());
  for (int round = 0; round < rounds; ++round) ASSERT_EQ(hold(), "");
  mutex.unlock();
  locking.join();
  {
    const std::lock_guard guard(mutex);
    turn += 1;
  }
  changed.notify_all();
  waiting.join();
  EXPECT_EQ(turn, 111);
}

struct Wait {
  const char* name;
  // Waits for something to come through `from`, and says whether that is what happened.
  bool (*wait)(int from);
};

void PrintTo(const Wait& wait, std::ostream* stream) { *stream << wait.name; }

class HeldWait : public testing::TestWithParam<Wait> {};

bool wait_by_epoll(int from, bool with_mask) {
  const int group = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}};
  epoll_ctl(group, EPOLL_CTL_ADD, from, &event);
  epoll_event found{};
  sigset_t none;
  sigemptyset(&none);
  const int count = with_mask ? epoll_pwait(group, &found, 1, -1, &none) : epoll_wait(group, &found, 1, -1);
  const int error_number = errno;
  close(group);
  // With a mask a signal may be what the program waits for: the kernel's answer stands.
  return (count == 1 && found.data.u64 == 7) || (with_mask && count == -1 && error_number == EINTR);
}

bool wait_by_fine_epoll(int from) {
  const int group = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 7}};
  epoll_ctl(group, EPOLL_CTL_ADD, from, &event);
  const timespec limit{3600, 0};
  epoll_event found{};
  constexpr long epoll_pwait2_call = 441;
  const long count = syscall(epoll_pwait2_call, group, &found, 1, &limit, nullptr, 0);
  // Kernels before 5.11 do not have it; what it waits for comes all the same.
  if (count < 0 && errno == ENOSYS) return wait_by_epoll(from, false);
  close(group);
  return count == 1 && found.data.u64 == 7;
}

INSTANTIATE_TEST_SUITE_P(calls, HeldWait,
                         testing::Values(Wait{"read",
                                              [](int from) {
                                                std::uint64_t value = 0;
                                                return read(from, &value, sizeof value) == sizeof value && value == 5;
                                              }},
                                         Wait{"poll",
                                              [](int from) {
                                                pollfd query{.fd = from, .events = POLLIN, .revents = 0};
                                                return poll(&query, 1, -1) == 1 && query.revents == POLLIN;
                                              }},
                                         Wait{"poll_with_time_limit",
                                              [](int from) {
                                                pollfd query{.fd = from, .events = POLLIN, .revents = 0};
                                                return poll(&query, 1, 1'000'000'000) == 1;
                                              }},
                                         Wait{"select",
                                              [](int from) {
                                                fd_set set;
                                                FD_ZERO(&set);
                                                FD_SET(from, &set);
                                                return select(from + 1, &set, nullptr, nullptr, nullptr) == 1;
                                              }},
                                         Wait{"epoll", [](int from) { return wait_by_epoll(from, false); }},
                                         Wait{"epoll_with_fine_time_limit", &wait_by_fine_epoll},
                                         Wait{"epoll_with_mask", [](int from) { return wait_by_epoll(from, true); }}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

TEST_P(HeldWait, comes_back_right) {
  const int event = eventfd(0, EFD_CLOEXEC);
  bool is_right = false;
  Companion waiting([&](const std::atomic<bool>&) { is_right = GetParam().wait(event); });
  await_sleep(waiting.id());
  const std::string reason = hold();
  for (int round = 1; round < rounds; ++round) EXPECT_EQ(hold(), reason);
  const std::uint64_t five = 5;
  EXPECT_EQ(write(event, &five, sizeof five), static_cast<ssize_t>(sizeof five));
  waiting.join();
  close(event);
  if (!reason.empty()) GTEST_SKIP() << "no thread can be held here: " << reason;
  EXPECT_TRUE(is_right);
}

TEST_F(HeldThreads, that_wait_for_a_signal_get_it) {
  const int number = SIGRTMIN + 4;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_BLOCK, &only, nullptr);
  int without_limit = 0;
  int within_limit = 0;
  Companion first([&](const std::atomic<bool>&) { without_limit = sigwaitinfo(&only, nullptr); });
  Companion second([&](const std::atomic<bool>&) {
    const timespec limit{3600, 0};
    within_limit = sigtimedwait(&only, nullptr, &limit);
  });
  await_sleep(first.id());
  await_sleep(second.id());
  for (int round = 0; round < rounds; ++round) ASSERT_EQ(hold(), "");
  for (const pid_t thread : {first.id(), second.id()}) tgkill(getpid(), thread, number);
  first.join();
  second.join();
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  EXPECT_EQ(without_limit, number);
  EXPECT_EQ(within_limit, number);
}

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0); }
  ~SocketPair() {
    for (const int end : ends_) close(end);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  int operator[](std::size_t i) const { return ends_[i]; }

 private:
  std::array<int, 2> ends_{};
};

TEST_F(HeldThreads, that_wait_at_a_socket_with_a_time_limit_come_back_right) {
  const SocketPair received;
  const SocketPair read_from;
  for (const SocketPair* pair : {&received, &read_from}) {
    const timeval limit{3600, 0};
    ASSERT_EQ(setsockopt((*pair)[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  }
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{3600, 0};
  ASSERT_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // the kernel chooses a name
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  socklen_t length = sizeof address;
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  std::array<ssize_t, 3> results{};
  std::vector<std::unique_ptr<Companion>> companions;
  companions.push_back(std::make_unique<Companion>([&](const std::atomic<bool>&) {
    char byte = 0;
    results[0] = recv(received[1], &byte, 1, 0);
  }));
  companions.push_back(std::make_unique<Companion>([&](const std::atomic<bool>&) {
    char byte = 0;
    results[1] = read(read_from[1], &byte, 1);
  }));
  companions.push_back(std::make_unique<Companion>([&](const std::atomic<bool>&) {
    const int accepted = accept(listener, nullptr, nullptr);
    results[2] = accepted < 0 ? -1 : 1;
    close(accepted);
  }));
  for (const auto& companion : companions) await_sleep(companion->id());
  for (int round = 0; round < rounds; ++round) ASSERT_EQ(hold(), "");
  EXPECT_EQ(send(received[0], "x", 1, 0), 1);
  EXPECT_EQ(send(read_from[0], "x", 1, 0), 1);
  const int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(caller, reinterpret_cast<sockaddr*>(&address), length), 0);
  for (const auto& companion : companions) companion->join();
  EXPECT_EQ(results, (std::array<ssize_t, 3>{1, 1, 1}));
  close(caller);
  close(listener);
}

// ---- transfers that would be cut short ----

std::string in_transfer(const Companion& companion) {
  return "thread " + std::to_string(companion.id()) + " is in a transfer that would be cut short";
}

TEST_F(HeldThreads, are_not_stopped_while_one_waits_amid_a_write) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const std::vector<char> data(std::size_t{1} << 20, 'x');
  ssize_t written = 0;
  Companion writing([&](const std::atomic<bool>&) { written = write(ends[1], data.data(), data.size()); });
  await_sleep(writing.id());
  bool has_run = false;
  EXPECT_EQ(hold([&] { has_run = true; }), in_transfer(writing));
  EXPECT_FALSE(has_run);
  std::vector<char> read_back(data.size());
  for (std::size_t at = 0; at < data.size();) {
    const ssize_t bytes = read(ends[0], read_back.data() + at, data.size() - at);
    ASSERT_GT(bytes, 0);
    at += static_cast<std::size_t>(bytes);
  }
  writing.join();
  EXPECT_EQ(written, static_cast<ssize_t>(data.size()));
  EXPECT_EQ(hold(), "");
  for (const int end : ends) close(end);
}

TEST_F(HeldThreads, are_not_stopped_while_one_waits_to_receive_all) {
  const SocketPair pair;
  ssize_t received = 0;
  Companion receiving([&](const std::atomic<bool>&) {
    std::array<char, 1000> data{};
    received = recv(pair[1], data.data(), data.size(), MSG_WAITALL);
  });
  const std::array<char, 500> half{};
  EXPECT_EQ(send(pair[0], half.data(), half.size(), 0), 500);
  for (int left = 1; left != 0;) ioctl(pair[1], FIONREAD, &left);
  await_sleep(receiving.id());
  EXPECT_EQ(hold(), in_transfer(receiving));
  EXPECT_EQ(send(pair[0], half.data(), half.size(), 0), 500);
  receiving.join();
  EXPECT_EQ(received, 1000);
  EXPECT_EQ(hold(), "");
}

// ---- signals ----

std::atomic<int> signals_seen{0};
std::atomic<int> sum_of_values{0};

void count_signal(int, siginfo_t* info, void*) {
  signals_seen.fetch_add(1);
  sum_of_values.fetch_add(info->si_value.sival_int);
}

class CountedSignal {
 public:
  explicit CountedSignal(int number) : number_(number) {
    signals_seen = 0;
    sum_of_values = 0;
    struct sigaction action {};
    action.sa_sigaction = &count_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(number, &action, &before_);
  }
  ~CountedSignal() { sigaction(number_, &before_, nullptr); }
  CountedSignal(const CountedSignal&) = delete;
  CountedSignal& operator=(const CountedSignal&) = delete;

 private:
  int number_;
  struct sigaction before_ {};
};

// Takes seconds: threads are held again and again.
TEST_F(HeldThreads, get_a_signal_that_was_sent_meanwhile) {
  const CountedSignal counted(SIGUSR1);
  const Companion companion(&yield_until);
  const pid_t process = getpid();
  for (int round = 1; round <= rounds; ++round) {
    int seen_meanwhile = 0;
    ASSERT_EQ(hold([&] {
                raw_call(SYS_tgkill, process, companion.id(), SIGUSR1);
                for (int look = 0; look < 20; ++look) raw_call(SYS_sched_yield);
                seen_meanwhile = signals_seen;
              }),
              "");
    EXPECT_EQ(seen_meanwhile, round - 1);
    while (signals_seen < round) std::this_thread::yield();
  }
}

TEST_F(HeldThreads, lose_no_signal_and_nothing_that_came_with_it) {
  const int number = SIGRTMIN + 3;
  const CountedSignal counted(number);
  const Companion running(&yield_until);
  const Companion sleeping([](const std::atomic<bool>& leave) {
    while (!leave) poll(nullptr, 0, 1);
  });
  constexpr int signals = 5000;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  pthread_sigmask(SIG_BLOCK, &only, nullptr);  // the companions are to take them
  const pid_t sender = fork();
  if (sender == 0) {
    for (int i = 1; i <= signals; ++i) {
      while (sigqueue(getppid(), number, {.sival_int = i}) != 0) sched_yield();
      if (i % 8 == 0) sched_yield();
    }
    _exit(0);
  }
  std::string reason;
  while (signals_seen < signals && reason.empty()) reason = hold();
  EXPECT_EQ(reason, "");
  int status = 0;
  waitpid(sender, &status, 0);
  while (signals_seen < signals) std::this_thread::yield();
  EXPECT_EQ(sum_of_values, signals * (signals + 1) / 2);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

TEST_F(HeldThreads, of_a_process_that_is_stopped_and_continued_are_held_all_the_same) {
  EXPECT_EQ(run_in_child([] {
              const Companion running(&yield_until);
              const Companion sleeping([](const std::atomic<bool>& leave) {
                while (!leave) poll(nullptr, 0, 1);
              });
              const pid_t parent = getpid();
              const pid_t sender = fork();
              if (sender == 0) {
                for (int i = 0; i < 500; ++i) {
                  kill(parent, SIGSTOP);
                  sched_yield();
                  kill(parent, SIGCONT);
                  sched_yield();
                }
                _exit(0);
              }
              int failed = 0;
              while (waitpid(sender, nullptr, WNOHANG) == 0) failed += hold().empty() ? 0 : 1;
              return failed == 0 ? 0 : 1;
            }),
            0);
}

// ---- children ----

TEST_F(HeldThreads, of_a_program_that_waits_for_any_child_see_none) {
  const CountedSignal counted(SIGCHLD);
  std::atomic<int> strangers{0};
  {
    const Companion companion([&](const std::atomic<bool>& leave) {
      while (!leave) strangers += waitpid(-1, nullptr, 0) > 0 || errno != ECHILD ? 1 : 0;
    });
    for (int round = 0; round < rounds; ++round) ASSERT_EQ(hold(), "");
  }
  EXPECT_EQ(strangers, 0);
  EXPECT_EQ(signals_seen, 0);
  // And one of its own is found while threads are held again and again.
  std::atomic<bool> was_reaped{false};
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(23);
  Companion reaping([&](const std::atomic<bool>&) { was_reaped = waitpid(-1, &status, 0) == child; });
  for (int round = 0; round < rounds; ++round) ASSERT_EQ(hold(), "");
  reaping.join();
  EXPECT_TRUE(was_reaped);
  EXPECT_EQ(WEXITSTATUS(status), 23);
}

TEST_F(HeldThreads, that_fork_meanwhile_make_whole_children) {
  std::atomic<int> failed{0};
  std::atomic<int> made{0};
  {
    const Companion forking([&](const std::atomic<bool>& leave) {
      while (!leave) {
        failed += run_in_child([] { return 0; }) == 0 ? 0 : 1;
        ++made;
      }
    });
    for (int round = 0; round < rounds || made < 20; ++round) ASSERT_EQ(hold(), "");
  }
  EXPECT_EQ(failed, 0);
}

TEST_F(HeldThreads, leave_no_map_and_no_descriptor_and_no_process_behind) {
  const Companion companion(&yield_until);
  const auto count_maps = [] {
    std::ifstream file("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  ASSERT_EQ(hold(), "");
  const auto maps = count_maps();
  const int next = dup(0);
  close(next);
  for (int round = 0; round < rounds; ++round) ASSERT_EQ(hold(), "");
  EXPECT_EQ(count_maps(), maps);
  const int after = dup(0);
  close(after);
  EXPECT_EQ(after, next);
  EXPECT_EQ(waitpid(-1, nullptr, __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
}

// The one who attaches and the one inside exec would wait for each other without end.
// Takes seconds: a program is started again and again.
TEST_F(HeldThreads, of_a_program_that_calls_exec_meanwhile_do_not_hang) {
  for (int round = 0; round < 12; ++round) {
    EXPECT_EQ(run_in_child([round] {
                std::atomic<bool> go{false};
                std::vector<std::unique_ptr<Companion>> idle;
                for (int i = 0; i < 60; ++i) {
                  idle.push_back(std::make_unique<Companion>([](const std::atomic<bool>&) {
                    for (;;) pause();
                  }));
                }
                const Companion leaving([&go, round](const std::atomic<bool>&) {
                  while (!go) {
                  }
                  for (int look = 0; look < round * 20; ++look) raw_call(SYS_sched_yield);
                  execl("/bin/true", "true", nullptr);
                  _exit(1);
                });
                go = true;
                for (;;) (void)hold({.left_alone = {}, .patience = std::chrono::milliseconds(100)});
                return 1;
              }),
              0);
  }
}

TEST_F(HeldThreads, of_a_process_in_many_groups_are_held) {
  const int status = run_in_child([] {
    std::vector<gid_t> groups;
    for (gid_t group = 1'000'000; group < 1'000'500; ++group) groups.push_back(group);
    if (setgroups(groups.size(), groups.data()) != 0) return 77;
    const Companion companion(&yield_until);
    return hold().empty() ? 0 : 1;
  });
  if (status == 77) GTEST_SKIP() << "this process may not change its groups";
  EXPECT_EQ(status, 0);
}

// ---- refusals ----

// A child that traces a thread of this process for as long as `body` runs. 77 where it may not.
template <class Body>
int while_traced(pid_t thread, Body body) {
  std::array<int, 2> ready{};
  std::array<int, 2> over{};
  if (pipe(ready.data()) != 0 || pipe(over.data()) != 0) return 1;
  const pid_t tracer = fork();
  if (tracer == 0) {
    close(over[1]);
    const char said = ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 ? 'y' : 'n';
    char byte = 0;
    [[maybe_unused]] const ssize_t told = write(ready[1], &said, 1);
    [[maybe_unused]] const ssize_t ended = read(over[0], &byte, 1);
    _exit(0);
  }
  char said = 'n';
  const bool traces = read(ready[0], &said, 1) == 1 && said == 'y';
  if (traces) body(tracer);
  for (const int fd : {ready[0], ready[1], over[0], over[1]}) close(fd);
  waitpid(tracer, nullptr, 0);
  return traces ? 0 : 77;
}

TEST_F(HeldThreads, are_refused_to_a_process_that_is_traced) {
  const Companion companion(&yield_until);
  const int status = while_traced(
      gettid(), [&](pid_t tracer) { EXPECT_EQ(hold(), "process " + std::to_string(tracer) + " traces this one"); });
  if (status == 77) GTEST_SKIP() << "a child may not trace this process";
  EXPECT_EQ(hold(), "");
}

// A process that has changed its user is closed to its own children, as under Yama: not even /proc tells them what its
// threads wait for.
TEST_F(HeldThreads, are_refused_by_the_kernel_and_not_by_proc_where_nobody_may_trace) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  EXPECT_EQ(run_in_child([] {
              const Companion companion(&yield_until);
              if (setresuid(65534, 65534, 65534) != 0) return 1;
              const std::string yama = why_yama_forbids(yama_scope());
              const std::string expected = "the kernel or a security filter forbids it (thread " +
                                           std::to_string(companion.id()) + ": Operation not permitted)";
              return hold() == (yama.empty() ? expected : yama) ? 0 : 2;
            }),
            0);
}

TEST_F(HeldThreads, are_all_let_go_where_one_is_traced_by_another) {
  std::array<std::atomic<std::uint64_t>, 2> counts{};
  const auto count_in = [](std::atomic<std::uint64_t>& count) {
    return [&count](const std::atomic<bool>& leave) {
      while (!leave) count.fetch_add(1);
    };
  };
  const Companion first(count_in(counts[0]));
  const Companion second(count_in(counts[1]));
  const int status = while_traced(second.id(), [&](pid_t tracer) {
    bool has_run = false;
    EXPECT_EQ(hold([&] { has_run = true; }),
              "thread " + std::to_string(second.id()) + " is traced by process " + std::to_string(tracer) + " already");
    EXPECT_FALSE(has_run);
    for (auto& count : counts) {
      for (const std::uint64_t before = count; count == before;) std::this_thread::yield();
    }
  });
  if (status == 77) GTEST_SKIP() << "a child may not trace this process";
  EXPECT_EQ(hold(), "");
}

TEST_F(HeldThreads, are_all_let_go_where_one_does_not_stop) {
  std::atomic<std::uint64_t> count{0};
  const Companion counting([&](const std::atomic<bool>& leave) {
    while (!leave) count.fetch_add(1);
  });
  // Inside vfork until the child has read a byte.
  std::array<int, 2> gate{};
  ASSERT_EQ(pipe(gate.data()), 0);
  const OwnMap stack = OwnMap::alone(64 * 1024);
  std::atomic<bool> is_in_child{false};
  struct Child {
    int gate;
    std::atomic<bool>& is_in_child;
  } child{gate[0], is_in_child};
  Companion waiting([&](const std::atomic<bool>&) {
    const pid_t made = clone(
        [](void* argument) {
          const auto* self = static_cast<Child*>(argument);
          self->is_in_child = true;
          char byte = 0;
          raw_call(SYS_read, self->gate, raw_argument(&byte), 1);
          raw_call(SYS_exit, 0);
          return 0;
        },
        stack.middle() + 64 * 1024, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &child);
    waitpid(made, nullptr, 0);
  });
  while (!is_in_child) std::this_thread::yield();
  bool has_run = false;
  EXPECT_EQ(hold([&] { has_run = true; }, {.left_alone = {}, .patience = std::chrono::milliseconds(20)}),
            "thread " + std::to_string(waiting.id()) + " does not stop");
  EXPECT_FALSE(has_run);
  for (const std::uint64_t before = count; count == before;) std::this_thread::yield();
  EXPECT_EQ(write(gate[1], "x", 1), 1);
  waiting.join();
  EXPECT_EQ(hold(), "");
  close(gate[0]);
  close(gate[1]);
}

}  // namespace
}  // namespace farsum::os
