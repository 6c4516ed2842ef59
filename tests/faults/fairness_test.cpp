// Window locks and mutexes are handed over in the order of arrival. A rank that waits in the queue is called back
// through the idle hook, so it knows a moment at which it was in the queue; from then on nobody may get the lock twice
// before it does.
#include <sched.h>

#include <algorithm>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "job.hpp"

namespace farsum::faults {
namespace {

constexpr int contenders = 6;
constexpr std::uint64_t acquisitions = 400;  // by each

// Counts in Control::words.
constexpr std::size_t grants = 0;
constexpr std::size_t overtaken = 1;
constexpr std::size_t queued_waits = 2;
constexpr std::size_t queued_now = 3;
constexpr std::size_t finished = 4;

struct Waiting {
  const Rank* self;
  bool inside = false;       // a lock call is under way
  bool seen = false;         // and has been in the queue
  std::uint64_t grants = 0;  // when it was first seen there
};

void while_queued(void* user) {
  auto& waiting = *static_cast<Waiting*>(user);
  if (!waiting.inside || waiting.seen) return;
  waiting.seen = true;
  waiting.self->control->words[queued_now].fetch_add(1);
  waiting.grants = waiting.self->control->words[grants].load();
}

// Takes the lock again and again and notes how many others got it while this rank was in the queue.
template <class Lock, class Unlock>
bool contend(const Rank& self, Waiting& waiting, Lock&& lock, Unlock&& unlock) {
  for (std::uint64_t i = 0; i < acquisitions; ++i) {
    waiting.inside = true;
    waiting.seen = false;
    if (!self.ok(lock())) return false;
    waiting.inside = false;
    const std::uint64_t before = self.control->words[grants].fetch_add(1);
    if (waiting.seen) {
      self.control->words[queued_waits].fetch_add(1);
      self.control->words[queued_now].fetch_sub(1);
      const std::uint64_t passed = before - waiting.grants;
      // Each of the others was before us at most once.
      if (passed >= static_cast<std::uint64_t>(self.size)) self.control->words[overtaken].fetch_add(1);
      if (passed > self.words().value) self.words().value.store(passed);
    }
    self.words().rounds.store(i + 1);
    // Held until all others have queued up, so that each hand-over is a choice.
    const auto others = static_cast<std::uint64_t>(self.size) - 1;
    while (self.control->words[queued_now].load() + self.control->words[finished].load() < others) sched_yield();
    if (i + 1 == acquisitions) self.control->words[finished].fetch_add(1);
    if (!self.ok(unlock())) return false;
  }
  return true;
}

farsum_init_options with_hook(Waiting& waiting) {
  farsum_init_options options{};
  options.struct_bytes = sizeof options;
  options.idle = while_queued;
  options.idle_user = &waiting;
  options.idle_gap_ns = 100'000;
  return options;
}

int contend_for_window(const Rank& self) {
  Waiting waiting{&self};
  farsum_init_options options = with_hook(waiting);
  farsum_window window{};
  void* memory = nullptr;
  const bool good = self.ok(self.init(&options)) &&
                    self.ok(farsum_window_allocate(farsum_world(), 64, nullptr, &memory, &window)) &&
                    self.ok(farsum_barrier(farsum_world())) &&
                    contend(
                        self, waiting, [&] { return farsum_lock(window, 0, FARSUM_LOCK_EXCLUSIVE); },
                        [&] { return farsum_unlock(window, 0); }) &&
                    self.ok(farsum_window_free(&window)) && self.ok(farsum_finalize());
  return good ? 0 : 1;
}

int contend_for_mutex(const Rank& self) {
  Waiting waiting{&self};
  farsum_init_options options = with_hook(waiting);
  farsum_mutex mutex{};
  const bool good = self.ok(self.init(&options)) && self.ok(farsum_mutex_create(farsum_world(), 1, &mutex)) &&
                    self.ok(farsum_barrier(farsum_world())) &&
                    contend(
                        self, waiting, [&] { return farsum_mutex_lock(mutex, 0, 0); },
                        [&] { return farsum_mutex_unlock(mutex, 0, 0); }) &&
                    self.ok(farsum_mutex_free(&mutex)) && self.ok(farsum_finalize());
  return good ? 0 : 1;
}

void judge(int (*body)(const Rank&)) {
  JobOptions options;
  options.ranks = contenders;
  // To be in the queue, and seen there, soon.
  options.environment = {{"FARSUM_SPIN_NS", "0"}};
  Job job(options);
  job.start(body);
  std::uint64_t most = 0;
  for (int rank = 0; rank < job.size(); ++rank) {
    EXPECT_EQ(job.wait_rank(rank, now_ns() + 90'000'000'000), 0) << job.words(rank).text.data();
    most = std::max(most, job.words(rank).value.load());
  }
  EXPECT_EQ(job.control().words[grants], contenders * acquisitions);
  EXPECT_GT(job.control().words[queued_waits], contenders * acquisitions / 2) << "the lock was hardly contended";
  EXPECT_EQ(job.control().words[overtaken], 0U) << "at most " << most << " others came first";
  testing::Test::RecordProperty("most_others_first", static_cast<int>(most));
  EXPECT_EQ(job.leftovers(), "");
}

// Takes seconds: ranks queue one after the other.
TEST(WindowLock, is_handed_over_in_the_order_of_arrival) { judge(contend_for_window); }
// Takes seconds: ranks queue one after the other.
TEST(Mutex, is_handed_over_in_the_order_of_arrival) { judge(contend_for_mutex); }

}  // namespace
}  // namespace farsum::faults
