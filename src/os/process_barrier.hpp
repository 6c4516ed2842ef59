// A full memory barrier in every thread of every process that has joined, issued by one thread: what lets the others do
// without one of their own.
#pragma once

namespace farsum::os {

// Lets barriers reach the threads of this process, and says whether this process may issue them. Any thread may call.
bool join_process_barriers();

// Returns once each thread of each process that has joined has passed a full barrier since the call. The kernel
// interrupts the processors that run them: 21 to 23 us were measured with 2 virtual processors.
void process_barrier();

}  // namespace farsum::os
