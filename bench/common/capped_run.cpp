// The plumbing behind run_capped: a process group per command, so that a signal reaches the launcher's shells too.
#include "common/capped_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int cannot_start = 127;
constexpr int signal_base = 128;
constexpr int no_stop = -1;
constexpr auto grace = std::chrono::seconds(5);

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { shut(); }
  [[nodiscard]] int fd() const { return fd_; }
  void shut() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// In the child, between fork and exec.
[[noreturn]] void become(const Command& command, int output, int errors) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // an interrupted benchmark leaves no job behind
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  words.reserve(command.words.size() + 1);
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words.front(), words.data());
  _exit(cannot_start);
}

// Appends what there is; false when all writers are gone.
bool read_some(int fd, std::string& text) {
  std::array<char, 4096> bytes{};
  const ssize_t got = read(fd, bytes.data(), bytes.size());
  if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

// Until all writers are gone (good), the time is up, or there is something to read of `stop_fd`.
Ending read_until(int fd, int stop_fd, Clock::time_point deadline, std::string& text) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Ending::capped;
    std::array<pollfd, 2> watched{
        {{.fd = fd, .events = POLLIN, .revents = 0}, {.fd = stop_fd, .events = POLLIN, .revents = 0}}};
    if (poll(watched.data(), watched.size(), static_cast<int>(left)) <= 0) continue;
    if (watched[1].revents != 0) return Ending::stopped;
    if (!read_some(fd, text)) return Ending::good;
  }
}

std::string whole_text(int fd) {
  std::string text;
  lseek(fd, 0, SEEK_SET);
  while (read_some(fd, text)) {
  }
  return text;
}

int reap(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Outcome run_capped(const Command& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe is to be had");
  const File reader(ends[0]);
  File writer(ends[1]);
  const File errors(memfd_create("errors", MFD_CLOEXEC));
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process is to be had");
  if (child == 0) become(command, writer.fd(), errors.fd());
  setpgid(child, child);  // whichever of the two comes first
  writer.shut();

  Outcome outcome;
  const auto deadline = Clock::now() + std::chrono::milliseconds(command.cap_ms);
  outcome.ending = read_until(reader.fd(), command.stop_fd, deadline, outcome.output);
  if (outcome.ending != Ending::good) {
    kill(-child, SIGTERM);  // launchers end their ranks on it
    static_cast<void>(read_until(reader.fd(), no_stop, Clock::now() + grace, outcome.output));
    kill(-child, SIGKILL);
  }
  outcome.exit_code = reap(child);
  if (outcome.ending == Ending::good && outcome.exit_code != 0) outcome.ending = Ending::failed;
  outcome.errors = whole_text(errors.fd());
  return outcome;
}

}  // namespace bench
