#include "progress/agent.hpp"

#include <link.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/units.hpp"
#include "os/blocked_signals.hpp"
#include "os/unwatched.hpp"

namespace farsum {
namespace {

constexpr std::size_t requests_a_turn = 64;

// A whole stack of the usual 8 MiB would be locked, and so made, in a program that locks its memory, and counts where
// address space is limited. Sanitizers need more than the usual.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_bytes = 0;
#else
constexpr std::size_t stack_bytes = std::size_t{1} << 20;
#endif

// What the program and its libraries keep for each thread, which the C library takes from the stack.
std::size_t thread_local_bytes() {
  std::size_t bytes = 0;
  const auto add = [](dl_phdr_info* object, std::size_t, void* sum) {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& header = object->dlpi_phdr[i];
      if (header.p_type == PT_TLS) *static_cast<std::size_t*>(sum) += header.p_memsz + header.p_align;
    }
    return 0;
  };
  dl_iterate_phdr(add, &bytes);
  return round_up(bytes, page_bytes);
}

// "0,2-3" as a set; nothing when it cannot be read.
std::optional<cpu_set_t> parse_cpus(std::string_view text) {
  cpu_set_t set;
  CPU_ZERO(&set);
  while (!text.empty()) {
    unsigned first = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), first);
    if (error != std::errc{}) return std::nullopt;
    unsigned last = first;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with('-')) {
      auto [range_end, range_error] = std::from_chars(text.data() + 1, text.data() + text.size(), last);
      if (range_error != std::errc{}) return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(range_end - text.data()));
    }
    if (last < first || last >= CPU_SETSIZE) return std::nullopt;
    for (unsigned cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &set);
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return set;
}

}  // namespace

Status Agent::check(const Options& options) {
  if (options.cpus.empty() || parse_cpus(options.cpus)) return {};
  return {Code::argument,
          fmt::format("setting FARSUM_AGENT_CPUS is '{}', but must be a list such as 0,2-3", options.cpus)};
}

cpu_set_t Agent::cpus(const Options& options) {
  return options.cpus.empty() ? options.start_cpus : *parse_cpus(options.cpus);
}

Result<std::unique_ptr<Agent>> Agent::start(const Options& options, Transport& transport, RequestHandler& handler,
                                            RankBell& bell, AgentChores& chores, ServingMutex& serving) {
  if (Status status = check(options); !status.is_ok()) return status;
  std::unique_ptr<Agent> agent(new Agent(options, transport, handler, bell, chores, serving));
  const os::BlockedSignals blocked;
  if (const int error_number = agent->start_thread(); error_number != 0)
    return Status(Code::system, fmt::format("cannot start the agent thread: {}", std::strerror(error_number)));
  // Whoever promotes memory must be able to tell the agent from the program's threads. Acquire pairs with the release
  // in take_place.
  agent->thread_id_.wait(0, std::memory_order_acquire);
  return agent;
}

Agent::~Agent() {
  if (!has_thread_) return;
  bell_.wake();
  pthread_join(thread_, nullptr);
}

// Returns 0 or an errno.
int Agent::start_thread() {
  pthread_attr_t attributes;
  if (const int error_number = pthread_attr_init(&attributes); error_number != 0) return error_number;
  if (stack_bytes != 0) (void)pthread_attr_setstacksize(&attributes, stack_bytes + thread_local_bytes());
  int error_number = pthread_create(&thread_, &attributes, &Agent::run, this);
  // A program may want more for each thread.
  if (error_number == EINVAL) error_number = pthread_create(&thread_, nullptr, &Agent::run, this);
  pthread_attr_destroy(&attributes);
  has_thread_ = error_number == 0;
  return error_number;
}

// The thread allocates nothing before it serves: malloc would reserve an arena of 64 MiB for it.
void* Agent::run(void* agent) {
  [[maybe_unused]] const os::Unwatched unwatched;
  auto& self = *static_cast<Agent*>(agent);
  self.take_place();
  self.serve(self.options_.mode);
  return nullptr;
}

void Agent::take_place() {
  const Options& options = options_;
  prctl(PR_SET_NAME, "farsum-agent");
  const auto id = static_cast<pid_t>(syscall(SYS_gettid));
  if (options.nice != 0) setpriority(PRIO_PROCESS, static_cast<id_t>(id), static_cast<int>(options.nice));
  // The program's thread may have been bound since it began.
  const cpu_set_t own = cpus(options);
  if (!options.cpus.empty() || CPU_COUNT(&own) != 0) sched_setaffinity(0, sizeof own, &own);
  // A wake-up late by the default 50 us of timer slack would be the whole retry time again.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  // Release: the thread is in place; pairs with the acquire load in thread_id().
  thread_id_.store(id, std::memory_order_release);
  thread_id_.notify_all();
}

void Agent::serve(AgentMode mode) {
  std::uint32_t idle_turns = 0;
  for (;;) {
    std::size_t served = 0;
    bool has_unfinished = false;
    {
      const std::lock_guard serving(serving_);
      served = transport_.poll_requests(handler_, requests_a_turn);
      has_unfinished = transport_.has_unfinished_request();
    }
    // The chores come after the poll, which takes the rings off the bell: what comes later rings again.
    const std::uint64_t sleep_ns = chores_.run(has_unfinished);
    if (served != 0) {
      idle_turns = 0;
      continue;
    }
    if (bell_.stopped()) return;
    if (mode == AgentMode::dedicated) {
      bell_.pass();
      pause_idle(++idle_turns);
      continue;
    }
    // Relaxed: a statistic.
    if (bell_.sleep(sleep_ns) && !has_unfinished) wakeups_.fetch_add(1, std::memory_order_relaxed);
  }
}

// Alone on its processor it makes no system call.
void Agent::pause_idle(std::uint32_t idle_turns) const {
  SystemAtomics::pause();
  if (options_.is_crowded && idle_turns % idle_turns_before_yield == 0) sched_yield();
}

}  // namespace farsum
