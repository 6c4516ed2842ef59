// A model checker for the templates of os and lockfree: it runs two to four logical threads through every interleaving
// of their atomic accesses, with a store buffer for each (total store order, as x86 has it), a futex, kills, and a
// detector of races on plain data.
//
// It goes depth first and replays a prefix of choices for each new execution. A state met before is not entered again:
// memory, store buffers and, for each thread, a hash of all it ever read; as a thread's steps depend on nothing else,
// equal states have equal futures. Time does not exist: pauses end when memory changes, and timeouts strike when
// nothing else can happen.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "fiber.hpp"
#include "os/futex.hpp"

namespace farsum::model {

inline constexpr std::size_t max_threads = 4;
inline constexpr std::size_t no_thread = max_threads;

struct Options {
  bool store_buffers = true;
  std::size_t store_buffer_entries = 4;
  // May be killed, once, before any of its accesses.
  std::size_t killable = no_thread;
  // Switches away from a thread that could have gone on. Buffered stores and kills are not counted.
  std::size_t max_preemptions = ~std::size_t{0};
  // Part of the state where the check has plain data to race on.
  bool finds_races = true;
  // More steps than this in one execution count as a livelock.
  std::size_t max_steps = 5'000;
  std::size_t max_states = 4'000'000;
};

struct Outcome {
  // Empty when every interleaving was seen and none failed.
  std::string failure;
  // The steps that led there, one a line.
  std::string schedule;
  std::size_t executions = 0;
  std::size_t states = 0;
};

using Clock = std::array<std::uint32_t, max_threads>;

class Explorer {
 public:
  Explorer(const Options& options, std::span<std::byte> arena) : options_(options), arena_(arena) {}

  Outcome run(const std::function<void()>& set_up, std::vector<std::function<void()>> bodies,
              const std::function<void()>& finish) {
    bodies_ = std::move(bodies);
    Explorer* const outer = current;
    current = this;
    Outcome outcome;
    do {
      execute(set_up, finish);
      ++outcome.executions;
    } while (failure_.empty() && next_prefix());
    outcome.failure = failure_;
    outcome.states = visited_.size();
    if (!failure_.empty()) {
      tracing_ = true;
      execute(set_up, finish);
      for (const std::string& line : trace_) {
        outcome.schedule += line + "\n";
      }
    }
    current = outer;
    return outcome;
  }

  // The atomics have no other way to find their explorer. Tests run one at a time.
  static inline Explorer* current = nullptr;
  // Outside the threads (set-up, final check) accesses go straight to memory.
  static Explorer* active() { return current != nullptr && current->self_ != no_thread ? current : nullptr; }

  // ---- what the atomics call; each is one step of the running thread ----

  std::uint64_t load(const void* address, std::size_t size, std::memory_order order) {
    schedule();
    Thread& me = threads_[self_];
    me.load_version = version_;
    const std::size_t buffered = newest_buffered(me, address);
    std::uint64_t value = 0;
    if (buffered != no_entry) {
      value = me.buffer[buffered].value;
    } else {
      value = read_memory(address, size);
      acquire_if(order, address);
    }
    observe(value);
    note("load", address, value);
    return value;
  }

  void store(void* address, std::size_t size, std::uint64_t value, std::memory_order order) {
    schedule();
    Thread& me = threads_[self_];
    if (order == std::memory_order_seq_cst || !options_.store_buffers) {
      drain(self_);
      write_memory(address, size, value, release_clock(order));
    } else {
      if (me.buffer.size() == options_.store_buffer_entries) {
        flush_oldest(self_);
      }
      me.buffer.push_back({address, size, value, release_clock(order)});
    }
    observe(1);
    note("store", address, value);
  }

  // One atomic read-modify-write; f(old, &new) returns whether to write, which makes it a load of order `failure` if
  // not. A full barrier, unless a mutant says otherwise.
  template <class F>
  std::uint64_t modify(void* address, std::size_t size, std::memory_order order, std::memory_order failure,
                       bool is_barrier, F&& f) {
    schedule();
    if (is_barrier) {
      drain(self_);
    }
    Thread& me = threads_[self_];
    me.load_version = version_;
    const std::uint64_t old = read_memory(address, size);
    std::uint64_t value = old;
    const bool writes_back = f(old, value);
    acquire_if(writes_back ? order : failure, address);
    if (writes_back) {
      Clock clock = location(address);
      join(clock, release_clock(order));
      write_memory(address, size, value, clock);
    }
    observe(old);
    note(writes_back ? "modify" : "modify fails", address, value);
    return old;
  }

  WaitResult wait(const void* address, std::uint32_t expected, bool timed, bool compares) {
    schedule();
    drain(self_);
    Thread& me = threads_[self_];
    if (compares && read_memory(address, sizeof(expected)) != expected) {
      observe(2);
      note("wait finds a change", address, expected);
      return WaitResult::changed;
    }
    note("sleeps", address, expected);
    me.status = Status::asleep;
    me.address = address;
    me.timed = timed;
    me.result = WaitResult::woken;
    schedule();
    observe(static_cast<std::uint64_t>(me.result));
    return me.result;
  }

  int wake(const void* address, int count) {
    schedule();
    drain(self_);
    int woken = 0;
    for (Thread& thread : threads_) {
      if (thread.status == Status::asleep && thread.address == address && woken < count) {
        thread.status = Status::runnable;
        ++woken;
      }
    }
    observe(static_cast<std::uint64_t>(woken));
    note("wake", address, static_cast<std::uint64_t>(woken));
    return woken;
  }

  // Every thread's stores so far reach memory.
  void barrier_everywhere() {
    schedule();
    for (std::size_t thread = 0; thread < bodies_.size(); ++thread) {
      drain(thread);
    }
    observe(8);
    note("barrier everywhere", nullptr, 0);
  }

  // Nothing to do until somebody writes, or until nobody else can.
  void pause() {
    threads_[self_].status = Status::paused;
    observe(3);
    schedule();
  }

  // Plain data: no step, but a race if nothing orders it after the other threads' accesses.
  void plain_read(const void* address, std::size_t bytes) {
    for_each_granule(address, bytes, [&](Shadow& shadow) {
      if (shadow.writer != no_thread && shadow.writer != self_ && shadow.written_at > clock_of(self_)[shadow.writer]) {
        race(address);
      }
      shadow.read_at[self_] = clock_of(self_)[self_];
    });
    observe(digest(0, address, bytes));
  }

  void plain_write(const void* address, std::size_t bytes) {
    for_each_granule(address, bytes, [&](Shadow& shadow) {
      bool raced =
          shadow.writer != no_thread && shadow.writer != self_ && shadow.written_at > clock_of(self_)[shadow.writer];
      for (std::size_t thread = 0; thread < max_threads; ++thread) {
        raced = raced || (thread != self_ && shadow.read_at[thread] > clock_of(self_)[thread]);
      }
      if (raced) {
        race(address);
      }
      shadow.writer = self_;
      shadow.written_at = clock_of(self_)[self_];
    });
    observe(4);
  }

  // A place where the running thread may be killed although nobody else can look.
  void kill_point() {
    if (self_ != options_.killable || killed_) {
      return;
    }
    const bool dies = choose(2) == 1;
    if (pruned_ || !failure_.empty()) {
      leave();
    }
    if (dies) {
      kill(self_);
      schedule();
    }
  }

  // The running thread's whole local state is `values`, which also tell this place in its code from the others: what it
  // read before no longer tells states apart.
  void forget_all_but(std::initializer_list<std::uint64_t> values) {
    threads_[self_].history = forgotten;
    for (const std::uint64_t value : values) {
      observe(value);
    }
  }

  // The notice of a death comes after every store of the dead.
  bool is_dead(std::size_t thread) {
    const bool dead = killed_ && thread == options_.killable && threads_[thread].buffer.empty();
    if (dead && self_ != no_thread) {
      join(clock_of(self_), clock_of(thread));
    }
    if (self_ != no_thread) {
      observe(dead ? 6 : 5);
    }
    return dead;
  }
  bool was_killed() const { return killed_; }

  void fail(const std::string& what) {
    if (failure_.empty()) {
      failure_ = what;
    }
    if (self_ != no_thread) {
      leave();
    }
  }

 private:
  enum class Status : std::uint8_t { runnable, asleep, paused, finished, killed };

  struct Buffered {
    void* address;
    std::size_t size;
    std::uint64_t value;
    Clock clock;
  };

  struct Thread {
    Status status = Status::finished;
    const void* address = nullptr;
    bool timed = false;
    WaitResult result = WaitResult::woken;
    std::uint64_t load_version = 0;
    std::uint64_t history = 0;
    std::deque<Buffered> buffer;
    Clock clock{};
  };

  struct Shadow {
    std::size_t writer = no_thread;
    std::uint32_t written_at = 0;
    Clock read_at{};
  };

  enum class ActionKind : std::uint8_t { run, flush, kill, time_out };
  struct Action {
    ActionKind kind;
    std::size_t thread;
  };

  struct Choice {
    std::size_t taken;
    std::size_t among;
  };

  static constexpr std::size_t no_entry = ~std::size_t{0};
  // Unlike any that a value of a check's could be mixed with to the history of a thread that has not begun.
  static constexpr std::uint64_t forgotten = 0xd1b54a32d192ed03ULL;
  static constexpr std::size_t granule_bytes = 4;

  // ---- one execution ----

  void execute(const std::function<void()>& set_up, const std::function<void()>& finish) {
    reset();
    set_up();
    schedule_from_outside();
    self_ = no_thread;
    if (failure_.empty() && !pruned_) {
      finish();
    }
  }

  void reset() {
    std::memset(arena_.data(), 0, arena_.size());
    shadows_.assign(arena_.size() / granule_bytes, Shadow{});
    locations_.assign(arena_.size() / granule_bytes, Clock{});
    fibers_.resize(bodies_.size());
    for (std::size_t thread = 0; thread < max_threads; ++thread) {
      threads_[thread] = Thread{};
      threads_[thread].clock[thread] = 1;
      if (thread < bodies_.size()) {
        threads_[thread].status = Status::runnable;
        fibers_[thread].restart(&Explorer::fiber_main);
      }
    }
    failure_.clear();
    trace_.clear();
    depth_ = 0;
    steps_ = 0;
    preemptions_ = 0;
    version_ = 1;
    killed_ = false;
    pruned_ = false;
    self_ = no_thread;
  }

  static void fiber_main() {
    Explorer& explorer = *current;
    explorer.observe(7);
    explorer.bodies_[explorer.self_]();
    explorer.threads_[explorer.self_].status = Status::finished;
    explorer.schedule();
  }

  void schedule_from_outside() {
    const std::size_t next = pick_next();
    if (next != no_thread) {
      self_ = next;
      Fiber::resume(outside_, fibers_[next]);
    }
  }

  // Called by the running thread before each step: returns when it is its turn.
  void schedule() {
    const std::size_t next = pick_next();
    if (next == no_thread) {
      leave();
    }
    if (next != self_) {
      const std::size_t before = self_;
      self_ = next;
      Fiber::resume(fibers_[before], fibers_[next]);
    }
  }

  void leave() {
    const std::size_t before = self_;
    self_ = no_thread;
    Fiber::resume(fibers_[before], outside_);
  }

  // Takes choices until one runs a thread; no_thread at the end of the execution.
  std::size_t pick_next() {
    while (true) {
      if (++steps_ > options_.max_steps) {
        failure_ = "livelock: no end after " + std::to_string(options_.max_steps) + " steps";
        return no_thread;
      }
      collect_actions();
      if (actions_.empty()) {
        report_deadlock();
        return no_thread;
      }
      const std::size_t taken = choose(actions_.size());
      if (pruned_ || !failure_.empty()) {
        return no_thread;
      }
      const Action action = actions_[taken];
      if (action.kind == ActionKind::run) {
        preemptions_ += action.thread != self_ && self_ != no_thread && can_run(threads_[self_]) ? 1 : 0;
        threads_[action.thread].status = Status::runnable;
        return action.thread;
      }
      apply(action);
    }
  }

  void apply(const Action& action) {
    Thread& thread = threads_[action.thread];
    if (action.kind == ActionKind::flush) {
      trace("T" + std::to_string(action.thread) + "'s oldest buffered store reaches memory");
      flush_oldest(action.thread);
    } else if (action.kind == ActionKind::kill) {
      kill(action.thread);
    } else {
      trace("T" + std::to_string(action.thread) + "'s time is up");
      thread.result = WaitResult::timed_out;
      thread.status = Status::runnable;
    }
  }

  void kill(std::size_t thread) {
    trace("T" + std::to_string(thread) + " is killed");
    killed_ = true;
    threads_[thread].status = Status::killed;
  }

  bool can_run(const Thread& thread) const {
    return thread.status == Status::runnable || (thread.status == Status::paused && thread.load_version != version_);
  }

  void collect_actions() {
    actions_.clear();
    const bool may_go_on = self_ != no_thread && can_run(threads_[self_]);
    const bool may_switch = !may_go_on || preemptions_ < options_.max_preemptions;
    // The running thread first: then the first execution has the fewest switches, and its failures read best.
    if (may_go_on) {
      actions_.push_back({ActionKind::run, self_});
    }
    for (std::size_t thread = 0; thread < bodies_.size(); ++thread) {
      if (may_switch && thread != self_ && can_run(threads_[thread])) {
        actions_.push_back({ActionKind::run, thread});
      }
      if (!threads_[thread].buffer.empty()) {
        actions_.push_back({ActionKind::flush, thread});
      }
    }
    if (actions_.empty()) {
      collect_timeouts();
    }
    if (!actions_.empty() && options_.killable != no_thread && !killed_ &&
        threads_[options_.killable].status != Status::finished) {
      actions_.push_back({ActionKind::kill, options_.killable});
    }
  }

  void collect_timeouts() {
    for (std::size_t thread = 0; thread < bodies_.size(); ++thread) {
      if (threads_[thread].status == Status::asleep && threads_[thread].timed) {
        actions_.push_back({ActionKind::time_out, thread});
      } else if (threads_[thread].status == Status::paused) {
        actions_.push_back({ActionKind::run, thread});
      }
    }
  }

  void report_deadlock() {
    for (std::size_t thread = 0; thread < bodies_.size(); ++thread) {
      if (threads_[thread].status == Status::asleep) {
        failure_ = "deadlock: T" + std::to_string(thread) + " sleeps for ever on " + name(threads_[thread].address);
      }
    }
  }

  // ---- choices ----

  std::size_t choose(std::size_t among) {
    if (among == 1) {
      return 0;
    }
    if (depth_ < prefix_.size()) {
      return prefix_[depth_++].taken;
    }
    if (tracing_) {
      return 0;
    }
    if (!visited_.insert(state_digest()).second) {
      pruned_ = true;
      return 0;
    }
    if (visited_.size() > options_.max_states) {
      failure_ = "too many states";
      return 0;
    }
    prefix_.push_back({0, among});
    ++depth_;
    return 0;
  }

  bool next_prefix() {
    while (!prefix_.empty() && prefix_.back().taken + 1 == prefix_.back().among) {
      prefix_.pop_back();
    }
    if (prefix_.empty()) {
      return false;
    }
    ++prefix_.back().taken;
    return true;
  }

  std::uint64_t state_digest() const {
    std::uint64_t hash = digest(killed_ ? 1 : 0, arena_.data(), arena_.size());
    if (options_.max_preemptions != ~std::size_t{0}) {
      hash = mix(mix(hash, self_), preemptions_);
    }
    for (const Thread& thread : threads_) {
      hash = mix(hash, thread.history);
      hash = mix(hash, static_cast<std::uint64_t>(thread.status) * 4 + (thread.load_version == version_ ? 2U : 0U) +
                           (thread.timed ? 1U : 0U));
      for (std::size_t i = 0; options_.finds_races && i < max_threads; ++i) {
        hash = mix(hash, thread.clock[i]);
      }
      hash = mix(hash, thread.buffer.size());
      for (const Buffered& entry : thread.buffer) {
        hash = mix(mix(hash, reinterpret_cast<std::uintptr_t>(entry.address)), entry.value);
      }
    }
    return hash;
  }

  static std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
  }

  static std::uint64_t digest(std::uint64_t hash, const void* from, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(from);
    for (; bytes >= 8; bytes -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      hash = mix(hash, word + 1);
    }
    for (; bytes != 0; --bytes, ++at) {
      hash = mix(hash, static_cast<std::uint64_t>(*at) + 1);
    }
    return hash;
  }

  void observe(std::uint64_t value) { threads_[self_].history = mix(threads_[self_].history, value + 1); }

  // ---- memory ----

  static std::uint64_t read_memory(const void* address, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, address, size);
    return value;
  }

  void write_memory(void* address, std::size_t size, std::uint64_t value, const Clock& clock) {
    if (read_memory(address, size) != value) {
      ++version_;
    }
    std::memcpy(address, &value, size);
    location(address) = clock;
  }

  void flush_oldest(std::size_t thread) {
    const Buffered entry = threads_[thread].buffer.front();
    threads_[thread].buffer.pop_front();
    write_memory(entry.address, entry.size, entry.value, entry.clock);
  }

  void drain(std::size_t thread) {
    while (!threads_[thread].buffer.empty()) {
      flush_oldest(thread);
    }
  }

  static std::size_t newest_buffered(const Thread& thread, const void* address) {
    for (std::size_t i = thread.buffer.size(); i-- != 0;) {
      if (thread.buffer[i].address == address) {
        return i;
      }
    }
    return no_entry;
  }

  // ---- what orders what ----

  Clock& clock_of(std::size_t thread) { return threads_[thread].clock; }

  static bool releases(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
  }

  static bool acquires(std::memory_order order) {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
  }

  static void join(Clock& into, const Clock& other) {
    for (std::size_t i = 0; i < max_threads; ++i) {
      into[i] = std::max(into[i], other[i]);
    }
  }

  // What a write of this order hands to its readers.
  Clock release_clock(std::memory_order order) {
    if (!releases(order)) {
      return Clock{};
    }
    const Clock clock = clock_of(self_);
    ++clock_of(self_)[self_];
    return clock;
  }

  void acquire_if(std::memory_order order, const void* address) {
    if (acquires(order)) {
      join(clock_of(self_), location(address));
    }
  }

  // Everything shared lies in the arena.
  std::size_t offset(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - arena_.data());
  }

  Clock& location(const void* address) { return locations_[offset(address) / granule_bytes]; }

  template <class F>
  void for_each_granule(const void* address, std::size_t bytes, F&& f) {
    for (std::size_t at = offset(address); at < offset(address) + bytes; at += granule_bytes) {
      f(shadows_[at / granule_bytes]);
    }
  }

  void race(const void* address) {
    fail("race: T" + std::to_string(self_) + " and another thread on plain data at " + name(address));
  }

  // ---- telling ----

  std::string name(const void* address) const { return "+" + std::to_string(offset(address)); }

  void trace(const std::string& line) {
    if (tracing_) {
      trace_.push_back(line);
    }
  }

  void note(const char* what, const void* address, std::uint64_t value) {
    if (tracing_) {
      trace_.push_back("T" + std::to_string(self_) + " " + what + " " + name(address) + " " + std::to_string(value));
    }
  }

  Options options_;
  std::span<std::byte> arena_;
  std::vector<std::function<void()>> bodies_;
  std::vector<Fiber> fibers_;
  Fiber outside_;
  std::array<Thread, max_threads> threads_;
  std::vector<Shadow> shadows_;
  std::vector<Clock> locations_;
  std::vector<Action> actions_;
  std::vector<Choice> prefix_;
  std::unordered_set<std::uint64_t> visited_;
  std::vector<std::string> trace_;
  std::string failure_;
  std::size_t self_ = no_thread;
  std::size_t depth_ = 0;
  std::size_t steps_ = 0;
  std::size_t preemptions_ = 0;
  std::uint64_t version_ = 1;
  bool killed_ = false;
  bool pruned_ = false;
  bool tracing_ = false;
};

// Fails the running check, with its schedule, unless the condition holds.
inline void require(bool condition, const char* what) {
  if (!condition) {
    Explorer::current->fail(what);
  }
}

// Says at the head of a loop that the thread's local state is just these values. A wrong list hides executions: name
// them all.
inline void forget_all_but(std::initializer_list<std::uint64_t> values) { Explorer::current->forget_all_but(values); }

// Runs the bodies, each one thread, over a fresh State for every interleaving, and finish(state) after each. State must
// need no destructor; it is built in zeroed memory that always lies at the same address.
template <class State>
Outcome explore(const Options& options, const std::vector<std::function<void(State&)>>& bodies,
                const std::function<void(State&)>& finish) {
  static_assert(std::is_trivially_destructible_v<State>);
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> arena((sizeof(State) + sizeof(Line) - 1) / sizeof(Line));
  State* const state = reinterpret_cast<State*>(arena.data());
  std::vector<std::function<void()>> bound;
  for (const auto& body : bodies) {
    bound.emplace_back([&body, state] { body(*state); });
  }
  Explorer explorer(options, std::as_writable_bytes(std::span(arena)));
  return explorer.run([state] { new (state) State{}; }, bound, [&] { finish(*state); });
}

}  // namespace farsum::model
