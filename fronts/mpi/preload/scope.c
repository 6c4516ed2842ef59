#include "scope.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols.h"

struct looked_up {
  const void* caller;
  const char* name;
  void* function;
};

/* More than an MPI library has places that call what is asked for here. */
enum { callers = 64 };
static _Thread_local struct looked_up known[callers];

static const char here; /* in this library */

static int is_of_this_library(const void* symbol) {
  Dl_info its, own;
  return dladdr(symbol, &its) != 0 && dladdr(&here, &own) != 0 && its.dli_fbase == own.dli_fbase;
}

static void* symbol_of(void* library, const char* name) {
  void* symbol = library == NULL ? NULL : farsum_mpi_dlsym()(library, name);
  /* The program's own handle answers for the whole process. */
  return symbol != NULL && is_of_this_library(symbol) ? NULL : symbol;
}

static void* symbol_in(const char* file, const char* name) {
  void* library = file == NULL ? NULL : farsum_mpi_dlopen()(file, RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = symbol_of(library, name);
  if (library != NULL) dlclose(library); /* others hold it */
  return symbol;
}

struct wanted {
  const char* part; /* of the file's name */
  char path[PATH_MAX];
};

/* The first of them. No library is opened while the loader's list is held. */
static int is_wanted(struct dl_phdr_info* object, size_t bytes, void* data) {
  struct wanted* wanted = data;
  (void)bytes;
  if (strstr(object->dlpi_name, wanted->part) == NULL) return 0;
  snprintf(wanted->path, sizeof wanted->path, "%s", object->dlpi_name);
  return 1;
}

/* A process may hold several such libraries, in scopes of their own. Who calls with the last instruction of a function
 * of its own is not seen: any of them then, of which there is one. */
static void* look_up(const void* caller, const char* library, const char* name) {
  Dl_info info;
  struct wanted wanted = {.part = library};
  void* symbol = dladdr(caller, &info) == 0 ? NULL : symbol_in(info.dli_fname, name);
  if (symbol == NULL) symbol = symbol_of(RTLD_NEXT, name);
  if (symbol == NULL && dl_iterate_phdr(is_wanted, &wanted) != 0) symbol = symbol_in(wanted.path, name);
  if (symbol == NULL) {
    fprintf(stderr, "farsum: %s was called, which is in no library of this process\n", name);
    abort();
  }
  return symbol;
}

/* The caller's entry, or a free one behind the place that its address gives; where all are taken, that place. */
static struct looked_up* entry_of(const void* caller, const char* name) {
  const uintptr_t first = (uintptr_t)caller % callers;
  for (uintptr_t step = 0; step < callers; ++step) {
    struct looked_up* entry = &known[(first + step) % callers];
    if (entry->caller == NULL || (entry->caller == caller && entry->name == name)) return entry;
  }
  return &known[first];
}

void* farsum_mpi_function_of(const void* caller, const char* library, const char* name) {
  struct looked_up* entry = entry_of(caller, name);
  if (entry->caller != caller || entry->name != name) {
    entry->function = look_up(caller, library, name);
    entry->caller = caller;
    entry->name = name;
  }
  return entry->function;
}
