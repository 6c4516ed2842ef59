// The plumbing behind LaunchedJob.
#include "launched_job.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace farsum::cli::test {

namespace {

constexpr int watchdog_ms = 20000;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  return {ends[0], ends[1]};
}

int file_with(const std::string& text) {
  const int fd = memfd_create("input", MFD_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string unique_mark() {
  static int count = 0;
  return "FARSUM_TEST_MARK=" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

bool holds_mark(const std::filesystem::path& process, const std::string& mark) {
  std::ifstream file(process / "environ", std::ios::binary);
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  return environment.find(mark) != std::string::npos;
}

std::vector<pid_t> marked_processes(const std::string& mark) {
  std::vector<pid_t> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && holds_mark(entry.path(), mark)) found.push_back(pid);
  }
  return found;
}

// Reads what is there; false at the end of the stream.
bool read_into(int fd, std::string& text) {
  std::array<char, 65536> bytes{};
  const ssize_t got = read(fd, bytes.data(), bytes.size());
  if (got <= 0) return false;
  text.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

[[noreturn]] void become_farsum(const std::vector<std::string>& arguments, const std::string& mark) {
  std::vector<char*> argv{const_cast<char*>("farsum")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  putenv(const_cast<char*>(mark.c_str()));
  execv(FARSUM_BIN_DIR "/farsum", argv.data());
  std::perror(FARSUM_BIN_DIR "/farsum");
  _exit(99);
}

}  // namespace

LaunchedJob::LaunchedJob(const std::vector<std::string>& arguments, const std::string& input) : mark_(unique_mark()) {
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  const Pipe life = make_pipe();
  const int in = file_with(input);
  launcher_ = fork();
  if (launcher_ == 0) {
    dup2(in, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(err.write_end, STDERR_FILENO);
    fcntl(life.write_end, F_SETFD, 0);
    become_farsum(arguments, mark_);
  }
  for (const int fd : {in, out.write_end, err.write_end, life.write_end}) close(fd);
  out_ = out.read_end;
  err_ = err.read_end;
  life_ = life.read_end;
}

LaunchedJob::~LaunchedJob() {
  for (const pid_t pid : marked_processes(mark_)) ::kill(pid, SIGKILL);
  if (launcher_ > 0) waitpid(launcher_, nullptr, 0);
  for (const int fd : {out_, err_, life_}) close(fd);
}

pid_t LaunchedJob::guardian() const {
  const std::string pid = std::to_string(launcher_);
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  pid_t child = -1;
  children >> child;
  return child;
}

std::string LaunchedJob::next_line() {
  std::size_t end = 0;
  while ((end = unread_.find('\n')) == std::string::npos) {
    if (!read_into(out_, unread_)) return {};
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::vector<std::string> LaunchedJob::next_lines(int count) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) lines.push_back(next_line());
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool LaunchedJob::has_stopped() const {
  int status = 0;
  return waitpid(launcher_, &status, WUNTRACED) == launcher_ && WIFSTOPPED(status);
}

Ended LaunchedJob::wait() {
  Ended ended;
  ended.out = std::move(unread_);
  std::array<pollfd, 2> streams{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    poll(streams.data(), streams.size(), -1);
    if (streams[0].revents != 0 && !read_into(out_, ended.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !read_into(err_, ended.err)) streams[1].fd = -1;
  }
  int status = 0;
  waitpid(launcher_, &status, 0);
  launcher_ = -1;
  ended.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ended;
}

bool LaunchedJob::nothing_is_left() {
  pollfd life{life_, POLLIN, 0};
  if (poll(&life, 1, watchdog_ms) != 1) return false;
  // A process that has closed its descriptors may still be a zombie, whose environment reads as empty.
  return marked_processes(mark_).empty();
}

Ended run_farsum(const std::vector<std::string>& arguments, const std::string& input) {
  return LaunchedJob(arguments, input).wait();
}

std::vector<std::string> shell_job(int ranks, const std::string& script, const std::vector<std::string>& extra) {
  std::vector<std::string> arguments{"run", "-n", std::to_string(ranks)};
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  arguments.insert(arguments.end(), {"sh", "-c", script});
  return arguments;
}

}  // namespace farsum::cli::test
