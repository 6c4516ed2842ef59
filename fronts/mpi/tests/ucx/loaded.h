/* The stand-ins, loaded privately and with the preload in front; and a check. */
#ifndef FARSUM_MPI_TESTS_LOADED_H
#define FARSUM_MPI_TESTS_LOADED_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                 \
  } while (0)

static inline void store(void* slot, void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s: %s\n", name, dlerror());
    exit(1);
  }
  memcpy(slot, &symbol, sizeof symbol);
}

static inline void* load(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

#endif
