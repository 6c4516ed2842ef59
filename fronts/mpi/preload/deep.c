#include "deep.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "served.h"
#include "setting.h"
#include "symbols.h"

/* ---- what was opened ----------------------------------------------------------------------------------------- */

/* As much of it as is needed here. */
struct object {
  struct link_map map; /* l_addr, l_name, l_ld */
  const ElfW(Phdr) * segments;
  size_t segment_count;
};

/* More than a plugin brings. */
enum { most_objects = 256 };

struct opened {
  void* handle;
  struct object objects[most_objects];
  size_t count;
  struct object* current; /* whose slots are visited */
  int failed;             /* errno */
};

static const ElfW(Phdr) * segment(const struct object* object, uint32_t type) {
  for (size_t i = 0; i < object->segment_count; ++i) {
    if (object->segments[i].p_type == type) return &object->segments[i];
  }
  return NULL;
}

/* In a part of the object that is loaded with these flags. */
static int holds(const struct object* object, const void* address, uint32_t flags) {
  const uintptr_t offset = (uintptr_t)address - object->map.l_addr;
  for (size_t i = 0; i < object->segment_count; ++i) {
    const ElfW(Phdr)* one = &object->segments[i];
    if (one->p_type == PT_LOAD && (one->p_flags & flags) == flags && offset >= one->p_vaddr &&
        offset - one->p_vaddr < one->p_memsz) {
      return 1;
    }
  }
  return 0;
}

static int is_called(const struct object* object, const char* name) {
  const char* slash = strrchr(object->map.l_name, '/');
  if (strcmp(slash == NULL ? object->map.l_name : slash + 1, name) == 0) return 1;
  const char* soname = farsum_mpi_soname(&object->map);
  return soname != NULL && strcmp(soname, name) == 0;
}

static int is_needed(const struct opened* opened, const struct object* object) {
  const char* name = NULL;
  for (size_t i = 0; i < opened->count; ++i) {
    for (size_t k = 0; (name = farsum_mpi_needed(&opened->objects[i].map, k)) != NULL; ++k) {
      if (is_called(object, name)) return 1;
    }
  }
  return 0;
}

/* The object that was opened, and of those behind it in the loader's list, which are younger, those that it is linked
 * to. Older ones were bound when they came, and younger ones that others open meanwhile may not be bound yet. */
static int collect(struct dl_phdr_info* info, size_t bytes, void* data) {
  struct opened* opened = data;
  const struct link_map* first = opened->handle;
  struct object object = {.segments = info->dlpi_phdr, .segment_count = info->dlpi_phnum};
  (void)bytes;
  const ElfW(Phdr)* dynamic = segment(&object, PT_DYNAMIC);
  if (dynamic == NULL) return 0;
  object.map.l_addr = info->dlpi_addr;
  object.map.l_name = (char*)info->dlpi_name;
  object.map.l_ld = (ElfW(Dyn)*)(info->dlpi_addr + dynamic->p_vaddr);
  const int is_taken = opened->count == 0 ? object.map.l_ld == first->l_ld : is_needed(opened, &object);
  if (is_taken) opened->objects[opened->count++] = object;
  return opened->count == most_objects;
}

/* ---- how it is bound ----------------------------------------------------------------------------------------- */

/* What the loader makes read-only when all is bound: whole pages. */
static int protect(const struct object* object, int protection) {
  const ElfW(Phdr)* read_only = segment(object, PT_GNU_RELRO);
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = (object->map.l_addr + read_only->p_vaddr) & ~(page - 1);
  const uintptr_t end = (object->map.l_addr + read_only->p_vaddr + read_only->p_memsz) & ~(page - 1);
  return begin == end ? 0 : mprotect((void*)begin, end - begin, protection);
}

static int is_read_only(const struct object* object, const void* address) {
  const ElfW(Phdr)* read_only = segment(object, PT_GNU_RELRO);
  return read_only != NULL && (uintptr_t)address - object->map.l_addr - read_only->p_vaddr < read_only->p_memsz;
}

/* Threads that have opened the same object may bind it at once: one would make a page read-only that another writes to.
 * The loader is not called with this mutex held: a constructor that opens a plugin holds the loader's locks. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

/* Release: threads that an object has started may call already. */
static void store_function(void** place, void* function) { __atomic_store_n(place, function, __ATOMIC_RELEASE); }

static void bind(struct opened* opened, void** place, void* function) {
  if (!is_read_only(opened->current, place)) {
    store_function(place, function);
    return;
  }
  pthread_mutex_lock(&writing);
  if (protect(opened->current, PROT_READ | PROT_WRITE) != 0) {
    opened->failed = errno;
  } else {
    store_function(place, function);
    (void)protect(opened->current, PROT_READ);
  }
  pthread_mutex_unlock(&writing);
}

static int begins_with(const char* name, const char* beginning) {
  return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* Names that each MPI library has; all others that this library exports pass calls on to where they were going. */
static int is_of_mpi_library(const char* name) {
  return begins_with(name, "MPI") || begins_with(name, "PMPI") || begins_with(name, "mpi_") ||
         begins_with(name, "pmpi_") || begins_with(name, "ompi_");
}

/* What already leads elsewhere, to this library or to a wrapper between, stays. */
static void look_at(const struct farsum_mpi_slot* slot, void* data) {
  struct opened* opened = data;
  void* own = farsum_mpi_own_function(slot->name);
  if (own == NULL || !holds(opened->current, slot->place, PF_W)) return;
  void* const found = farsum_mpi_dlsym()(opened->handle, slot->name);
  if (is_of_mpi_library(slot->name)) own = farsum_mpi_served_for(found, slot->name);
  if (found == NULL || own == NULL) return;
  /* Relaxed: it is compared only. */
  const void* const held = __atomic_load_n(slot->place, __ATOMIC_RELAXED);
  const int is_empty = slot->is_for_calls && holds(opened->current, held, 0);
  if (is_empty || held == found) bind(opened, slot->place, own);
}

static void tell_of_failure(const struct opened* opened) {
  fprintf(stderr,
          "farsum: %s was opened with RTLD_DEEPBIND, so that its MPI calls go past Farsum, and could not be bound anew "
          "(%s): windows of the program cannot be used there\n",
          opened->objects[0].map.l_name, strerror(opened->failed));
}

static void bind_opened(void* handle) {
  struct opened* opened = farsum_mpi_library_handle() == NULL ? NULL : malloc(sizeof *opened);
  if (opened == NULL) return;
  opened->handle = handle;
  opened->count = 0;
  opened->failed = 0;
  /* No function that looks up or opens is called while the loader's list is held. */
  dl_iterate_phdr(collect, opened);
  for (size_t i = 0; i < opened->count; ++i) {
    opened->current = &opened->objects[i];
    farsum_mpi_visit_slots(&opened->current->map, look_at, opened);
  }
  if (opened->failed != 0) tell_of_failure(opened);
  free(opened);
  (void)dlerror(); /* of names that are nowhere: the program's own call has succeeded */
}

/* ---- who opens ----------------------------------------------------------------------------------------------- */

static char* _Atomic awaited; /* a file's name; the thread that takes it out owns it */
static atomic_int has_opened;

/* The handle is to be closed. NULL: not there. */
static void* open_again(const char* file) { return farsum_mpi_dlopen()(file, RTLD_LAZY | RTLD_NOLOAD); }

void farsum_mpi_bind_awaited(void) {
  /* Relaxed: the thread that opens looks up, or tells another one. */
  if (atomic_load_explicit(&awaited, memory_order_relaxed) == NULL) return;
  char* file = atomic_exchange_explicit(&awaited, NULL, memory_order_acq_rel);
  void* handle = file == NULL ? NULL : open_again(file);
  if (handle != NULL) {
    bind_opened(handle);
    dlclose(handle);
  }
  free(file);
}

int farsum_mpi_has_opened_deep(void) { return atomic_load_explicit(&has_opened, memory_order_relaxed); }

int farsum_mpi_opens_deep(const char* file, int mode) {
  if ((mode & RTLD_DEEPBIND) == 0 || (mode & RTLD_NOLOAD) != 0 || file == NULL) return 0;
  if (farsum_mpi_setting_is_on("FARSUM_MPI_OFF")) return 0;
  /* What is there already stays as it is bound. */
  void* const handle = open_again(file);
  if (handle != NULL) {
    dlclose(handle);
    return 0;
  }
  atomic_store_explicit(&has_opened, 1, memory_order_relaxed);
  if (strchr(file, '/') != NULL && strchr(file, '$') == NULL) return 1;
  free(atomic_exchange_explicit(&awaited, strdup(file), memory_order_acq_rel));
  return 0;
}

void* farsum_mpi_open_deep(const char* file, int mode) {
  void* const handle = farsum_mpi_dlopen()(file, mode);
  if (handle != NULL) bind_opened(handle);
  return handle;
}
