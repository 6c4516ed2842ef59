#include "collectives/node_broadcast.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "collectives/reduction_refusals.hpp"

namespace farsum {

// No meeting ends without this rank, so that all count alike before the same call.
NodeBroadcast::NodeBroadcast(const Means& means, std::span<std::byte> buffer, std::uint32_t root, const char* doing)
    : means_(means), buffer_(buffer), root_(root), doing_(doing), said_(said_of_broadcast(buffer.size(), root)) {
  say_what_came_before(said_, means_.team.meetings());
}

Status NodeBroadcast::run() { return means_.team.rank() == root_ ? lead() : follow(); }

Status NodeBroadcast::lead() {
  const bool is_short = goes_in_a_slot(buffer_.size());
  const std::span<const std::byte> data = is_short ? buffer_ : std::span<std::byte>();
  Status status = means_.rooted.leave_for_all(said_, data, doing_);
  if (!status.is_ok() || is_short) return status;
  if (status = await_followers(); !status.is_ok()) return status;
  return spread(buffer_.size(), true);
}

// Another rank that takes itself for the root would write where this one writes, and whoever has called something else
// comes to no meeting.
Status NodeBroadcast::await_followers() {
  if (Status status = means_.rooted.await_all(doing_); !status.is_ok()) return status;
  for (std::uint32_t member = 0; member < means_.team.ranks(); ++member) {
    if (member == root_) continue;
    const std::optional<SaidOfCall> called = means_.rooted.said(member);
    if (!called) return give_up(for_good(gone_on(refused(), member)));
    if (!say_the_same_came_before(*called, said_)) return give_up(out_of_step(refused(), member));
    if (!is_broadcast(*called) || root_of(*called) != root_)
      return give_up(for_good(told_otherwise(refused(), member, *called)));
  }
  return {};
}

Status NodeBroadcast::follow() {
  if (Status status = means_.rooted.hear_root(said_, root_, doing_); !status.is_ok()) return status;
  if (means_.rooted.said(root_) != said_) return differs_from_root();
  const bool is_short = goes_in_a_slot(buffer_.size());
  if (is_short && !buffer_.empty())
    std::memcpy(buffer_.data(), means_.rooted.data(root_, buffer_.size()), buffer_.size());
  means_.rooted.finish();
  return is_short ? Status() : spread(buffer_.size(), true);
}

// Where the others meet for what that root tells, this rank comes, too. A root that is none follows another or nobody:
// whether the group goes on is then up to the ranks that wait for this one, which see what it has said.
Status NodeBroadcast::differs_from_root() {
  const std::optional<SaidOfCall> called = means_.rooted.said(root_);
  means_.rooted.finish();
  if (!called) return gone_on(refused(), root_);
  if (!say_the_same_came_before(*called, said_)) return give_up(out_of_step(refused(), root_));
  Status status = told_otherwise(refused(), root_, *called);
  if (!is_broadcast(*called) || root_of(*called) != root_ || goes_in_a_slot(called->count)) return status;
  Status came = spread(called->count, false);
  return came.is_ok() ? std::move(status) : std::move(came);
}

// The root's `bytes`, by copies of the kernel's where it is worth that and all can, which they tell one another.
Status NodeBroadcast::spread(std::uint64_t bytes, bool takes_part) {
  if (!CopiedShares::is_for(means_.team.ranks(), bytes)) return meet(bytes, takes_part);
  CopiedCall copied(means_.rounds, means_.copies, means_.waiter, means_.ranks, means_.team.rank(), doing_);
  means_.rounds.begin_agreed();
  if (takes_part)
    copied.tell(buffer_, buffer_);
  else
    copied.tell_that_it_cannot();
  if (Status status = means_.rounds.next_step(doing_); !status.is_ok()) return status;
  return copied.can_all() ? copy(copied) : meet(bytes, takes_part);
}

// Each copies as much as every other: the root writes to each of them a share, and each reads the rest.
Status NodeBroadcast::copy(CopiedCall& copied) {
  const std::size_t bytes = buffer_.size();
  const std::size_t given = bytes / means_.team.ranks() / cache_line_bytes * cache_line_bytes;
  const std::uint32_t me = means_.team.rank();
  if (me == root_) return copied.end(means_.copies.give({.from = 0, .bytes = given, .to = 0}, me, copied.members()), 0);
  const CopiedShares::Share rest{.from = given, .bytes = bytes - given, .to = given};
  return copied.end(means_.copies.take(rest, root_, me, copied.members()), 0);
}

Status NodeBroadcast::meet(std::uint64_t bytes, bool takes_part) {
  if (takes_part) return met(means_.team.broadcast(buffer_, root_, doing_));
  const auto fills_nothing = [](std::size_t, std::span<std::byte>) {};
  const auto takes_nothing = [](std::size_t, std::span<const std::byte>) {};
  return met(means_.team.tell(bytes, root_, fills_nothing, takes_nothing, doing_));
}

// Who has lost the others in a meeting makes no further call of the group.
Status NodeBroadcast::met(Status status) {
  if (!status.is_ok()) means_.rounds.break_off(status);
  return status;
}

Status NodeBroadcast::give_up(Status why) {
  means_.rounds.give_up(why);
  return why;
}

}  // namespace farsum
