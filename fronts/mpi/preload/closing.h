/* In its MPI_Finalize MPICH up to 4.1 closes its connections of UCX, asking UCX until they are closed, and sleeps in a
 * barrier of its launcher from then on. Ranks whose connections are not closed yet need an answer of those that sleep,
 * and wait for ever: with two ranks on each of two hosts every other job.
 *
 * From the first connection that is closed until the library destroys its worker, or ends, a thread of this file looks
 * after the worker each millisecond. The calls of ucx.c take turns with it; MPICH makes no others then that touch it.
 */
#ifndef FARSUM_MPI_PRELOAD_CLOSING_H
#define FARSUM_MPI_PRELOAD_CLOSING_H

typedef unsigned farsum_mpi_progress_function(void* worker);

/* Around the library's own MPI_Finalize, or its last MPI_Session_finalize. */
void farsum_mpi_begins_to_end(void);
void farsum_mpi_has_ended(void);

/* The calling thread is about to close a connection. */
void farsum_mpi_closes(void);
/* It asks that worker, in turn. Those of other threads are not the library's that ends. */
void farsum_mpi_closes_worker(farsum_mpi_progress_function* progress, void* worker);
/* A worker is about to be destroyed: if it is one of them, nobody looks after any from now on. */
void farsum_mpi_destroys_worker(const void* worker);

/* Around each call of UCX. */
int farsum_mpi_turn_begins(void);
void farsum_mpi_turn_ends(int has_begun);

#endif
