// The calling thread's number in the kernel. glibc has a function for it only since 2.30.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace farsum::os {

[[nodiscard]] inline pid_t own_thread_id() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

}  // namespace farsum::os
