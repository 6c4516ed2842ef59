#include "progress/thread_waiter.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/futex.hpp"
#include "progress/yield_course.hpp"

namespace farsum {
namespace {

constexpr int first_looks = 24;
constexpr int looks_at_once = 8;
// So many take a network 4 us where nothing has come.
constexpr std::uint64_t longest_looks_ns = 12'000;
// For so long a thread looks for a reply of another host before it lets others of its processor run, and again before
// the next time. Its own agent may be among them, for whom somebody waits: Linux does not interrupt a thread for one
// that has just had its share. What is near comes sooner, or the thread sleeps.
constexpr std::uint64_t between_yields_ns = 12'000;
// Whoever takes the processor for longer computes there, and gets it at the end of a slice anyway: then the thread
// keeps its own for so many times as long.
constexpr std::uint64_t shortest_slice_ns = 1'000'000;
constexpr std::uint64_t looks_for_each_slice = 50;
constexpr std::uint64_t look_interval_ns = 100'000'000;
// The idle hook of another runtime is called often at first, then less.
constexpr std::uint64_t first_idle_gap_ns = 20'000;
// Through so long a queue, at the pace at which it has just moved, a thread would have to look so many times as long as
// a wake-up lasts: then it sleeps.
constexpr std::uint64_t most_looks_in_queue = 8;
constexpr std::uint64_t first_idle_in_queue_ns = 160'000;
// A reply of another host has not come after so few looks, and takes longer than the hook: a program of short waits,
// one behind the other, has it called there, and not between them. Which host it is that is waited for is not known.
constexpr int looks_before_idle = 4;
constexpr std::uint64_t idle_while_looking_gap_ns = 30'000;

// Set by note_come(); a wait is within one thread.
thread_local bool has_come_meanwhile = false;

// What came of the waits in which this thread let others run.
thread_local YieldCourse yield_course;

// When the thread may next let others of its processor run.
thread_local std::uint64_t yields_no_earlier_ns = 0;

// Returns when it was back.
std::uint64_t let_others_run(std::uint64_t now) {
  sched_yield();
  const std::uint64_t back = monotonic_ns();
  const std::uint64_t away_ns = back - now;
  yields_no_earlier_ns = back + (away_ns < shortest_slice_ns ? between_yields_ns : looks_for_each_slice * away_ns);
  return back;
}

}  // namespace

void ThreadWaiter::note_come() { has_come_meanwhile = true; }

Status ThreadWaiter::check_peers(const char* doing) {
  if (before_look_) before_look_();
  const std::uint32_t dead = watch_.look();
  if (dead == 0) return {};
  return {Code::peer_failed, fmt::format("{}: {}", doing, watch_.fate_of(dead - 1))};
}

void ThreadWaiter::be_idle(std::uint64_t longest_ago_ns) {
  if (!options_.idle || quiet_.load(std::memory_order_relaxed) != 0) return;
  // Relaxed: two threads that call it at once do no harm.
  const std::uint64_t now = options_.now_ns();
  if (now - last_idle_ns_.load(std::memory_order_relaxed) < longest_ago_ns) return;
  last_idle_ns_.store(now, std::memory_order_relaxed);
  options_.idle();
}

// Whether done() came true while it looked for about as long as a wake-up costs.
bool ThreadWaiter::look_for(FunctionRef<bool()> done, const Looking& looking) {
  if (!would_look()) return false;
  // Most of what is waited for comes within a microsecond: the clock is not read for it.
  for (int i = 0; i < first_looks; ++i) {
    if (done()) return true;
    SystemAtomics::pause();
    if (i + 1 == looks_before_idle && looking.is_remote) be_idle(idle_while_looking_gap_ns);
  }
  std::uint64_t limit_ns = looking.ns;
  std::uint64_t begin = monotonic_ns();
  std::uint64_t now = begin;
  std::uint64_t yield_at = begin + between_yields_ns;
  while (now - begin < limit_ns) {
    for (int i = 0; i < looks_at_once; ++i) {
      if (done()) return true;
      SystemAtomics::pause();
    }
    const std::uint64_t looked_ns = monotonic_ns() - now;
    now += looked_ns;
    // What it did there, or others on its processor, is no looking.
    if (looked_ns > longest_looks_ns) begin += looked_ns - longest_looks_ns;
    if (std::exchange(has_come_meanwhile, false)) {
      limit_ns = looking.in_a_stream_ns;
      begin = now;
    }
    if (!looking.is_remote || now < std::max(yield_at, yields_no_earlier_ns)) continue;
    const std::uint64_t back = let_others_run(now);
    begin += back - now;  // nor what others have used
    now = back;
    yield_at = now + between_yields_ns;
  }
  return false;
}

// On a crowded node: whether done() came true while the thread let others run, perhaps the one that it waits for.
bool ThreadWaiter::yield_for(FunctionRef<bool()> done, const Looking& looking) {
  if (!options_.is_crowded || options_.spin_ns == 0 || !yield_course.yields()) return false;
  const std::uint64_t begin = options_.now_ns();
  std::uint64_t yields = 0;
  bool has_come = false;
  do {
    options_.yield();
    ++yields;
    has_come = done();
    if (!has_come) be_idle(looking.is_remote ? idle_while_looking_gap_ns : gap_ns());
  } while (!has_come && options_.now_ns() - begin < YieldCourse::longest_ns);
  // Relaxed: a count.
  yielded_.fetch_add(yields, std::memory_order_relaxed);
  yield_course.ended(has_come);
  return has_come;
}

// Looks by look(), which does what it can for done() to come true, then sleeps with `sleep(gap)`, which returns at once
// where done() has come true. Between two calls of the idle hook done() is looked at.
Status ThreadWaiter::look_and_sleep(FunctionRef<bool()> done, FunctionRef<bool()> look,
                                    FunctionRef<void(std::uint64_t)> sleep, const char* doing, const Looking& looking) {
  if (look_for(look, looking) || yield_for(look, looking)) return {};
  if (Status status = check_known_deaths(done, doing); !status.is_ok()) return status;
  std::uint64_t gap = options_.idle ? std::min(first_idle_gap_ns, gap_ns()) : gap_ns();
  std::uint64_t last_look = monotonic_ns();
  std::uint64_t began_ns = options_.told_after_ns == 0 ? 0 : options_.now_ns();
  for (;;) {
    be_idle(0);
    sleep(gap);
    if (done()) return {};
    if (began_ns != 0) tell_of_long_wait(began_ns, doing);
    gap = std::min(gap * 2, gap_ns());
    if (Status status = check_now_and_then(last_look, done, doing); !status.is_ok()) return status;
  }
}

// Being late is no error, and so a rank that waits for one which has called something else is told nothing. It tells
// the user. Relaxed: two threads that tell at once do no harm.
void ThreadWaiter::tell_of_long_wait(std::uint64_t& began_ns, const char* doing) {
  const std::uint64_t waited_ns = options_.now_ns() - began_ns;
  const std::uint64_t least_ns = told_after_ns_.load(std::memory_order_relaxed);
  if (waited_ns < least_ns) return;
  began_ns = 0;
  told_after_ns_.store(2 * least_ns, std::memory_order_relaxed);
  options_.tell_of_wait(doing, waited_ns);
}

// A death that is known already is not slept upon.
Status ThreadWaiter::check_known_deaths(FunctionRef<bool()> done, const char* doing) {
  if (watch_.known_dead() == 0) return {};
  Status status = check_peers(doing);
  // It may have come true just before the death.
  return done() ? Status() : std::move(status);
}

Status ThreadWaiter::check_now_and_then(std::uint64_t& last_look, FunctionRef<bool()> done, const char* doing) {
  const std::uint64_t now = monotonic_ns();
  if (now - last_look < look_interval_ns && watch_.known_dead() == 0) return {};
  last_look = now;
  Status status = check_peers(doing);
  return done() ? Status() : std::move(status);
}

Status ThreadWaiter::wait(EventCount& where, FunctionRef<bool()> done, const char* doing) {
  return wait_looking(
      where, done, done, [] {}, doing);
}

// Of one wait: what the agent would have to be woken for, until the thread sleeps. It does not go on attending between
// two waits that are close: what comes for a thread which does not wait again so soon would lie there.
class ThreadWaiter::Serving {
 public:
  explicit Serving(const Attending& attending) : attending_(attending) {}
  ~Serving() { end(); }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // A thread that attends already goes on with that, and is not ended. One that was missed begins anew.
  void serve() {
    attends_ = attending_.attend();
    if (attends_) return;
    attends_ = has_begun_ = attending_.begin();
    if (has_begun_) attending_.attend();
  }
  // A thread that sleeps serves nothing, for whatever reason it attends.
  void leave_to_agent() {
    has_begun_ = false;
    if (std::exchange(attends_, false)) attending_.end();
  }
  void end() {
    if (std::exchange(has_begun_, false)) attending_.end();
  }

 private:
  const Attending& attending_;
  bool attends_ = false;
  bool has_begun_ = false;  // for this wait
};

Status ThreadWaiter::wait_served(EventCount& where, FunctionRef<bool()> done, const char* doing) {
  if (!attending_.begin || !would_look()) return wait(where, done, doing);
  Serving serving(attending_);
  // What is there already costs no system call, which to begin and to end does.
  const auto look = [&] {
    serving.serve();
    return done();
  };
  return wait_looking(
      where, done, look, [&] { serving.leave_to_agent(); }, doing);
}

Status ThreadWaiter::wait_looking(EventCount& where, FunctionRef<bool()> done, FunctionRef<bool()> look,
                                  FunctionRef<void()> end_looking, const char* doing) {
  has_come_meanwhile = false;
  if (done()) return {};
  const bool for_replies = &where == &own_ && before_sleep_;
  Counted looker(lookers_);
  Counted sleeper(sleepers_);
  // Where all are on one node the agent takes in no replies for its threads.
  if (for_replies && are_replies_remote()) looker.begin();
  const auto sleep = [&](std::uint64_t gap) {
    looker.end();
    end_looking();
    const std::uint32_t key = where.prepare();
    // What comes from here on is taken in by the agent, who then wakes whoever it sees waiting: seq_cst, as the look.
    // Once for the whole wait: the agent wakes its sleepers at each look, and one that had it look again before each
    // sleep would keep it and itself awake.
    if (for_replies && sleeper.begin()) before_sleep_();
    if (done()) {
      where.cancel();
    } else {
      slept_.fetch_add(1, std::memory_order_relaxed);
      where.wait(key, gap);
    }
  };
  return look_and_sleep(done, look, sleep, doing, for_replies ? looking_for_replies() : looking_here());
}

Status ThreadWaiter::looked_in_vain(const char* doing) {
  const std::uint64_t now = monotonic_ns();
  // Relaxed: two threads that look at the peers at once do no harm.
  if (now - last_vain_look_ns_.load(std::memory_order_relaxed) < look_interval_ns && watch_.known_dead() == 0)
    return {};
  last_vain_look_ns_.store(now, std::memory_order_relaxed);
  return check_peers(doing);
}

// Looks on while the queue moves: the sleep of one who is next soon would cost all behind it a wake-up, at the end of
// which the others would be asleep, too.
bool ThreadWaiter::look_for_grant(LockGrant& grant, std::uint64_t& idle_at) {
  if (!would_look()) return false;
  const auto has_come = [&] { return grant.has_come(); };
  std::uint32_t turns = grant.turns();
  while (!look_for(has_come, looking_here())) {
    if (monotonic_ns() >= idle_at) be_idle_in_queue(idle_at);
    const std::uint32_t turns_now = grant.turns();
    const std::uint32_t moved = turns_now - std::exchange(turns, turns_now);
    const bool is_far_back = grant.turns_before() > std::uint64_t{moved} * most_looks_in_queue;
    if (moved == 0 || is_far_back || watch_.known_dead() != 0) return grant.has_come();
  }
  return true;
}

// Runs the hook, and says when it is due again.
void ThreadWaiter::be_idle_in_queue(std::uint64_t& idle_at) {
  be_idle(0);
  idle_at = monotonic_ns() + first_idle_in_queue_ns;
}

// Waits as wait() does, but the library of an MPI program has its turn later: it takes longer than a lock is held where
// all is well, and whoever stands behind this thread would wait for it.
Status ThreadWaiter::wait_for_grant(LockGrant& grant, const char* doing) {
  has_come_meanwhile = false;
  const auto has_come = [&] { return grant.has_come(); };
  std::uint64_t last_look = monotonic_ns();
  std::uint64_t idle_at = last_look + first_idle_in_queue_ns;
  while (!has_come() && !look_for_grant(grant, idle_at)) {
    if (Status status = check_known_deaths(has_come, doing); !status.is_ok()) return status;
    if (Status status = sleep_for_grant(grant, idle_at, last_look, doing); !status.is_ok()) return status;
  }
  return {};
}

// Sleeps until the grant has come, or the thread is called to look for it.
Status ThreadWaiter::sleep_for_grant(LockGrant& grant, std::uint64_t& idle_at, std::uint64_t& last_look,
                                     const char* doing) {
  const auto when_called = would_look() ? LockGrant::WhenCalled::looks : LockGrant::WhenCalled::sleeps_on;
  std::uint64_t gap = options_.idle ? std::min(first_idle_in_queue_ns, gap_ns()) : gap_ns();
  while (grant.fall_asleep(when_called)) {
    slept_.fetch_add(1, std::memory_order_relaxed);
    grant.sleep(gap);
    if (grant.has_come()) return {};
    // Where the hook is due, a call is answered behind it: a thread that runs it does not look.
    if (monotonic_ns() < idle_at && grant.answer_call()) return {};
    be_idle_in_queue(idle_at);
    if (Status status = check_now_and_then(
            last_look, [&] { return grant.has_come(); }, doing);
        !status.is_ok())
      return status;
    gap = std::min(gap * 2, gap_ns());
  }
  (void)grant.answer_call();
  return {};
}

}  // namespace farsum
