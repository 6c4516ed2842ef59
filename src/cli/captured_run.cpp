// The plumbing behind run_captured.
#include "cli/captured_run.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/argument_vector.hpp"
#include "cli/exit_codes.hpp"
#include "cli/unique_fd.hpp"

extern char** environ;

namespace farsum::cli {

namespace {

pid_t start(const std::vector<std::string>& command, ErrorOutput errors, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (errors == ErrorOutput::kept) posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  const std::vector<char*> arguments = argument_vector(command);
  pid_t child = -1;
  if (posix_spawn(&child, command.front().c_str(), &actions, nullptr, arguments.data(), environ) != 0) child = -1;
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> bytes{};
  while (true) {
    const ssize_t got = read(fd, bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

CapturedRun run_captured(const std::vector<std::string>& command, ErrorOutput errors) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {exit_launcher_failed, {}};
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = start(command, errors, writer.get());
  writer.reset();
  if (child < 0) return {exit_not_found, {}};
  CapturedRun run;
  run.out = read_to_end(reader.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  run.exit_code = WIFSIGNALED(status) ? exit_signal_base + WTERMSIG(status) : WEXITSTATUS(status);
  return run;
}

}  // namespace farsum::cli
