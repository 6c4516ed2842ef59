/* In its MPI_Finalize MPICH up to 4.1 closes its connections of UCX, asking UCX until they are closed, and sleeps in a
 * barrier of its launcher from then on. Ranks whose connections are not closed yet need an answer of those that sleep,
 * and wait for ever: with two ranks on each of two hosts every other job.
 *
 * From the first connection that is closed until UCX's worker is destroyed a thread of this file looks after the worker
 * each millisecond. What else the library calls of UCX in that time takes turns with it.
 */
#ifndef FARSUM_MPI_PRELOAD_CLOSING_H
#define FARSUM_MPI_PRELOAD_CLOSING_H

typedef unsigned farsum_mpi_progress_function(void* worker);

/* The program has called MPI_Finalize. */
void farsum_mpi_finalizes(void);

/* A connection is about to be closed. */
void farsum_mpi_closes(void);
/* The library asks that worker. */
void farsum_mpi_closes_worker(farsum_mpi_progress_function* progress, void* worker);
/* A worker is about to be destroyed: nobody looks after any of them from now on. */
void farsum_mpi_has_closed(void);

/* Around each call of UCX. */
int farsum_mpi_turn_begins(void);
void farsum_mpi_turn_ends(int has_begun);

#endif
