// The guardian's loop: commands from the launcher, SIGCHLD from the ranks.
#include "cli/run/run_guardian.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <unordered_map>

#include "cli/event_loop.hpp"
#include "cli/exit_codes.hpp"
#include "cli/run/run_messages.hpp"
#include "cli/run/run_sweep.hpp"

namespace farsum::cli {

namespace {

class Guardian {
 public:
  Guardian(UniqueFd channel, SpawnContext context) : channel_(std::move(channel)), context_(std::move(context)) {}

  [[noreturn]] void run() {
    become_root_of_the_job();
    start_ranks();
    let_go_of_what_ranks_hold();
    watch();
    for (;;) {
      loop_.wait(sweeping_ ? std::optional(Sweep::longest_gap) : std::nullopt);
      if (sweeping_) reap();
    }
  }

 private:
  // All signals stay blocked: those sent to the job's group, which this process leads, are meant for the ranks.
  void become_root_of_the_job() {
    prctl(PR_SET_NAME, "farsum-guardian");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setpgid(0, 0);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    children_.reset(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  void start_ranks() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return report_start_failure(0, errno);
    UniqueFd failures(ends[0]);
    UniqueFd failures_of_children(ends[1]);
    context_.failure_pipe = failures_of_children.get();
    for (int rank = 0; rank < context_.job->ranks && !sweeping_; ++rank) start(rank);
    failures_of_children.reset();
    read_start_failures(failures.get());
  }

  void start(int rank) {
    const StartedRank started = start_rank(context_, rank);
    if (started.pid < 0) return report_start_failure(rank, started.error);
    watch_death(rank, started.pid);
    const Event event{Event::Kind::rank_started, rank, started.pid, 0};
    // Fails when the launcher is gone, or when it may have no more descriptors on their way to it.
    if (!send_started(channel_.get(), event, started.out.get(), started.err.get())) report_start_failure(rank, errno);
  }

  // Ends when every child has executed the program or given up, for then nobody holds the pipe.
  void read_start_failures(int pipe) {
    StartFailure failure{};
    while (read(pipe, &failure, sizeof(failure)) == static_cast<ssize_t>(sizeof(failure))) {
      report_start_failure(failure.rank, failure.error);
    }
  }

  void report_start_failure(int rank, int error) {
    [[maybe_unused]] const bool told = send_event(channel_.get(), {Event::Kind::start_failed, rank, 0, error});
    sweeping_ = true;
  }

  // The launcher's readers must see the end of their streams, and no pipe to rank 0 may have a second owner.
  void let_go_of_what_ranks_hold() {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(context_.null_fd, standard);
    for (const int fd : {context_.node_fd, context_.first_stdin, context_.null_fd}) {
      if (fd > STDERR_FILENO) close(fd);
    }
  }

  void watch() {
    const bool watching = loop_.watch(channel_.get(), EPOLLIN, [this] { obey(); }) &&
                          loop_.watch(children_.get(), EPOLLIN, [this] { reap(); });
    if (!watching) sweeping_ = true;
    reap();
  }

  void obey() {
    Command command{};
    switch (receive_command(channel_.get(), command)) {
      case Received::nothing_now:
        return;
      case Received::closed:
        loop_.unwatch(channel_.get());
        sweeping_ = true;
        break;
      case Received::message:
        if (command.kind == Command::Kind::signal_job) {
          kill(0, command.signal);
          return;
        }
        sweeping_ = true;
        break;
    }
    reap();
  }

  // epoll hands out what became ready in the order in which it did, so ranks are reported in the order in which they
  // died; wait alone takes them in the order of their start, and the launcher would blame a rank that only reacted to
  // another one's death.
  void watch_death(int rank, pid_t pid) {
    UniqueFd death(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    const int error = errno;
    if (!death.valid() || !deaths_.watch(death.get(), EPOLLIN, [this, pid] { rank_died(pid); })) {
      return report_start_failure(rank, error);
    }
    ranks_.emplace(pid, Rank{rank, std::move(death)});
  }

  void rank_died(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) return;
    sweep_.child_was_reaped();
    const auto found = ranks_.find(pid);
    if (!send_event(channel_.get(), {Event::Kind::rank_exited, found->second.number, pid, status})) sweeping_ = true;
    deaths_.unwatch(found->second.death.get());
    ranks_.erase(found);
  }

  void reap() {
    signalfd_siginfo ignored{};
    while (read(children_.get(), &ignored, sizeof(ignored)) > 0) {
    }
    while (const pid_t dead = next_dead_child()) {
      deaths_.wait(Milliseconds{0});
      if (ranks_.contains(dead)) continue;
      if (waitpid(dead, nullptr, WNOHANG) == dead) sweep_.child_was_reaped();
    }
    if (sweeping_ && sweep_.due()) sweep_.kill_everyone();
  }

  // A child that can be reaped, without reaping it; 0 when there is none now.
  static pid_t next_dead_child() {
    siginfo_t dead{};
    const int failed = waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT);
    // Nobody is left, neither a rank nor anything that one left behind: the launcher sees the channel close.
    if (failed != 0 && errno == ECHILD) _exit(exit_ok);
    return failed == 0 ? dead.si_pid : 0;
  }

  struct Rank {
    int number;
    UniqueFd death;  // a pidfd, readable once the rank is dead
  };

  UniqueFd channel_;
  SpawnContext context_;
  EventLoop loop_;
  UniqueFd children_;
  EventLoop deaths_;
  std::unordered_map<pid_t, Rank> ranks_;
  Sweep sweep_;
  bool sweeping_ = false;
};

}  // namespace

void be_guardian(UniqueFd channel, SpawnContext context) { Guardian(std::move(channel), std::move(context)).run(); }

}  // namespace farsum::cli
