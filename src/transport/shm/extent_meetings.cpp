#include "transport/shm/extent_meetings.hpp"

#include <utility>

namespace farsum {

// Nothing: it is the first to come, and has to bring an extent. 0 bytes: there is none to be had.
std::optional<HeapExtent> ExtentMeetings::join(const Key& key, std::uint32_t expected, Spare& spare, std::uint32_t me) {
  const HeapLock::Guard guard(lock_, me);
  if (!guard.usable()) {
    spare.refusal = guard.refusal();
    return HeapExtent{};
  }
  PendingExtent* vacant = nullptr;
  for (PendingExtent& pending : table_) {
    if (pending.expected == 0) {
      vacant = vacant == nullptr ? &pending : vacant;
      continue;
    }
    if (pending.key[0] != key.words[0] || pending.key[1] != key.words[1] || pending.expected != expected) continue;
    if (++pending.arrived == pending.expected) pending.expected = 0;
    return pending.extent;
  }
  if (vacant == nullptr) return HeapExtent{};
  if (spare.extent.bytes == 0 && !spare.has_no_room) return std::nullopt;
  *vacant = {{key.words[0], key.words[1]}, expected == 1 ? 0 : expected, 1, spare.extent};
  return std::exchange(spare.extent, {});
}

Result<HeapExtent> ExtentMeetings::meet(const Key& key, std::uint32_t expected, std::uint64_t bytes, std::uint32_t me) {
  Spare spare;
  std::optional<HeapExtent> extent = join(key, expected, spare, me);
  if (!extent) {
    Result<HeapExtent> made = heap_.allocate(bytes, me);
    if (made.is_ok()) spare.extent = made.value();
    // Then the others are told by a meeting that has no extent.
    spare.has_no_room = !made.is_ok();
    extent = join(key, expected, spare, me);
    if (!spare.has_no_room) heap_.release(spare.extent, me);  // somebody else was quicker
    if (spare.has_no_room && extent->bytes == 0) return made;
  }
  if (!spare.refusal.is_ok()) return std::move(spare.refusal);
  if (extent->bytes == 0)
    return Status(Code::no_memory, "the node has no room for a group, or too many are being made at once there");
  return *extent;
}

}  // namespace farsum
