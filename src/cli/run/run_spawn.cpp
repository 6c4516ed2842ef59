// The child's way from fork to exec.
#include "cli/run/run_spawn.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/exit_codes.hpp"

namespace farsum::cli {

namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

bool make_pipe(Pipe& made) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  made.read_end.reset(ends[0]);
  made.write_end.reset(ends[1]);
  return true;
}

// A rank never outlives the guardian, not even one that died before this call.
void die_with(pid_t guardian) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(exit_launcher_failed);
}

void give_back(const InheritedState& inherited) {
  std::signal(SIGPIPE, inherited.ignores_sigpipe ? SIG_IGN : SIG_DFL);
  std::signal(SIGCHLD, inherited.ignores_sigchld ? SIG_IGN : SIG_DFL);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = inherited.open_files_soft_limit;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  sigprocmask(SIG_SETMASK, &inherited.signal_mask, nullptr);
}

// False with errno set when the kernel refuses the processing units.
bool bind_to(const CpuList& cpus) {
  const int highest = *std::max_element(cpus.begin(), cpus.end());
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(highest + 1),
                                                             [](cpu_set_t* owned) { CPU_FREE(owned); });
  const std::size_t bytes = CPU_ALLOC_SIZE(highest + 1);
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set.get());
  return sched_setaffinity(0, bytes, set.get()) == 0;
}

void set_environment(const SpawnContext& context, int rank) {
  const auto set = [](const std::string& name, const std::string& value) { setenv(name.c_str(), value.c_str(), 1); };
  for (const auto& [name, value] : context.job->environment) set(name, value);
  set("FARSUM_RANK", std::to_string(rank));
  set("FARSUM_SIZE", std::to_string(context.job->ranks));
  set("FARSUM_NODE_FD", std::to_string(context.node_fd));
  set("FARSUM_JOB", context.job_id);
}

bool prepare(const SpawnContext& context, int rank, int out, int err) {
  const auto& bindings = context.job->bindings;
  if (!bindings.empty() && !bind_to(bindings[static_cast<std::size_t>(rank) % bindings.size()])) return false;
  if (dup2(rank == 0 ? context.first_stdin : context.null_fd, STDIN_FILENO) < 0) return false;
  if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) return false;
  if (fcntl(context.node_fd, F_SETFD, 0) < 0) return false;
  set_environment(context, rank);
  give_back(*context.inherited);
  return true;
}

[[noreturn]] void become_rank(const SpawnContext& context, int rank, int out, int err) {
  if (prepare(context, rank, out, err)) {
    std::vector<char*> arguments;
    for (const std::string& argument : context.job->arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    // The path has a slash in it, so nothing is searched; execvp hands scripts without a first line to the shell.
    execvp(context.job->program_path.c_str(), arguments.data());
  }
  const StartFailure failure{rank, errno};
  [[maybe_unused]] const ssize_t told = write(context.failure_pipe, &failure, sizeof(failure));
  _exit(exit_not_found);
}

}  // namespace

StartedRank start_rank(const SpawnContext& context, int rank) {
  StartedRank started;
  Pipe out;
  Pipe err;
  if (!make_pipe(out) || !make_pipe(err)) {
    started.error = errno;
    return started;
  }
  const pid_t guardian = getpid();
  started.pid = fork();
  if (started.pid == 0) {
    die_with(guardian);
    become_rank(context, rank, out.write_end.get(), err.write_end.get());
  }
  if (started.pid < 0) started.error = errno;
  started.out = std::move(out.read_end);
  started.err = std::move(err.read_end);
  return started;
}

}  // namespace farsum::cli
