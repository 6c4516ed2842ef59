/* What the program of the stand-ins is linked to. It stands in for dlopen behind the preload, opens an object before
 * the preload begins, and calls MPI, to which it is not linked: the call is the preload's. */
#include "opener.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

__attribute__((weak)) int MPI_Win_fence(int, int);

int call_mpi(void) { return MPI_Win_fence == NULL ? 0 : MPI_Win_fence(0, 0); }

void (*opener_before_deep)(void);

/* The next one is looked up anew each time. */
EXPORTED void* dlopen(const char* file, int mode) {
  void* (*next)(const char*, int) = NULL;
  void (*const hook)(void) = opener_before_deep;
  void* const found = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&next, &found, sizeof next);
  if (hook != NULL && (mode & RTLD_DEEPBIND) != 0) {
    opener_before_deep = NULL;
    hook();
  }
  return next(file, mode);
}

static void* passing;

__attribute__((constructor)) static void begin(void) { passing = dlopen(PASSING, RTLD_LAZY); }

void close_passing(void) {
  if (passing != NULL) dlclose(passing);
  passing = NULL;
}
