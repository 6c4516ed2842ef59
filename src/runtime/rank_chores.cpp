#include "runtime/rank_chores.hpp"

#include <mutex>

#include "base/clock.hpp"

namespace farsum {

static_assert(Agenda::never == Network::never);

std::uint64_t RankChores::run(bool has_unfinished) {
  // This comes before anything is looked at: what is asked for from here on is looked at by the next run.
  const bool is_look_due = bell_.watch_has_ended();
  if (is_look_due) agenda_.strike("network");
  desk_.wake_touched();
  sources_.look_after_card();
  go_on_serving(has_unfinished);
  go_on_carrying();
  const bool is_coalescing = network_.is_coalescing();
  std::uint64_t now_ns = 0;
  bool is_network_due = is_look_due;
  if (is_coalescing || desk_.has_refused() || agenda_.needs_clock()) {
    now_ns = monotonic_ns();
    desk_.look_after_refused(agenda_, now_ns);
    now_ns = send_kept_back(is_coalescing, now_ns);
    is_network_due |= agenda_.take_due("network", now_ns);
  }
  if (!is_network_due) return agenda_.sleep_ns(now_ns);
  look_after_network();
  return agenda_.sleep_ns(agenda_.needs_clock() ? monotonic_ns() : 0);
}

void RankChores::go_on_serving(bool has_unfinished) {
  const std::lock_guard lock(attendance_.serving());
  attendance_.look();
  service_.grant_waiting();
  // A thread that attended may have left some since the agent asked.
  const bool is_left = has_unfinished || service_.has_unfinished() || attendance_.has_left_unfinished();
  const bool is_awaited = service_.has_waiting();
  agenda_.come_back_for("unfinished requests", is_left);
  agenda_.come_back_for("awaited grants", is_awaited);
}

// What was served may have been a letter for which a collective waits.
void RankChores::go_on_carrying() {
  const Carry::Turn turn = carries_.take_turns();
  agenda_.come_back_for("carried calls", turn.is_unfinished);
  agenda_.come_back_for("carried letters", turn.is_refused);
}

std::uint64_t RankChores::send_kept_back(bool is_coalescing, std::uint64_t now_ns) {
  if (!is_coalescing) {
    agenda_.strike("kept back");
    return now_ns;
  }
  if (agenda_.take_due("kept back", now_ns)) {
    network_.send_coalesced();
    now_ns = monotonic_ns();
  }
  agenda_.come_back_for("kept back", now_ns);
  return now_ns;
}

void RankChores::look_after_network() {
  network_.look_after();
  if (network_.is_unattended(threads())) return bell_.watch_replies();
  // Threads look after it at the moment. Will they go on?
  agenda_.come_back_at("network", network_.next_deadline_ns());
}

Network::Threads RankChores::threads() const {
  return waiter_.sleepers() != 0  ? Network::Threads::sleep
         : waiter_.lookers() != 0 ? Network::Threads::look
                                  : Network::Threads::away;
}

}  // namespace farsum
