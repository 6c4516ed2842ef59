#include "transport/rdma/card_waits.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/clock.hpp"
#include "os/futex.hpp"
#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t look_interval_ns = 100'000'000;
constexpr int look_interval_ms = 100;
constexpr int rest_ms = 1;

// Acquire: pairs with the release of whoever ended the last operation.
bool is_over(const CardCompletion& completion) { return completion.pending.load(std::memory_order_acquire) == 0; }

}  // namespace

CardWaits::~CardWaits() { close(bell_); }

Status CardWaits::wait(const CardCompletion& completion, FunctionRef<Status()> look) {
  if (is_over(completion) || spin(completion)) return {};
  return sleep(completion, look);
}

bool CardWaits::spin(const CardCompletion& completion) {
  const std::uint64_t begin = monotonic_ns();
  do {
    {
      const MutexGuard lock(work_.asking_mutex());
      for (int i = 0; i < 8 && !is_over(completion); ++i) work_.progress();
    }
    if (is_over(completion)) return true;
    SystemAtomics::pause();
  } while (monotonic_ns() - begin < spin_ns_);
  return false;
}

Status CardWaits::sleep(const CardCompletion& completion, FunctionRef<Status()> look) {
  for (std::uint64_t last_look = monotonic_ns();;) {
    nap(completion);
    if (is_over(completion)) return {};
    const std::uint64_t now = monotonic_ns();
    if (now - last_look < look_interval_ns) continue;
    last_look = now;
    Status answer = look();
    if (is_over(completion)) return {};
    if (!answer.is_ok()) return answer;
  }
}

void CardWaits::nap(const CardCompletion& completion) {
  // It prepares before the look at the watcher: one that leaves afterwards changes the key.
  const std::uint32_t key = ended_.prepare();
  bool watches = false;
  {
    const MutexGuard lock(work_.asking_mutex());
    if (!is_watched_) watches = is_watched_ = true;
  }
  if (!watches && !is_over(completion)) {
    ended_.wait(key, look_interval_ns);
    return;
  }
  ended_.cancel();
  if (watches) watch(completion);
}

void CardWaits::watch(const CardCompletion& completion) {
  const std::uint64_t begin = monotonic_ns();
  while (doze(completion) && monotonic_ns() - begin < look_interval_ns) {
  }
  {
    const MutexGuard lock(work_.asking_mutex());
    is_watched_ = false;
  }
  ended_.notify_all();
}

// False: there is nothing to watch for any more.
bool CardWaits::doze(const CardCompletion& completion) {
  bool is_armed = false;
  int round = 0;
  {
    const MutexGuard lock(work_.asking_mutex());
    while (round < most_rounds && !is_over(completion) && work_.progress() != 0) ++round;
    if (is_over(completion)) return false;
    // An event that is there already: progress comes first, but not for ever.
    is_armed = round < most_rounds && work_.arm_asking();
    if (!is_armed && round < most_rounds) return true;
    watcher_sleeps_ = true;
  }
  std::array<pollfd, 2> both = {{{bell_, POLLIN, 0}, {work_.asking_descriptor(), POLLIN, 0}}};
  poll(both.data(), is_armed ? 2 : 1, is_armed ? look_interval_ms : rest_ms);
  eventfd_t rings = 0;
  if (both[0].revents != 0) eventfd_read(bell_, &rings);
  const MutexGuard lock(work_.asking_mutex());
  watcher_sleeps_ = false;
  work_.progress();
  return !is_over(completion);
}

void CardWaits::note_ended() {
  ended_.notify_all();
  if (std::exchange(watcher_sleeps_, false)) eventfd_write(bell_, 1);
}

}  // namespace farsum
