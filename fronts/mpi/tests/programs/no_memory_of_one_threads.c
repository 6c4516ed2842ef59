/* RANKS: 2
 * As no_memory_of_one.c, where ranks choose the groups that they meet in anew at each window. */
#define LEVEL MPI_THREAD_MULTIPLE
#include "no_memory_of_one.c"
