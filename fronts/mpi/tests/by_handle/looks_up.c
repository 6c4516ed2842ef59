/* What dlsym and dlvsym give with the preload in front: its own function where the look-up would end in the MPI library
 * that it serves, and otherwise what they give without it.
 *
 * looks_up MPI LINKED_TO_MPI PROFILER OTHER_MPI
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ucx/loaded.h"

extern int times_asked;
void* next_of_start(const char* name, const char* version);

typedef int call(int, int);

static int answer_of(void* symbol) {
  call* function;
  memcpy(&function, &symbol, sizeof function);
  return function == NULL ? 0 : function(0, 0);
}

static const char* file_of(void* symbol) {
  Dl_info info;
  return symbol != NULL && dladdr(symbol, &info) != 0 ? info.dli_fname : "";
}

static int is_farsums(void* symbol) { return strstr(file_of(symbol), "libfarsum_mpi_") != NULL; }

static void check_served(void* library, const char* name) {
  void* const found = dlsym(library, name);
  CHECK(is_farsums(found));
  CHECK(dlerror() == NULL);
  /* It passes on what there is no reason to take over. */
  CHECK(answer_of(found) == 11);
}

static void check_library(const char* file) {
  void* const mpi = load(file);
  check_served(mpi, "MPI_Win_fence");
  check_served(mpi, "PMPI_Win_fence");
  CHECK(dlsym(mpi, "MPI_Win_create") == dlsym(mpi, "PMPI_Win_create"));
  CHECK(is_farsums(dlsym(mpi, "MPI_Win_create")));
  CHECK(answer_of(dlsym(mpi, "MPI_Waitformoon")) == 13);
  /* Which Farsum has, and the library has not. */
  CHECK(dlsym(mpi, "MPI_Win_flush") == NULL);
  CHECK(dlerror() != NULL);
  CHECK(dlsym(mpi, "MPI_") == NULL);
  CHECK(dlsym(mpi, "MPI_Win_fence_and_more") == NULL);
  CHECK(dlvsym(mpi, "MPI_Win_flush", "NO_VERSION") == NULL);
  void* (*finds)(const char*);
  store(&finds, mpi, "finds");
  CHECK(strcmp(file_of(finds("MPI_Win_fence")), file) == 0);
}

static void check_handles_of_others(const char* linked, const char* profiler) {
  check_served(load(linked), "MPI_Win_fence");
  CHECK(answer_of(dlsym(load(profiler), "MPI_Win_fence")) == 21);
  void* const whole = dlopen(NULL, RTLD_LAZY);
  CHECK(dlsym(whole, "MPI_Win_fence") == dlsym(RTLD_DEFAULT, "MPI_Win_fence"));
}

/* Behind what is linked to the library is the library, and behind what is not is none. */
static void check_next(const char* mpi, const char* linked, const char* profiler) {
  void* (*next)(const char*, const char*);
  store(&next, load(linked), "next_of_plugin");
  CHECK(is_farsums(next("MPI_Win_fence", NULL)));
  CHECK(next("MPI_Win_fence", NULL) == next("PMPI_Win_fence", NULL));
  CHECK(answer_of(next("MPI_Win_fence", NULL)) == 11);
  /* A library without versions has each. */
  CHECK(is_farsums(next("MPI_Win_fence", "ANY_VERSION")));
  CHECK(answer_of(next("MPI_Waitformoon", NULL)) == 13);
  CHECK(next("MPI_Win_flush", NULL) == NULL);
  store(&next, load(profiler), "next_of_profiler");
  CHECK(next("MPI_Win_fence", NULL) == NULL);
  CHECK(next_of_start("MPI_Win_fence", NULL) == NULL);
  /* From now on it comes behind all that was loaded with the program. */
  CHECK(dlopen(mpi, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) != NULL);
  CHECK(is_farsums(next_of_start("MPI_Win_fence", NULL)));
  CHECK(is_farsums(next_of_start("PMPI_Win_fence", NULL)));
  CHECK(answer_of(next_of_start("MPI_Waitformoon", NULL)) == 13);
  CHECK(next_of_start("MPI_Win_flush", NULL) == NULL);
}

static void check_what_is_behind(void) {
  CHECK(getppid() > 0);
  CHECK(getpgrp() > 0);
  CHECK(times_asked == 2);
  CHECK(dlsym(RTLD_NEXT, "strlen") == dlsym(RTLD_DEFAULT, "strlen"));
  CHECK(dlvsym(RTLD_DEFAULT, "getuid", VERSION_OF_LIBC) != NULL);
  CHECK(dlvsym(RTLD_DEFAULT, "getuid", "NO_VERSION") == NULL);
  CHECK(dlsym(RTLD_DEFAULT, "in_no_library") == NULL);
}

/* What is said on stderr meanwhile. */
static void check_other_library(const char* file) {
  char said[4096];
  int ends[2];
  const int before = dup(2);
  CHECK(pipe(ends) == 0);
  dup2(ends[1], 2);
  void* const other = load(file);
  void* const found = dlsym(other, "MPI_Win_create");
  dlsym(other, "PMPI_Win_create");
  dlsym(other, "MPI_Win_fence");
  dup2(before, 2);
  close(ends[1]);
  const ssize_t bytes = read(ends[0], said, sizeof said - 1);
  said[bytes < 0 ? 0 : bytes] = '\0';
  CHECK(strcmp(file_of(found), file) == 0);
  const char* line = strstr(said, file);
  CHECK(line != NULL);
  CHECK(line != NULL && strstr(line + 1, file) == NULL);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  check_what_is_behind();
  check_library(argv[1]);
  check_handles_of_others(argv[2], argv[3]);
  check_next(argv[1], argv[2], argv[3]);
  check_other_library(argv[4]);
  return failures != 0;
}
