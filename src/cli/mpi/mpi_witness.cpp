// The witness's loop: ranks come, say their number and later that they have finished; whose process ends without having
// said so is named. Where some of the ranks do not come, their peers wait for them in MPI_Init, and only this process
// can say so.
#include "cli/mpi/mpi_witness.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

#include "cli/unique_fd.hpp"
#include "witness_words.h"

namespace farsum::cli {

namespace {

// For a rank's number that is not known yet; no rank says it.
constexpr std::int32_t nothing_yet = farsum_witness_watches;

constexpr int longest_doubt_ms = 1000;

// MPI_Init lets ranks go at about the same time: whoever comes this much later than another comes no more. 0: nothing
// is said. The caller has read the setting, so that it is a number.
std::chrono::seconds patience_of_process() {
  constexpr std::chrono::seconds usual{10};
  const char* const setting = std::getenv("FARSUM_WAIT_NOTICE");
  return setting == nullptr || *setting == '\0' ? usual : std::chrono::seconds(std::atol(setting));
}

UniqueFd open_process(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

UniqueFd listen_at(const std::string& name) {
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  const socklen_t bytes = farsum_witness_address(name.c_str(), &address);
  if (bytes == 0 || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return {};
  return listen(listener.get(), SOMAXCONN) == 0 ? std::move(listener) : UniqueFd();
}

// A signal from the terminal, or to the whole group of processes: the launcher ends the ranks.
volatile std::sig_atomic_t end_is_wanted = 0;

class Witness {
 public:
  Witness(UniqueFd listener, UniqueFd launcher) : listener_(std::move(listener)), launcher_(std::move(launcher)) {}

  void run() {
    for (bool launcher_runs = true; launcher_runs;) {
      std::vector<pollfd> waited = {{launcher_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Rank& rank : ranks_) {
        waited.push_back({rank.is_dead ? -1 : rank.process.get(), POLLIN, 0});
        waited.push_back({rank.connection.get(), POLLIN, 0});
      }
      const bool is_in_doubt = is_one_dead() && !has_named_;
      const int ready = poll(waited.data(), waited.size(), is_in_doubt ? longest_doubt_ms : patience_left_ms());
      if (ready < 0) continue;
      launcher_runs = waited[0].revents == 0;
      while (accept_rank()) {
      }
      look_at_ranks();
      if (patience_left_ms() == 0) name_those_who_came();
      if (is_one_dead() && !has_named_ && end_is_wanted == 0) name_the_first(ready == 0 || !launcher_runs);
    }
  }

 private:
  struct Rank {
    UniqueFd process;
    UniqueFd connection;
    pid_t pid = 0;
    std::int32_t number = nothing_yet;
    std::uint64_t closed_in = 0;  // the round in which its end was first seen; 0: not yet
    bool is_dead = false;
  };

  bool accept_rank() {
    Rank rank;
    rank.connection.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!rank.connection.valid()) return false;
    ucred who{};
    socklen_t bytes = sizeof who;
    const bool is_known = getsockopt(rank.connection.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0;
    // Anybody on this machine may knock.
    if (!is_known || who.uid != geteuid()) return true;
    rank.pid = who.pid;
    rank.process = open_process(who.pid);
    // It waits for this, so that no rank ends unwatched.
    const std::int32_t watched = farsum_witness_watches;
    static_cast<void>(!send(rank.connection.get(), &watched, sizeof watched, MSG_NOSIGNAL));
    if (rank.process.valid()) ranks_.push_back(std::move(rank));
    return true;
  }

  // Ends of files come before the process has ended, and a launcher that sees one kills the others: a small one may be
  // gone sooner. So what counts is whose connection was closed first.
  void look_at_ranks() {
    ++round_;
    for (Rank& rank : ranks_) {
      // Before what it said is read, so that nothing said is missed.
      rank.is_dead = !is_quiet(rank.process.get());
      read_from(rank);
      if (rank.is_dead && rank.closed_in == 0) rank.closed_in = round_;
    }
    std::erase_if(ranks_, [](const Rank& rank) {
      return rank.number == farsum_witness_has_finished || rank.number == farsum_witness_ends_the_job ||
             (rank.is_dead && rank.number < 0);
    });
  }

  bool is_one_dead() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.is_dead; });
  }

  // Waits for those that were closed first to end, unless that takes long: a program may close what it did not open.
  void name_the_first(bool waits_no_more) {
    std::uint64_t first = round_;
    for (const Rank& rank : ranks_) {
      if (rank.closed_in != 0 && (rank.is_dead || !waits_no_more)) first = std::min(first, rank.closed_in);
    }
    std::vector<const Rank*> ended;
    for (const Rank& rank : ranks_) {
      if (rank.closed_in != first) continue;
      if (!rank.is_dead && !waits_no_more) return;
      if (rank.is_dead) ended.push_back(&rank);
    }
    name_them(ended);
  }

  // -1: nobody is missing, or it has been said.
  int patience_left_ms() const {
    if (came_.size() >= expected_ || has_named_ || has_named_those_who_came_ || patience_.count() == 0) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(last_came_ + patience_ - Clock::now());
    return std::max(0, static_cast<int>(left.count()));
  }

  // Jobs that this one spawns are other launches, of which nothing is known but what their own ranks say.
  void note_arrival(const farsum_witness_arrival& arrival) {
    const std::size_t expected = arrival.ranks_here < 0 ? 0 : static_cast<std::size_t>(arrival.ranks_here);
    if (came_.empty()) expected_ = expected;
    if (expected == expected_) came_.insert(arrival.rank);
    last_came_ = Clock::now();
  }

  void name_those_who_came() {
    has_named_those_who_came_ = true;
    const std::string line = fmt::format(
        "farsum mpi: {} of this host's {} ranks ({}) are in MPI_Init for {} s, where they wait for the others, which "
        "have "
        "not come. A rank that lacks Farsum's preload (a static program, FARSUM_MPI_OFF, an environment of its own) "
        "never "
        "comes: give it to all ranks or to none\n",
        came_.size(), expected_, fmt::join(came_, ", "), patience_.count());
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
  }

  static bool is_quiet(int fd) {
    pollfd one{fd, POLLIN, 0};
    return poll(&one, 1, 0) == 0;
  }

  void read_from(Rank& rank) {
    farsum_witness_arrival packet{};
    ssize_t bytes = -1;
    while (rank.connection.valid() && (bytes = recv(rank.connection.get(), &packet, sizeof packet, 0)) > 0) {
      const std::int32_t said = packet.rank;
      rank.number = said;
      if (bytes == sizeof packet) note_arrival(packet);
      if (said == farsum_witness_ends_the_job) has_named_ = true;
    }
    if (bytes != 0 || !rank.connection.valid()) return;
    rank.connection.reset();
    rank.closed_in = round_;
  }

  // The others follow: the launcher kills them, or they cannot go on.
  void name_them(std::vector<const Rank*>& ended) {
    has_named_ = true;
    std::sort(ended.begin(), ended.end(),
              [](const Rank* one, const Rank* other) { return one->number < other->number; });
    std::string names;
    for (const Rank* rank : ended) {
      names += fmt::format("{}{} (process {})", names.empty() ? "" : ", ", rank->number, rank->pid);
    }
    const std::string line =
        fmt::format("farsum mpi: rank{} {} ended before MPI_Finalize{}: the job cannot go on\n",
                    ended.size() > 1 ? "s" : "", names, ended.size() > 1 ? ", one of them first" : "");
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
  }

  UniqueFd listener_;
  UniqueFd launcher_;
  std::vector<Rank> ranks_;
  std::uint64_t round_ = 0;
  using Clock = std::chrono::steady_clock;
  std::set<std::int32_t> came_;
  std::size_t expected_ = 0;  // of the launch of those
  Clock::time_point last_came_;
  const std::chrono::seconds patience_ = patience_of_process();
  bool has_named_those_who_came_ = false;
  bool has_named_ = false;  // or nobody is to be named: the program ends the job
};

// Signals from a terminal are for the launcher, whose end is this process's.
[[noreturn]] void be_witness(UniqueFd listener, UniqueFd launcher) {
  prctl(PR_SET_NAME, "farsum-witness");
  for (const int signal : {SIGPIPE, SIGTSTP}) std::signal(signal, SIG_IGN);
  struct sigaction wanted {};
  wanted.sa_handler = [](int) { end_is_wanted = 1; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaction(signal, &wanted, nullptr);
  // Who reads the job's output waits for its end.
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  Witness(std::move(listener), std::move(launcher)).run();
  _exit(0);
}

}  // namespace

const char* const witness_setting = FARSUM_MPI_WITNESS_SETTING;

std::string new_witness_name() {
  std::array<std::uint64_t, 2> random{};
  if (getrandom(random.data(), sizeof random, 0) != sizeof random) return {};
  return fmt::format("farsum-witness-{}-{:016x}{:016x}", getpid(), random[0], random[1]);
}

void start_witness(const std::string& name) {
  UniqueFd listener = listen_at(name);
  UniqueFd launcher = open_process(getpid());
  if (!listener.valid() || !launcher.valid()) return;
  // By a child that ends at once: launchers wait for any child, and do not expect this one.
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) be_witness(std::move(listener), std::move(launcher));
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace farsum::cli
