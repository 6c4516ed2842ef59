// System calls and threads that are held: which would do less than they were asked for if their thread were stopped,
// and which have to be made once more when it goes on. For promotion/held_helper.cpp, under the rules of HeldWork.
#pragma once

#include <sys/types.h>

namespace farsum::os {

// Whether a thread is in a call that gives up half way when it is stopped. `text` is its file `syscall` in /proc:
// "running", which may be in any, "-1 0xSP 0xPC", or "1 0x3 0x7f...", six arguments and the same two.
bool is_in_call_that_may_be_cut_short(const char* text);

// Of a thread that was stopped: makes the call that it was in once more where the kernel would not.
void restart_call(pid_t thread);

}  // namespace farsum::os
