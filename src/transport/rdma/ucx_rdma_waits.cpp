// How threads wait for operations of UcxRdma, and how the agent looks after what comes by itself. Of the threads that
// sleep one watches UCX's descriptor; the others sleep until an operation has ended or the watcher leaves.
#include <poll.h>
#include <sys/eventfd.h>

#include <array>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "os/futex.hpp"
#include "transport/rdma/ucx_rdma.hpp"
#include "transport/rdma/ucx_rdma_parts.hpp"
#include "transport/ucx/ucx_calls.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t look_interval_ns = 100'000'000;
constexpr int look_interval_ms = 100;
constexpr int rest_ms = 1;

// Acquire: pairs with the release of whoever ended the last operation.
bool is_over(const CardCompletion& completion) { return completion.pending.load(std::memory_order_acquire) == 0; }

}  // namespace

// UCX works no more once the job is over.
unsigned UcxRdma::progress() {
  if (abandoned_) return 0;
  const unsigned found = context_->calls().worker_progress(asking_.handle);
  take_in_ended();
  return found;
}

Status UcxRdma::wait(const CardCompletion& completion, FunctionRef<Status()> look) {
  if (is_over(completion) || spin(completion)) return {};
  return sleep(completion, look);
}

bool UcxRdma::spin(const CardCompletion& completion) {
  const std::uint64_t begin = monotonic_ns();
  do {
    {
      const Inside inside(*this);
      for (int i = 0; i < 8 && !is_over(completion); ++i) progress();
    }
    if (is_over(completion)) return true;
    SystemAtomics::pause();
  } while (monotonic_ns() - begin < options_.spin_ns);
  return false;
}

Status UcxRdma::sleep(const CardCompletion& completion, FunctionRef<Status()> look) {
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

void UcxRdma::nap(const CardCompletion& completion) {
  // It prepares before the look at the watcher: one that leaves afterwards changes the key.
  const std::uint32_t key = ended_.prepare();
  bool watches = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_watched_) watches = is_watched_ = true;
  }
  if (!watches && !is_over(completion)) {
    ended_.wait(key, look_interval_ns);
    return;
  }
  ended_.cancel();
  if (watches) watch(completion);
}

void UcxRdma::watch(const CardCompletion& completion) {
  const std::uint64_t begin = monotonic_ns();
  while (doze(completion) && monotonic_ns() - begin < look_interval_ns) {
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_watched_ = false;
  }
  ended_.notify_all();
}

// False: there is nothing to watch for any more.
bool UcxRdma::doze(const CardCompletion& completion) {
  bool is_armed = false;
  int round = 0;
  {
    const Inside inside(*this);
    while (round < most_rounds && !is_over(completion) && progress() != 0) ++round;
    if (is_over(completion)) return false;
    // An event that is there already: progress comes first, but not for ever.
    is_armed = round < most_rounds && context_->calls().worker_arm(asking_.handle) == UCS_OK;
    if (!is_armed && round < most_rounds) return true;
    watcher_sleeps_ = true;
  }
  std::array<pollfd, 2> both = {{{bell_, POLLIN, 0}, {asking_.event_descriptor, POLLIN, 0}}};
  poll(both.data(), is_armed ? 2 : 1, is_armed ? look_interval_ms : rest_ms);
  eventfd_t rings = 0;
  if (both[0].revents != 0) eventfd_read(bell_, &rings);
  const Inside inside(*this);
  watcher_sleeps_ = false;
  progress();
  return !is_over(completion);
}

Result<bool> UcxRdma::arm() {
  const std::lock_guard<std::mutex> serving(serving_mutex_);
  const ucs_status_t status = context_->calls().worker_arm(serving_.handle);
  if (status == UCS_OK) return true;
  if (status == UCS_ERR_BUSY) return false;
  return Status(Code::system, fmt::format("UCX: arming the descriptor to sleep on failed: {}",
                                          context_->calls().status_string(status)));
}

void UcxRdma::look_after() {
  const std::lock_guard<std::mutex> serving(serving_mutex_);
  for (int round = 0; round < most_rounds; ++round) {
    if (context_->calls().worker_progress(serving_.handle) == 0) return;
  }
}

}  // namespace farsum
