#include "next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

#include "symbols.h"

/* The last object that was loaded with the program, or opened by a constructor that ran before this library's: it
 * stays. NULL: this library has not begun. */
static const struct link_map* _Atomic last_of_start;

void farsum_mpi_sees_start(void) {
  const struct link_map* last = _r_debug.r_map;
  while (last != NULL && last->l_next != NULL) last = last->l_next;
  /* Who has opened it may close it, and its place in the list would be lost, or another object's. */
  if (last != NULL) (void)farsum_mpi_dlopen()(last->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  /* Release pairs with the acquire below: the list up to there. */
  atomic_store_explicit(&last_of_start, last, memory_order_release);
}

static const struct link_map* last_object(void) { return atomic_load_explicit(&last_of_start, memory_order_acquire); }

static int is_of_start(const struct link_map* object) {
  const struct link_map* const last = last_object();
  const struct link_map* here = _r_debug.r_map;
  while (here != NULL && here != object && here != last) here = here->l_next;
  return here == object;
}

/* Objects that were loaded with the program are asked in the order of the loader's list. */
static void* function_behind(const struct link_map* object, const char* name) {
  const struct link_map* const last = last_object();
  void* function = NULL;
  while (function == NULL && object != last && object->l_next != NULL) {
    object = object->l_next;
    function = farsum_mpi_function_in(object, name);
  }
  return function;
}

/* An object that was opened has an order of its own: behind it are those that it is linked to. */
static void* function_needed_by(const struct link_map* object, const char* name) {
  const char* needed = NULL;
  void* function = NULL;
  for (size_t i = 0; function == NULL && (needed = farsum_mpi_needed(object, i)) != NULL; ++i) {
    void* library = farsum_mpi_dlopen()(needed, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) continue;
    function = farsum_mpi_dlsym()(library, name);
    dlclose(library); /* the object holds it */
  }
  return function;
}

static const struct link_map* object_around(const void* address) {
  Dl_info info;
  void* object = NULL;
  return dladdr1(address, &info, &object, RTLD_DL_LINKMAP) == 0 ? NULL : object;
}

void* farsum_mpi_needed_function(const void* caller, const char* name) {
  const struct link_map* const object = object_around(caller);
  return object == NULL || is_of_start(object) ? NULL : function_needed_by(object, name);
}

void* farsum_mpi_next_function(const void* caller, const char* name, const char* second) {
  const struct link_map* const object = object_around(caller);
  if (object == NULL) return NULL;
  if (!is_of_start(object)) return function_needed_by(object, name);
  void* function = function_behind(object, name);
  /* From here: what is opened for all comes behind everything that was loaded with the program. */
  if (function == NULL) function = farsum_mpi_dlsym()(RTLD_NEXT, second);
  return function;
}
