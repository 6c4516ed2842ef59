#include "runtime/mutex_table.hpp"

#include <cstddef>
#include <span>

#include <fmt/format.h>

namespace farsum {

Result<Mutexes*> MutexTable::create(Group& group, std::uint32_t count, bool lacks_memory) {
  WindowOptions options;
  options.name = "mutexes";
  options.notification_slots = 1;
  options.internal = true;
  options.lacks_memory = lacks_memory;
  options.mutexes = count;
  Result<WindowObject*> object = windows_.allocate(group, 0, options);
  if (!object.is_ok()) return object.take_status();
  return object.value()->mutexes.get();
}

Status MutexTable::free(Mutexes* mutexes) {
  GroupTeam& team = mutexes->object().group->team();
  // The ranks agree, so that nobody waits for one that refuses.
  const std::span<std::byte> held = mutexes->object().group->words();
  const std::byte mine{mutexes->are_in_use()};
  if (Status status = team.allgather(std::span(&mine, 1), held, "farsum_mutex_free"); !status.is_ok()) return status;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    if (held[rank] == std::byte{0}) continue;
    return {Code::pending,
            fmt::format(
                "farsum_mutex_free: rank {} of the group still holds or waits for one of the mutexes; unlock it first",
                rank)};
  }
  return windows_.free(&mutexes->object());
}

}  // namespace farsum
