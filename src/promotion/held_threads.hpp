// Runs a function while every other thread of this process stands still, so that memory may be moved under them. It
// decides nothing about memory, and changes nothing where it refuses.
//
// How: a helper made by clone() with our memory but as a process of its own, for the kernel lets no thread trace its
// own process, attaches to each thread with ptrace, runs the function, and lets all go. The caller stays inside clone
// (CLONE_VFORK) all the while. Why not otherwise: a signal to each thread needs its handler, may be blocked, and every
// blocking call of the program may see it; the freezer of a control group takes rights that programs do not have;
// userfaultfd's write protection does not hold back the kernel's own writes, and a membarrier orders but does not stop.
//
// What a held thread notices: nothing, but that time passes. Calls that wait are restarted by the kernel, the few that
// would say EINTR (epoll_wait, semop, sigtimedwait, calls of sockets with a time limit) by the helper. Signals are
// passed on, stops by SIGSTOP stay. Threads that the rules leave alone run on. Where the helper dies the kernel lets
// all go, and an alarm kills it where the kernel does not come back from attaching (another thread is inside exec).
//
// Transfers that return less when they are interrupted (write to a pipe, send, recv with MSG_WAITALL) are not
// interrupted where they can be seen: a thread that sleeps in one is given some time to come out, else it is a refusal.
// What cannot be seen: a thread that runs through such a call at that moment, or enters it between the look and the
// stop, and then has to wait in it. It sees the short count that POSIX allows when a signal comes. Neither can a read
// that has received a part and waits for more, by SO_RCVLOWAT or a terminal's VMIN.
//
// What it does not hold: processes that share this memory without being threads (children of vfork elsewhere: the
// thread that waits for one does not stop, which is a refusal), other processes that copy into it, and devices. A
// program that waits with __WALL or __WCLONE for any child may see the helper.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>
#include <string>

namespace farsum::os {

// Runs in the helper: no library call, no lock, no allocation, nothing but the kernel's calls (os/raw_system.hpp), for
// a held thread may be inside malloc or the dynamic linker.
using HeldWork = void (*)(void* argument);

struct HoldRules {
  std::span<const pid_t> left_alone;
  // For the threads to stop; one that waits for a disk or in vfork() takes its time.
  std::chrono::milliseconds patience{1000};
};

// Calls `work(argument)` with all threads held but the caller and those left alone. Returns why it has not, as part of
// a sentence; empty if it has. Callers wait for each other (in a child that is forked meanwhile, for ever). Meanwhile
// all signals of the caller are blocked.
[[nodiscard]] std::string run_with_threads_held(HeldWork work, void* argument, const HoldRules& rules = {});

}  // namespace farsum::os
