#include "collectives/node_broadcast.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "collectives/reduction_refusals.hpp"

namespace farsum {

// No meeting ends without this rank, so that all count alike before the same call.
NodeBroadcast::NodeBroadcast(NodeTeam& team, NodeRounds& rounds, RootedRounds& rooted, std::span<std::byte> buffer,
                             std::uint32_t root, const char* doing)
    : team_(team),
      rounds_(rounds),
      rooted_(rooted),
      buffer_(buffer),
      root_(root),
      doing_(doing),
      said_(said_of_broadcast(buffer.size(), root)) {
  say_what_came_before(said_, team.meetings());
}

Status NodeBroadcast::run() { return team_.rank() == root_ ? lead() : follow(); }

Status NodeBroadcast::lead() {
  const bool is_short = goes_in_a_slot(buffer_.size());
  const std::span<const std::byte> data = is_short ? buffer_ : std::span<std::byte>();
  Status status = rooted_.leave_for_all(said_, data, doing_);
  if (!status.is_ok() || is_short) return status;
  if (status = await_followers(); !status.is_ok()) return status;
  return met(team_.broadcast(buffer_, root_, doing_));
}

// Another rank that takes itself for the root would write where this one writes, and whoever has called something else
// comes to no meeting.
Status NodeBroadcast::await_followers() {
  if (Status status = rooted_.await_all(doing_); !status.is_ok()) return status;
  for (std::uint32_t member = 0; member < team_.ranks(); ++member) {
    if (member == root_) continue;
    const std::optional<SaidOfCall> called = rooted_.said(member);
    if (!called) return give_up(for_good(gone_on(refused(), member)));
    if (!say_the_same_came_before(*called, said_)) return give_up(out_of_step(refused(), member));
    if (!is_broadcast(*called) || root_of(*called) != root_)
      return give_up(for_good(told_otherwise(refused(), member, *called)));
  }
  return {};
}

Status NodeBroadcast::follow() {
  if (Status status = rooted_.hear_root(said_, root_, doing_); !status.is_ok()) return status;
  if (rooted_.said(root_) != said_) return differs_from_root();
  const bool is_short = goes_in_a_slot(buffer_.size());
  if (is_short && !buffer_.empty()) std::memcpy(buffer_.data(), rooted_.data(root_, buffer_.size()), buffer_.size());
  rooted_.finish();
  return is_short ? Status() : met(team_.broadcast(buffer_, root_, doing_));
}

// Where the others meet for what that root tells, this rank comes, too. A root that is none follows another or nobody:
// whether the group goes on is then up to the ranks that wait for this one, which see what it has said.
Status NodeBroadcast::differs_from_root() {
  const std::optional<SaidOfCall> called = rooted_.said(root_);
  rooted_.finish();
  if (!called) return gone_on(refused(), root_);
  if (!say_the_same_came_before(*called, said_)) return give_up(out_of_step(refused(), root_));
  Status status = told_otherwise(refused(), root_, *called);
  if (!is_broadcast(*called) || root_of(*called) != root_ || goes_in_a_slot(called->count)) return status;
  const auto fills_nothing = [](std::size_t, std::span<std::byte>) {};
  const auto takes_nothing = [](std::size_t, std::span<const std::byte>) {};
  Status came = met(team_.tell(called->count, root_, fills_nothing, takes_nothing, doing_));
  return came.is_ok() ? std::move(status) : std::move(came);
}

// Who has lost the others in a meeting makes no further call of the group.
Status NodeBroadcast::met(Status status) {
  if (!status.is_ok()) rounds_.break_off(status);
  return status;
}

Status NodeBroadcast::give_up(Status why) {
  rounds_.give_up(why);
  return why;
}

}  // namespace farsum
