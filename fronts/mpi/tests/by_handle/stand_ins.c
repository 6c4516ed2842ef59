/* What a program finds behind a handle: an MPI library, one that is linked to it, a profiler with calls of its own, and
 * a library that looks for what stands behind itself. IS_MPI, IS_LINKED_TO_MPI, IS_PROFILER or IS_BEFORE_LIBC. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define ANSWERS(function, number)       \
  EXPORTED int function(int, int);      \
  EXPORTED int function(int a, int b) { \
    (void)a;                            \
    (void)b;                            \
    return number;                      \
  }

/* What comes behind the library that calls it. No jump, for dlsym goes by who called. */
#define FINDS_NEXT(function)                                                             \
  EXPORTED void* function(const char* name, const char* version);                        \
  EXPORTED void* function(const char* name, const char* version) {                       \
    void* volatile found = NULL;                                                         \
    found = version == NULL ? dlsym(RTLD_NEXT, name) : dlvsym(RTLD_NEXT, name, version); \
    return found;                                                                        \
  }

#if defined(IS_MPI)
ANSWERS(MPI_Win_fence, 11)
ANSWERS(PMPI_Win_fence, 11)
ANSWERS(MPI_Win_create, 12)
ANSWERS(PMPI_Win_create, 12)
/* No call that Farsum knows. */
ANSWERS(MPI_Waitformoon, 13)

/* What a library finds that looks its own calls up. */
EXPORTED void* finds(const char* name);
EXPORTED void* finds(const char* name) {
  static const char here; /* in this library */
  Dl_info info;
  void* own = dladdr(&here, &info) == 0 ? NULL : dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* found = own == NULL ? NULL : dlsym(own, name);
  return found;
}
#elif defined(IS_LINKED_TO_MPI)
int MPI_Win_fence(int, int);
EXPORTED int plugin(void);
EXPORTED int plugin(void) { return MPI_Win_fence(0, 0); }
FINDS_NEXT(next_of_plugin)

/* No jump here, either. */
EXPORTED void* default_of_plugin(const char* name);
EXPORTED void* default_of_plugin(const char* name) {
  void* volatile found = NULL;
  found = dlsym(RTLD_DEFAULT, name);
  return found;
}

/* The function that it would call. */
EXPORTED void* fence_of_plugin(void);
EXPORTED void* fence_of_plugin(void) {
  static int (*const volatile fence)(int, int) = MPI_Win_fence;
  int (*const its)(int, int) = fence;
  void* symbol = NULL;
  memcpy(&symbol, &its, sizeof symbol);
  return symbol;
}
#elif defined(IS_PROFILER)
ANSWERS(MPI_Win_fence, 21)
FINDS_NEXT(next_of_profiler)
#else
FINDS_NEXT(next_of_start)

/* RTLD_NEXT counts from this library, whoever stands in for dlsym. */
EXPORTED int times_asked;

EXPORTED pid_t getppid(void) {
  pid_t (*next)(void) = NULL;
  void* const found = dlsym(RTLD_NEXT, "getppid");
  memcpy(&next, &found, sizeof next);
  return ++times_asked > 100 ? -1 : next();
}

EXPORTED pid_t getpgrp(void) {
  pid_t (*next)(void) = NULL;
  void* const found = dlvsym(RTLD_NEXT, "getpgrp", VERSION_OF_LIBC);
  memcpy(&next, &found, sizeof next);
  return ++times_asked > 100 ? -1 : next();
}
#endif
