#include "runtime/mutexes.hpp"

#include <new>
#include <optional>

#include <fmt/format.h>

#include "runtime/window_object.hpp"

namespace farsum {
namespace {

using State = HeldMutexes::State;

Status name_mutex(const Status& status, const char* call, std::uint32_t rank, std::uint32_t index) {
  if (status.is_ok()) return {};
  return {status.code(), fmt::format("{}: mutex {} of rank {}: {}", call, index, rank, status.text())};
}

}  // namespace

Status Mutexes::lock(std::uint32_t rank, std::uint32_t index) {
  if (!held_.begin_change({rank, index}, State::free)) {
    return {
        Code::sync,
        fmt::format(
            "farsum_mutex_lock: mutex {} of rank {} is held, or waited for, by this rank; mutexes are not recursive",
            index, rank)};
  }
  const Status status = object_.window->locks().lock_mutex(rank, index);
  held_.end_change({rank, index}, status.is_ok() ? State::held : State::free);
  return name_mutex(status, "farsum_mutex_lock", rank, index);
}

Status Mutexes::unlock(std::uint32_t rank, std::uint32_t index) {
  if (!held_.begin_change({rank, index}, State::held))
    return {Code::sync, fmt::format("farsum_mutex_unlock: this rank does not hold mutex {} of rank {}", index, rank)};
  const Status status = object_.window->locks().unlock_mutex(rank, index);
  held_.end_change({rank, index}, status.is_ok() ? State::free : State::held);
  return name_mutex(status, "farsum_mutex_unlock", rank, index);
}

Status Mutexes::find_held() const {
  const std::optional<HeldMutexes::Name> held = held_.first_in_use();
  if (!held) return {};
  return {Code::pending,
          fmt::format("farsum_finalize: this rank holds mutex {} of rank {}; call farsum_mutex_unlock first",
                      held->index, held->rank)};
}

void Mutexes::unlock_all() {
  for (std::uint32_t rank = 0; rank < counts().size(); ++rank) {
    for (std::uint32_t index = 0; index < counts()[rank]; ++index) {
      try {
        (void)unlock(rank, index);
      } catch (const std::bad_alloc&) {
        // There is none to say that it is not held, or to ask another node: the next may be held, and here.
      }
    }
  }
}

}  // namespace farsum
