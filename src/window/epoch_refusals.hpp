// Why an epoch cannot begin, in the words of all calls that find out.
#pragma once

namespace farsum {

inline constexpr const char* being_freed = "the window is being freed (farsum_window_prepare_free); no epoch can begin";
inline constexpr const char* lock_held = "a lock is held; unlock it first";
inline constexpr const char* held_already = "this rank holds that lock already; call farsum_unlock first";
inline constexpr const char* start_open = "an epoch of farsum_start is open; complete it first";
inline constexpr const char* no_locks_promised = "the window promises never to be locked (FARSUM_NO_LOCKS)";

}  // namespace farsum
