/* A rank that waits in an MPI library over UCX asks UCX again and again, and gives its processor to nobody until the
 * scheduler takes it away, after milliseconds: MPICH has no setting for that. The rank that it waits for may be the one
 * that wants the processor, or an agent of Farsum's that other ranks wait for.
 *
 * A thread that has heard nothing of UCX for some 10 us, and was never away for longer than that, lets others run
 * before it asks again, and after each 10 us more; where nobody else wants the processor that costs a third of a
 * microsecond. (It may have heard something through shared memory, or have worked a little: it yields then too.)
 */
#ifndef FARSUM_MPI_PRELOAD_YIELD_H
#define FARSUM_MPI_PRELOAD_YIELD_H

/* From now on, unless the settings say no: this process has an MPI library. */
void farsum_mpi_lets_yield(void);
/* After the calling thread has asked, and heard of so many events. */
void farsum_mpi_has_heard(unsigned events);

#endif
