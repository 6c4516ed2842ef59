// Ranks that are stopped (SIGSTOP) while they contend for a lock, wherever that finds them: waiting, holding it, or
// between. Whoever has the lock when it is stopped holds the others up until it goes on, and nothing else of it does.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "capi/global.hpp"
#include "job.hpp"
#include "lockfree/shared_lock.hpp"

namespace farsum::faults {
namespace {

constexpr int contenders = 4;
constexpr int stops = 24;
constexpr std::uint64_t rounds_after_a_stop = 20;

// In Control::words.
constexpr std::size_t lock_at = 0;  // in the node's memory
constexpr std::size_t counted = 1;  // under the lock, by all; changed by a load and a store, as only its holder may

int contend(const Rank& self) {
  farsum_window window{};
  void* memory = nullptr;
  if (!self.ok(self.init()) || !self.ok(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window)))
    return 1;
  auto& words = self.control->words;
  const auto& shared = capi::find_window(window)->object->window->parts().shared;
  words[lock_at] = capi::live_context()->segment().offset_of(&shared[0].lock());
  if (!self.ok(farsum_barrier(farsum_world()))) return 1;
  self.words().ready = 1;
  while (self.control->stop == 0) {
    if (!self.ok(farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE))) return 1;
    words[counted].store(words[counted].load() + 1);
    if (!self.ok(farsum_unlock(window, 0))) return 1;
    self.words().rounds.fetch_add(1);
  }
  const bool good =
      self.ok(farsum_barrier(farsum_world())) && self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize());
  return good ? 0 : 1;
}

std::uint64_t rounds_but_of(Job& job, int rank) {
  std::uint64_t sum = 0;
  for (int other = 0; other < job.size(); ++other) sum += other == rank ? 0 : job.words(other).rounds.load();
  return sum;
}

bool stop(Job& job, int rank) {
  int status = 0;
  return kill(job.pid(rank), SIGSTOP) == 0 && waitpid(job.pid(rank), &status, WUNTRACED | __WALL) == job.pid(rank) &&
         WIFSTOPPED(status);
}

TEST(RanksStoppedAtALock, hold_the_others_up_only_with_what_they_hold_and_get_it_when_they_go_on) {
  JobOptions options;
  options.ranks = contenders;
  Job job(options);
  job.start(contend);
  ASSERT_TRUE(job.wait_for([&] {
    for (int rank = 0; rank < contenders; ++rank) {
      if (job.words(rank).ready == 0) return false;
    }
    return true;
  })) << job.words(0).text.data();
  const std::uint64_t at = job.control().words[lock_at];
  ASSERT_TRUE(job.segment().reach({at, SharedLockState::footprint(contenders)}).is_ok());
  const auto& lock = *reinterpret_cast<const volatile SharedLockState*>(job.segment().at(at));
  for (int time = 0; time < stops; ++time) {
    const int victim = time % contenders;
    const std::uint64_t of_victim = job.words(victim).rounds;
    ASSERT_TRUE(stop(job, victim));
    const auto id = static_cast<std::uint32_t>(victim) + 1;
    const std::uint64_t before = rounds_but_of(job, victim);
    EXPECT_TRUE(job.wait_for([&] {
      const auto& state = const_cast<const SharedLockState&>(lock);
      return state.queue.exclusive_holder == id || state.guard.holder() == id ||
             rounds_but_of(job, victim) >= before + rounds_after_a_stop;
    })) << "rank "
        << victim << " has nothing, and the others wait";
    ASSERT_EQ(kill(job.pid(victim), SIGCONT), 0);
    ASSERT_TRUE(job.wait_for([&] { return job.words(victim).rounds >= of_victim + 2; }))
        << "rank " << victim << " goes on, and never gets the lock: " << job.words(victim).text.data();
  }
  job.control().stop = 1;
  for (int rank = 0; rank < contenders; ++rank)
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 60'000'000'000), 0) << job.words(rank).text.data();
  EXPECT_EQ(job.control().words[counted], rounds_but_of(job, -1));
  EXPECT_EQ(job.leftovers(), "");
}

}  // namespace
}  // namespace farsum::faults
