// The transitions of JobPolicy.
#include "cli/run/run_policy.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <utility>

#include "cli/exit_codes.hpp"

namespace farsum::cli {

namespace {

// glibc tells them only since 2.32.
constexpr std::pair<int, const char*> names_of_signals[] = {
    {SIGHUP, "HUP"},       {SIGINT, "INT"},   {SIGQUIT, "QUIT"},   {SIGILL, "ILL"},   {SIGTRAP, "TRAP"},
    {SIGABRT, "ABRT"},     {SIGBUS, "BUS"},   {SIGFPE, "FPE"},     {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},
    {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"}, {SIGPIPE, "PIPE"},   {SIGALRM, "ALRM"}, {SIGTERM, "TERM"},
    {SIGSTKFLT, "STKFLT"}, {SIGCHLD, "CHLD"}, {SIGCONT, "CONT"},   {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},
    {SIGTTIN, "TTIN"},     {SIGTTOU, "TTOU"}, {SIGURG, "URG"},     {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"},
    {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"}, {SIGWINCH, "WINCH"}, {SIGPOLL, "POLL"}, {SIGPWR, "PWR"},
    {SIGSYS, "SYS"},
};

std::string signal_name(int signal) {
  for (const auto& [number, name] : names_of_signals) {
    if (number == signal) return fmt::format("SIG{}", name);
  }
  return fmt::format("real-time signal {}", signal);
}

std::string what_happens_to_others(int others) {
  if (others == 0) return {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(JobPolicy::grace_to_report).count();
  return fmt::format("; the other {} still running {} {} s to report, then {} ended",
                     others == 1 ? "rank" : fmt::format("{} ranks", others), others == 1 ? "gets" : "get", seconds,
                     others == 1 ? "is" : "are");
}

}  // namespace

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("was killed by signal {} ({}){}", signal, signal_name(signal),
                       WCOREDUMP(wait_status) ? ", core dumped" : "");
  }
  return fmt::format("exited with code {}", WEXITSTATUS(wait_status));
}

int exit_code_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return exit_signal_base + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

JobPolicy::JobPolicy(Options options)
    : options_(std::move(options)),
      pids_(static_cast<std::size_t>(options_.ranks), 0),
      deadline_(options_.timeout),
      running_(options_.ranks) {}

void JobPolicy::rank_started(int rank, pid_t pid) { pids_[static_cast<std::size_t>(rank)] = pid; }

Decision JobPolicy::rank_exited(int rank, int wait_status, Milliseconds now) {
  running_ -= 1;
  Decision decision;
  if (exit_code_of(wait_status) != 0) {
    if (stage_ == Stage::running) {
      decision = first_failure(rank, wait_status, now);
    } else if (stage_ == Stage::reporting) {
      later_failures_ += 1;
      if (WIFSIGNALED(wait_status)) decision = later_death(rank, wait_status);
    }
  }
  return running_ == 0 ? all_ranks_gone(std::move(decision), now) : decision;
}

// Ranks that report a lost peer may be quicker than the news of its death, so a death by signal is named even if it
// comes second.
Decision JobPolicy::later_death(int rank, int wait_status) {
  Decision decision;
  if (death_named_) return decision;
  death_named_ = true;
  decision.sentences.push_back(sentence_about(rank, wait_status));
  return decision;
}

std::string JobPolicy::sentence_about(int rank, int wait_status) const {
  return fmt::format("rank {} (pid {} on host {}) {}", rank, pids_[static_cast<std::size_t>(rank)], options_.host,
                     describe_wait_status(wait_status));
}

Decision JobPolicy::first_failure(int rank, int wait_status, Milliseconds now) {
  failed_ = true;
  exit_code_ = exit_code_of(wait_status);
  enter(Stage::reporting, now + grace_to_report);
  Decision decision;
  death_named_ = WIFSIGNALED(wait_status);
  decision.sentences.push_back(sentence_about(rank, wait_status) + what_happens_to_others(running_));
  return decision;
}

Decision JobPolicy::all_ranks_gone(Decision decision, Milliseconds now) {
  if (stage_ >= Stage::terminating) return decision;
  if (failed_) {
    Decision killed = kill(now);
    killed.sentences = std::move(decision.sentences);
    return killed;
  }
  enter(Stage::leftovers, now + grace_for_leftovers);
  return decision;
}

Decision JobPolicy::start_failed(const std::string& sentence, int exit_code, Milliseconds now) {
  failed_ = true;
  exit_code_ = exit_code;
  Decision decision = kill(now);
  decision.sentences.push_back(sentence);
  return decision;
}

Decision JobPolicy::user_signalled(int signal, Milliseconds now) {
  Decision decision;
  if (signal == SIGINT) interrupts_ += 1;
  if (signal == SIGINT && interrupts_ >= 2) {
    if (!failed_) exit_code_ = exit_signal_base + SIGINT;
    failed_ = true;
    if (stage_ >= Stage::killing) return decision;
    decision = kill(now);
    decision.sentences.emplace_back("interrupted twice: all ranks are killed");
    return decision;
  }
  decision.signal = signal;
  return decision;
}

Decision JobPolicy::guardian_died(int wait_status, Milliseconds now) {
  if (stage_ == Stage::abandoned) return {};
  Decision decision;
  if (!failed_) {
    failed_ = true;
    exit_code_ = WIFSIGNALED(wait_status) ? exit_code_of(wait_status) : exit_launcher_failed;
    decision.sentences.push_back(
        fmt::format("the guardian process of this job {}; all ranks are killed", describe_wait_status(wait_status)));
  }
  enter(Stage::abandoned, now + grace_after_kill);
  decision.abandon_guardian = true;
  return decision;
}

Decision JobPolicy::time_passed(Milliseconds now) {
  if (!deadline_ || now < *deadline_) return {};
  switch (stage_) {
    case Stage::running: {
      failed_ = true;
      exit_code_ = exit_timeout;
      Decision decision = terminate(now);
      decision.sentences.push_back(
          fmt::format("the time limit of {} s is over with {} of {} ranks still running; they are ended",
                      std::chrono::duration<double>(*options_.timeout).count(), running_, options_.ranks));
      return decision;
    }
    case Stage::reporting:
      return terminate(now);
    case Stage::leftovers:
    case Stage::terminating:
      return kill(now);
    case Stage::killing: {
      enter(Stage::abandoned, now + grace_after_kill);
      Decision decision;
      decision.abandon_guardian = true;
      return decision;
    }
    case Stage::abandoned: {
      deadline_.reset();
      Decision decision;
      decision.give_up = true;
      decision.sentences.emplace_back(
          "a process of the job does not die although it was killed; it is left to the kernel");
      return decision;
    }
  }
  return {};
}

Decision JobPolicy::terminate(Milliseconds now) {
  enter(Stage::terminating, now + grace_after_term);
  Decision decision;
  decision.signal = SIGTERM;
  return decision;
}

Decision JobPolicy::kill(Milliseconds now) {
  enter(Stage::killing, now + grace_after_kill);
  Decision decision;
  decision.kill_all = true;
  return decision;
}

void JobPolicy::enter(Stage stage, std::optional<Milliseconds> deadline) {
  stage_ = stage;
  deadline_ = deadline;
}

std::string JobPolicy::closing_sentence() const {
  if (later_failures_ == 0) return {};
  return fmt::format("{} more {} failed after it", later_failures_, later_failures_ == 1 ? "rank" : "ranks");
}

}  // namespace farsum::cli
