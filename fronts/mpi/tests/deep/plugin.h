/* What the plugin and its part have. */
#ifndef FARSUM_MPI_TESTS_DEEP_PLUGIN_H
#define FARSUM_MPI_TESTS_DEEP_PLUGIN_H

#include <mpi.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void part_sum(MPI_Win win, int target, long value);

EXPORTED int plugin_begin(int* argc, char*** argv);
EXPORTED int plugin_end(void);
EXPORTED MPI_Win plugin_window(long** memory);
EXPORTED void plugin_sum(MPI_Win win, int target, long value);
EXPORTED void plugin_free(MPI_Win* win);
/* How many look-ups of its own found another function than the rest. */
EXPORTED int plugin_differs(void);

#endif
