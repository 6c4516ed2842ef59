// What can be known of another process by its number.
#pragma once

#include <sys/types.h>

namespace farsum::os {

// Whether every thread of the process has ended, reaped by its parent or not. False where the kernel does not say.
[[nodiscard]] bool process_has_ended(pid_t pid);

}  // namespace farsum::os
