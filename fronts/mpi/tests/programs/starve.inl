/* Takes memory from Farsum while a program runs: allocations of the front and the engine fail when they are told to;
 * the MPI library's own go on. Included once, before everything else. */
#ifndef FARSUM_MPI_TESTS_STARVE_H
#define FARSUM_MPI_TESTS_STARVE_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

#include "check.h"

void* __libc_malloc(size_t bytes);

/* The front, and the C++ library that the engine allocates through. */
enum { of_front, of_engine, parts };
static uintptr_t begins[parts], ends[parts];
static int starved_parts = parts;    /* the first ones of them */
static _Thread_local long left = -1; /* allocations that succeed; negative: all */

static int is_ours(uintptr_t caller) {
  for (int i = 0; i < starved_parts; ++i) {
    if (begins[i] <= caller && caller < ends[i]) return 1;
  }
  return 0;
}

/* Takes the place of libc's for the whole process. */
__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  if (left >= 0 && is_ours((uintptr_t)__builtin_return_address(0))) {
    if (left == 0) return NULL;
    --left;
  }
  return __libc_malloc(bytes);
}

static int note(struct dl_phdr_info* object, size_t bytes, void* nothing) {
  (void)bytes, (void)nothing;
  const int part = strstr(object->dlpi_name, "libfarsum_front_") != NULL ? of_front
                   : strstr(object->dlpi_name, "libstdc++") != NULL      ? of_engine
                                                                         : parts;
  for (int i = 0; part != parts && i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_LOAD || (object->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    begins[part] = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
    ends[part] = begins[part] + object->dlpi_phdr[i].p_memsz;
    break;
  }
  return 0;
}

/* Once MPI is initialised. */
static inline void find_allocators(void) {
  dl_iterate_phdr(note, NULL);
  for (int i = 0; i < parts; ++i) CHECK(begins[i] != 0, "library %d of those that allocate was not found", i);
}

/* What the handlers were told last; what the call returns then is the library's to say. */
static int handled, class_told;
static inline void on_window(MPI_Win* win, int* code, ...) {
  (void)win;
  MPI_Error_class(*code, &class_told);
  ++handled;
}
static inline void on_communicator(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  MPI_Error_class(*code, &class_told);
  ++handled;
}

#endif
