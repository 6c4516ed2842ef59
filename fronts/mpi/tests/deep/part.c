/* A library that comes with the plugin: as deep as that. */
#include "plugin.h"

EXPORTED void part_sum(MPI_Win win, int target, long value) {
  MPI_Accumulate(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
}
