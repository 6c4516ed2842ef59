#include "runtime/attendance.hpp"

#include <pthread.h>

#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "os/default_arithmetic.hpp"

namespace farsum {
namespace {

// Few, for the thread has something else to look after.
constexpr std::size_t budget = 8;
// For so long at most nobody serves where a thread that attends has gone astray.
constexpr std::uint64_t missed_after_ns = 1'000'000;
// How often it says that it has not.
constexpr std::uint64_t close_anew_after_ns = 400'000;
// What keeps coming is left to the agent.
constexpr int most_last_looks = 2;

// UCX is not to be left in the middle of its work by a thread that is cancelled.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

Attendance::Attendance(Parts parts) : parts_(std::move(parts)) {
  if (!parts_.now_ns) parts_.now_ns = monotonic_ns;
}

void Attendance::add(Network& network) {
  Result<os::EventGate> gate = os::EventGate::before(network.request_descriptor());
  const std::lock_guard lock(turn_);
  network_ = &network;
  if (gate.is_ok()) gate_ = std::move(gate.value());
}

Code Attendance::begin() {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock.owns_lock()) return Code::pending;
  if (gate_.descriptor() < 0 || is_shut_) return Code::unsupported;
  if (is_attended_) return Code::pending;
  is_attended_ = true;
  needed_agent_ = parts_.needs_agent();
  closed_at_ns_ = parts_.now_ns();
  gate_.close_for(missed_after_ns);
  return Code::ok;
}

bool Attendance::attend() {
  bool has_news = false;
  {
    const std::unique_lock lock(turn_, std::try_to_lock);
    if (!is_attended_) return false;
    if (!lock.owns_lock()) return true;
    const std::uint64_t now = parts_.now_ns();
    if (now - closed_at_ns_ >= close_anew_after_ns) {
      closed_at_ns_ = now;
      gate_.close_for(missed_after_ns);
    }
    serve();
    const bool needs_agent = parts_.needs_agent();
    has_news = needs_agent && !needed_agent_;
    needed_agent_ = needs_agent;
  }
  if (has_news) parts_.rouse();
  return true;
}

void Attendance::end() {
  bool is_left = false;
  {
    const std::lock_guard lock(turn_);
    if (!is_attended_) return;
    bool is_armed = false;
    for (int i = 0; i < most_last_looks && !is_armed; ++i) {
      serve();
      is_armed = try_arm();
    }
    is_left = !is_armed || network_->has_unfinished_request() || parts_.needs_agent();
    give_back();
  }
  if (is_left) parts_.rouse();
}

void Attendance::shut() {
  const std::lock_guard lock(turn_);
  is_shut_ = true;
  give_back();
}

// As the agent would, who ends the process where it finds no memory.
void Attendance::serve() noexcept {
  const Uncancelled uncancelled;
  const os::DefaultArithmetic arithmetic;
  network_->poll_requests(*parts_.handler, budget);
}

void Attendance::give_back() {
  is_attended_ = false;
  gate_.open();
}

// It is armed before the agent sleeps.
void Attendance::look() {
  if (is_attended_ && parts_.now_ns() - closed_at_ns_ >= missed_after_ns) give_back();
}

int Attendance::request_descriptor() const {
  if (gate_.descriptor() >= 0) return gate_.descriptor();
  return network_ != nullptr ? network_->request_descriptor() : -1;
}

bool Attendance::arm_requests() {
  const std::lock_guard lock(turn_);
  return network_ == nullptr || is_attended_ || try_arm();
}

// One that cannot be armed is slept on all the same: its descriptor tells of errors.
bool Attendance::try_arm() {
  const Result<bool> armed = network_->arm_requests();
  return !armed.is_ok() || armed.value();
}

}  // namespace farsum
