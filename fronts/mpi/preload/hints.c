#include "hints.h"

#include <stdlib.h>
#include <string.h>

#include "preload_abi.h"
#include "setting.h"

#ifdef FARSUM_MPI_ABI_openmpi

static struct hint {
  const char* name;
  const char* value;
  int is_given;
} components = {"OMPI_MCA_osc", "^ucx", 0}, yields = {"OMPI_MCA_mpi_yield_when_idle", "1", 0};

static void give(struct hint* hint) {
  if (getenv(hint->name) == NULL) hint->is_given = setenv(hint->name, hint->value, 0) == 0;
}

static void take_back(struct hint* hint) {
  if (hint->is_given) unsetenv(hint->name);
  hint->is_given = 0;
}

static int differ(const char* one, const char* other) {
  return one != NULL && other != NULL && strcmp(one, other) != 0;
}

/* By what mpirun, prterun and srun tell their ranks. */
static int is_on_several_hosts(void) {
  const char* hosts = getenv("SLURM_STEP_NUM_NODES");
  return differ(getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), getenv("OMPI_COMM_WORLD_SIZE")) || differ(hosts, "1");
}

void farsum_mpi_give_hints(const char* library_version) {
  /* Open MPI 5 asks its UCX component at each window, the front's backing windows too: a millisecond and five lines on
   * stderr every time. */
  if (strstr(library_version, "Open MPI v5") != NULL) give(&components);
  /* Its launcher tells ranks to yield where they are more than their host's processors. Over several hosts an agent of
   * Farsum's runs beside them, that ranks elsewhere wait for. */
  if (is_on_several_hosts() && !farsum_mpi_setting_is_off("FARSUM_MPI_YIELD")) give(&yields);
}

void farsum_mpi_take_hints_back(void) {
  take_back(&components);
  take_back(&yields);
}

#else

void farsum_mpi_give_hints(const char* library_version) { (void)library_version; }
void farsum_mpi_take_hints_back(void) {}

#endif
