/* While windows live, and sometimes after, memory of the program is shared memory at the same addresses. Two calls of
 * the system tell the difference: _Fork(), which runs no fork handlers, and madvise(), which keeps what is shared where
 * a program discards it. Both are exported here, and go to the front once it is there.
 */
#ifndef FARSUM_MPI_PRELOAD_PROMOTED_H
#define FARSUM_MPI_PRELOAD_PROMOTED_H

#include "calls.h"

/* From here on. The functions stay as long as the process. */
void farsum_mpi_tell_of_memory(const struct farsum_mpi_memory_calls* calls);

/* Before other threads can be: looks up what the calls are passed on to. */
void farsum_mpi_finds_memory_calls(void);

#endif
