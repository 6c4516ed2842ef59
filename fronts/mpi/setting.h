/* A setting of the environment that is on or off. C11 and C++. */
#ifndef FARSUM_MPI_SETTING_H
#define FARSUM_MPI_SETTING_H

#include <stdlib.h>
#include <string.h>

/* Set by farsum mpi: the runtimes of sanitizers that it has put into LD_PRELOAD, between colons. */
#define FARSUM_MPI_RUNTIMES_SETTING "FARSUM_MPI_RUNTIMES"

/* On: set, not empty, and not 0. */
static inline int farsum_mpi_setting_is_on(const char* name) {
  const char* value = getenv(name);
  return value != NULL && *value != '\0' && strcmp(value, "0") != 0;
}

/* Off, of a setting that is on unless it is 0. */
static inline int farsum_mpi_setting_is_off(const char* name) {
  const char* value = getenv(name);
  return value != NULL && strcmp(value, "0") == 0;
}

#endif
