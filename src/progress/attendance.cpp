#include "progress/attendance.hpp"

#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "os/default_arithmetic.hpp"
#include "os/uncancelled.hpp"

namespace farsum {
namespace {

// A thread serves few at once, for it has something else to look after.
constexpr std::size_t budget = 8;
// After so much of the time in which a thread is missed it says that it has not gone astray.
constexpr std::uint64_t close_anew_after_percent = 40;
// What keeps coming is left to the agent.
constexpr int most_last_looks = 2;

const void* this_thread() {
  static thread_local const char mark = 0;
  return &mark;
}

// Serves in a thread of the program, whose arithmetic is changed with the first request of a turn and put back when the
// turn ends: a change costs as much as a short request.
class OfTheProgram final : public RequestHandler {
 public:
  explicit OfTheProgram(RequestHandler& handler) : handler_(handler) {}
  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override {
    begin();
    return handler_.on_request(from, message, reply_room, token);
  }
  void begin() {
    if (!arithmetic_) arithmetic_.emplace();
  }

 private:
  RequestHandler& handler_;
  std::optional<os::DefaultArithmetic> arithmetic_;
};

}  // namespace

Attendance::Attendance(Parts parts) : parts_(std::move(parts)) {
  if (!parts_.now_ns) parts_.now_ns = monotonic_ns;
}

void Attendance::add(Network& network) {
  Result<os::EventGate> gate = os::EventGate::before(network.request_descriptor());
  const std::lock_guard lock(serving_);
  network_ = &network;
  if (gate.is_ok()) gate_ = std::move(gate.value());
}

Code Attendance::begin() {
  // A thread that is cancelled is not to leave UCX, or a turn, in the middle.
  const os::Uncancelled uncancelled;
  const std::unique_lock lock(serving_, std::try_to_lock);
  if (!lock.owns_lock()) return Code::pending;
  if (gate_.descriptor() < 0 || is_shut_) return Code::unsupported;
  if (is_attended()) return Code::pending;
  attending_.store(this_thread(), std::memory_order_relaxed);
  close_gate(parts_.now_ns());
  return Code::ok;
}

bool Attendance::attend() {
  if (!is_attended_by(this_thread())) return false;
  const os::Uncancelled uncancelled;
  bool needs_rousing = false;
  {
    const std::unique_lock lock(serving_, std::try_to_lock);
    if (!lock.owns_lock()) return true;
    if (!is_attended_by(this_thread())) return false;
    const std::uint64_t now = parts_.now_ns();
    if (now - closed_at_ns_ >= parts_.missed_after_ns * close_anew_after_percent / 100) close_gate(now);
    const bool needed_agent = parts_.needs_agent();
    serve();
    needs_rousing = !needed_agent && parts_.needs_agent();
  }
  parts_.after_serving();
  if (needs_rousing) parts_.rouse();
  return true;
}

void Attendance::end() {
  if (!is_attended_by(this_thread())) return;
  const os::Uncancelled uncancelled;
  bool is_left = false;
  {
    const std::lock_guard lock(serving_);
    if (!is_attended_by(this_thread())) return;
    bool is_armed = false;
    for (int i = 0; i < most_last_looks && !is_armed; ++i) {
      serve();
      is_armed = try_arm();
    }
    is_left = !is_armed || network_->has_unfinished_request() || parts_.needs_agent();
    give_back();
  }
  parts_.after_serving();
  if (is_left) parts_.rouse();
}

void Attendance::shut() {
  const std::lock_guard lock(serving_);
  is_shut_ = true;
  give_back();
}

// Serves as the agent would, which ends the process where it finds no memory.
void Attendance::serve() noexcept {
  OfTheProgram handler(*parts_.handler);
  network_->poll_requests(handler, budget);
  if (!parts_.needs_agent()) return;
  handler.begin();
  parts_.grant();
}

void Attendance::close_gate(std::uint64_t now_ns) {
  closed_at_ns_ = now_ns;
  gate_.close_for(parts_.missed_after_ns);
}

void Attendance::give_back() {
  attending_.store(nullptr, std::memory_order_relaxed);
  gate_.open();
}

// It is armed before the agent sleeps.
void Attendance::look() {
  if (!is_attended() || parts_.now_ns() - closed_at_ns_ < parts_.missed_after_ns) return;
  give_back();
  // Some may have been left since the agent asked.
  if (network_->has_unfinished_request()) parts_.rouse();
}

int Attendance::request_descriptor() const {
  if (gate_.descriptor() >= 0) return gate_.descriptor();
  return network_ != nullptr ? network_->request_descriptor() : -1;
}

bool Attendance::arm_requests() {
  const std::lock_guard lock(serving_);
  return network_ == nullptr || is_attended() || try_arm();
}

// One that cannot be armed is slept on all the same: its descriptor tells of errors.
bool Attendance::try_arm() {
  const Result<bool> armed = network_->arm_requests();
  return !armed.is_ok() || armed.value();
}

}  // namespace farsum
