#include "hints.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/cgroups.h"
#include "setting.h"

static struct hint {
  const char* name;
  const char* value;
  int is_given;
} components = {"OMPI_MCA_osc", "^ucx", 0}, openmpi_yields = {"OMPI_MCA_mpi_yield_when_idle", "1", 0},
  intel_yields = {"I_MPI_THREAD_YIELD", "2", 0};

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

/* By what mpirun, prterun, srun and Hydra tell their ranks. */
static int is_on_several_hosts(void) {
  return differ(getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), getenv("OMPI_COMM_WORLD_SIZE")) ||
         differ(getenv("MPI_LOCALNRANKS"), getenv("PMI_SIZE")) || differ(getenv("SLURM_STEP_NUM_NODES"), "1");
}

/* Not what this process is bound to: a launcher binds each rank to a processor of its own. */
static int outnumber_processors(const char* ranks) {
  struct farsum_cgroup_bound bound;
  const long count = ranks == NULL ? 0 : atol(ranks);
  if (count > sysconf(_SC_NPROCESSORS_ONLN)) return 1;
  farsum_cgroup_read_quota("", &bound);
  return bound.processors != 0 && count > (long)bound.processors;
}

/* Over several hosts an agent of Farsum's runs beside the ranks of each, that remote ranks wait for. */
static void let_yield(const char* library_version) {
  if (strstr(library_version, "Open MPI") != NULL && is_on_several_hosts()) {
    /* Its launcher tells ranks where they are more than their host's processors. */
    give(&openmpi_yields);
  } else if (strstr(library_version, "Intel(R) MPI") != NULL &&
             (is_on_several_hosts() || outnumber_processors(getenv("MPI_LOCALNRANKS")))) {
    give(&intel_yields);
  }
}

void farsum_mpi_give_hints(const char* library_version) {
  /* Open MPI 5 asks its UCX component at each window, the front's backing windows too: a millisecond and five lines on
   * stderr every time. */
  if (strstr(library_version, "Open MPI v5") != NULL) give(&components);
  if (!farsum_mpi_setting_is_off("FARSUM_MPI_YIELD")) let_yield(library_version);
}

void farsum_mpi_take_hints_back(void) {
  take_back(&components);
  take_back(&openmpi_yields);
  take_back(&intel_yields);
}
