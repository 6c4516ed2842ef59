/* RANKS: 2
 * OPTIONS: --set FARSUM_MPI_STATS=1
 * As no_memory_of_one.c, where ranks choose the groups that they meet in anew at each window, and what cannot be
 * counted for want of memory is left out. */
#define LEVEL MPI_THREAD_MULTIPLE
#include "no_memory_of_one.c"
