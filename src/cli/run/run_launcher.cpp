// The launcher's side of a job. See run_launcher.hpp; docs/internals/launcher.md has the picture of the processes.
#include "cli/run/run_launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "cli/event_loop.hpp"
#include "cli/exit_codes.hpp"
#include "cli/run/run_guardian.hpp"
#include "cli/run/run_input.hpp"
#include "cli/run/run_messages.hpp"
#include "cli/run/run_output.hpp"
#include "cli/run/run_policy.hpp"
#include "cli/run/run_sweep.hpp"

namespace farsum::cli {

namespace {

constexpr std::array forwarded_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

bool ignored_at_start(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

InheritedState take_over_signals_and_limits() {
  InheritedState inherited;
  inherited.ignores_sigpipe = ignored_at_start(SIGPIPE);
  inherited.ignores_sigchld = ignored_at_start(SIGCHLD);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_SETMASK, nullptr, &inherited.signal_mask);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    inherited.open_files_soft_limit = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return inherited;
}

// The signals that the launcher waits for. What it was told to ignore (nohup, a shell's background job) stays ignored.
sigset_t block_signals() {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal : forwarded_signals) {
    if (!ignored_at_start(signal)) sigaddset(&awaited, signal);
  }
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  return awaited;
}

// Descriptors 0, 1 and 2 must exist, or the job's own would take their numbers.
void open_missing_standard_descriptors() {
  int fd = -1;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

std::string random_job_id() {
  std::array<std::uint64_t, 2> bits{};
  [[maybe_unused]] const ssize_t got = getrandom(bits.data(), sizeof(bits), 0);
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

UniqueFd make_node_memory() {
  // Kernels before 6.3 do not know the second flag; later ones may insist on it.
  constexpr unsigned no_exec_seal = 8;
  const int fd = memfd_create("farsum-node", MFD_CLOEXEC | no_exec_seal);
  return UniqueFd(fd >= 0 ? fd : memfd_create("farsum-node", MFD_CLOEXEC));
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

struct Descriptors {
  UniqueFd node;
  UniqueFd null;
  UniqueFd stdin_of_first;  // read end, when stdin is a terminal
  UniqueFd to_first;
  std::pair<UniqueFd, UniqueFd> channel;  // launcher's end, guardian's end
};

std::optional<Descriptors> open_descriptors() {
  Descriptors opened;
  opened.node = make_node_memory();
  opened.null.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
  auto channel = make_channel();
  if (!opened.node.valid() || !opened.null.valid() || !channel) return std::nullopt;
  opened.channel = std::move(*channel);
  if (isatty(STDIN_FILENO) != 0) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
    opened.stdin_of_first.reset(ends[0]);
    opened.to_first.reset(ends[1]);
  }
  return opened;
}

int give_up_at_start(const char* step) {
  fmt::print(stderr, "farsum: cannot {}: {}\n", step, std::strerror(errno));
  return exit_launcher_failed;
}

std::string start_sentence(const JobSpec& job, int rank, int error) {
  if (error == ENOENT) {
    return fmt::format("cannot execute {}: the interpreter or loader that it names does not exist", job.program_path);
  }
  if (error == EINVAL && !job.bindings.empty()) {
    return fmt::format("cannot bind rank {} to the processing units asked for: none of them is allowed here", rank);
  }
  if (error == EAGAIN) {
    return fmt::format("cannot start rank {} of {}: the limit on processes is reached (ulimit -u)", rank, job.ranks);
  }
  if (error == EMFILE || error == ENFILE || error == ETOOMANYREFS) {
    return fmt::format("cannot start rank {} of {}: the limit on open files is reached (ulimit -n)", rank, job.ranks);
  }
  return fmt::format("cannot start rank {} of {} ({}): {}", rank, job.ranks, job.program_path, std::strerror(error));
}

int start_exit_code(int error) {
  switch (error) {
    case ENOENT:
      return exit_not_found;
    case EACCES:
    case EPERM:
    case ENOEXEC:
      return exit_not_executable;
    default:
      return exit_launcher_failed;
  }
}

struct LauncherParts {
  const JobSpec* job;
  UniqueFd channel;
  UniqueFd to_first;
  pid_t guardian;
  PidSet spared;  // children that this process had before: not ours to end
  sigset_t signals;
};

class Launcher {
 public:
  explicit Launcher(LauncherParts parts)
      : job_(*parts.job),
        channel_(std::move(parts.channel)),
        guardian_(parts.guardian),
        sweep_(std::move(parts.spared)),
        started_(std::chrono::steady_clock::now()),
        signals_(signalfd(-1, &parts.signals, SFD_CLOEXEC | SFD_NONBLOCK)),
        policy_({job_.ranks, host_name(), job_.timeout}),
        output_(loop_, {STDOUT_FILENO, STDERR_FILENO, job_.tag_output}),
        input_(loop_, std::move(parts.to_first)) {}

  [[nodiscard]] int run() {
    const bool watching = loop_.watch(channel_.get(), EPOLLIN, [this] { hear_guardian(); }) &&
                          loop_.watch(signals_.get(), EPOLLIN, [this] { take_signals(); });
    if (!watching) carry_out(policy_.start_failed("cannot wait for the job", exit_launcher_failed, now()));
    while (!over_) step();
    finish_output();
    return policy_.exit_code();
  }

 private:
  [[nodiscard]] Milliseconds now() const {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - started_);
  }

  void step() {
    loop_.wait(longest_wait());
    if (sweeping_) reap_and_sweep();
    carry_out(policy_.time_passed(now()));
  }

  [[nodiscard]] std::optional<Milliseconds> longest_wait() const {
    if (sweeping_) return Sweep::longest_gap;
    const auto deadline = policy_.next_deadline();
    if (!deadline) return std::nullopt;
    // One millisecond more, since now() rounds down.
    return *deadline - now() + Milliseconds{1};
  }

  void carry_out(const Decision& decision) {
    for (const std::string& sentence : decision.sentences) output_.say(sentence);
    if (decision.signal != 0) send_command(channel_.get(), {Command::Kind::signal_job, decision.signal});
    if (decision.kill_all) send_command(channel_.get(), {Command::Kind::kill_all, 0});
    if (decision.abandon_guardian) abandon_guardian();
    if (decision.give_up) give_up();
  }

  void hear_guardian() {
    for (;;) {
      ReceivedEvent received;
      switch (receive_event(channel_.get(), received)) {
        case Received::nothing_now:
          return;
        case Received::closed:
          return guardian_closed();
        case Received::message:
          handle(std::move(received));
          break;
      }
    }
  }

  void handle(ReceivedEvent received) {
    const Event& event = received.event;
    switch (event.kind) {
      case Event::Kind::rank_started:
        // The kernel drops descriptors for which this process has no room.
        if (!received.out.valid() || !received.err.valid()) return start_failed(event.rank, EMFILE);
        policy_.rank_started(event.rank, event.pid);
        output_.add_rank(event.rank, std::move(received.out), std::move(received.err));
        return;
      case Event::Kind::rank_exited:
        if (event.rank == 0) input_.stop();
        return carry_out(policy_.rank_exited(event.rank, event.value, now()));
      case Event::Kind::start_failed:
        return start_failed(event.rank, event.value);
    }
  }

  // Only the first is told: the others fail for the same reason.
  void start_failed(int rank, int error) {
    if (start_failed_) return;
    start_failed_ = true;
    carry_out(policy_.start_failed(start_sentence(job_, rank, error), start_exit_code(error), now()));
  }

  // The guardian closes the channel by ending: when all is over, or because it was killed.
  void guardian_closed() {
    loop_.unwatch(channel_.get());
    if (sweeping_) return;
    int status = 0;
    while (waitpid(guardian_, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == exit_ok) {
      over_ = true;
      return;
    }
    carry_out(policy_.guardian_died(status, now()));
  }

  // The ranks die with the guardian by the kernel's hand; what they forked becomes ours, as this process is a subreaper
  // too.
  void abandon_guardian() {
    sweeping_ = true;
    reap_and_sweep();
  }

  void reap_and_sweep() {
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) sweep_.child_was_reaped();
    const bool childless = reaped < 0 && errno == ECHILD;
    if (childless || (sweep_.due() && sweep_.kill_everyone() == 0)) over_ = true;
  }

  // Whoever is left has a SIGKILL on its way after this.
  void give_up() {
    sweep_.kill_everyone();
    over_ = true;
  }

  void take_signals() {
    signalfd_siginfo taken{};
    while (read(signals_.get(), &taken, sizeof(taken)) == static_cast<ssize_t>(sizeof(taken))) {
      take_signal(static_cast<int>(taken.ssi_signo));
    }
  }

  void take_signal(int signal) {
    if (signal == SIGCHLD) {
      return;  // it woke step(), which reaps
    }
    if (signal == SIGCONT) input_.watch_terminal();
    carry_out(policy_.user_signalled(signal, now()));
    // The ranks were told to stop; now this process does as its user asked.
    if (signal == SIGTSTP) raise(SIGSTOP);
  }

  // Nobody writes any more. A reader that does not read can still be left by an interrupt.
  void finish_output() {
    output_.finish();
    const std::string sentence = policy_.closing_sentence();
    if (!sentence.empty()) output_.say(sentence);
    loop_.unwatch(channel_.get());
    loop_.unwatch(signals_.get());
    bool interrupted = false;
    [[maybe_unused]] const bool watching = loop_.watch(signals_.get(), EPOLLIN, [&] { interrupted = ends_output(); });
    while (!output_.all_written() && !interrupted) loop_.wait(std::nullopt);
  }

  [[nodiscard]] bool ends_output() {
    bool ends = false;
    signalfd_siginfo taken{};
    while (read(signals_.get(), &taken, sizeof(taken)) == static_cast<ssize_t>(sizeof(taken))) {
      const int signal = static_cast<int>(taken.ssi_signo);
      ends = ends || signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
      if (signal == SIGTSTP) raise(SIGSTOP);
    }
    return ends;
  }

  const JobSpec& job_;
  UniqueFd channel_;
  pid_t guardian_;
  Sweep sweep_;
  std::chrono::steady_clock::time_point started_;
  UniqueFd signals_;
  EventLoop loop_;
  JobPolicy policy_;
  OutputForwarder output_;
  InputForwarder input_;
  bool start_failed_ = false;
  bool sweeping_ = false;
  bool over_ = false;
};

SpawnContext spawn_context(const JobSpec& job, const InheritedState& inherited, const Descriptors& opened) {
  SpawnContext context;
  context.job = &job;
  context.inherited = &inherited;
  context.job_id = random_job_id();
  context.node_fd = opened.node.get();
  context.null_fd = opened.null.get();
  context.first_stdin = opened.stdin_of_first.valid() ? opened.stdin_of_first.get() : STDIN_FILENO;
  return context;
}

}  // namespace

int run_job(const JobSpec& job) {
  open_missing_standard_descriptors();
  auto opened = open_descriptors();
  if (!opened) return give_up_at_start("create the job's memory and channels");
  const InheritedState inherited = take_over_signals_and_limits();
  const sigset_t awaited = block_signals();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::vector<pid_t> children = descendants_of(getpid(), {});

  const pid_t guardian = fork();
  if (guardian < 0) return give_up_at_start("start the guardian process");
  if (guardian == 0) {
    opened->channel.first.reset();
    opened->to_first.reset();
    be_guardian(std::move(opened->channel.second), spawn_context(job, inherited, *opened));
  }
  UniqueFd channel = std::move(opened->channel.first);
  UniqueFd to_first = std::move(opened->to_first);
  opened.reset();  // the node memory lives in the ranks alone
  Launcher launcher(
      {&job, std::move(channel), std::move(to_first), guardian, PidSet(children.begin(), children.end()), awaited});
  return launcher.run();
}

}  // namespace farsum::cli
