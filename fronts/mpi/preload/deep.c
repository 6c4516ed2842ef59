#include "deep.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
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

/* ---- what was bound ------------------------------------------------------------------------------------------ */

/* One of them, also when it is closed: another object at its place is then taken for it. */
struct bound {
  struct bound* next;
  const void* dynamic; /* its l_ld */
};

/* Release, here, and acquire in the readers: what the newest and those behind it hold. */
static struct bound* _Atomic newest_bound;

static int is_bound(const void* dynamic) {
  const struct bound* one = atomic_load_explicit(&newest_bound, memory_order_acquire);
  while (one != NULL && one->dynamic != dynamic) one = one->next;
  return one != NULL;
}

/* Two threads may remember the same object, which does no harm. */
static void remember(const struct object* object) {
  struct bound* const one = is_bound(object->map.l_ld) ? NULL : malloc(sizeof *one);
  if (one == NULL) return;
  one->dynamic = object->map.l_ld;
  /* Relaxed: the exchange looks again. */
  one->next = atomic_load_explicit(&newest_bound, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&newest_bound, &one->next, one, memory_order_release,
                                                memory_order_relaxed)) {
  }
}

int farsum_mpi_is_deep(const void* code) {
  Dl_info info;
  void* found = NULL;
  /* Relaxed: most processes have none, and is_bound looks again. */
  if (atomic_load_explicit(&newest_bound, memory_order_relaxed) == NULL) return 0;
  if (dladdr1(code, &info, &found, RTLD_DL_LINKMAP) == 0 || found == NULL) return 0;
  const struct link_map* const map = found;
  return is_bound(map->l_ld);
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

/* What already leads elsewhere, to this library or to a wrapper between, stays. What this library exports besides names
 * of MPI libraries, as of UCX and libc, passes calls on to where they were going. */
static void look_at(const struct farsum_mpi_slot* slot, void* data) {
  struct opened* opened = data;
  void* own = farsum_mpi_own_function(slot->name);
  if (own == NULL || !holds(opened->current, slot->place, PF_W)) return;
  void* const found = farsum_mpi_dlsym()(opened->handle, slot->name);
  if (farsum_mpi_is_of_library(slot->name)) own = farsum_mpi_served_for(found, slot->name);
  if (found == NULL || own == NULL) return;
  /* Relaxed: it is compared only. */
  const void* const held = __atomic_load_n(slot->place, __ATOMIC_RELAXED);
  const int is_empty = slot->is_for_calls && holds(opened->current, held, 0);
  if (is_empty || held == found) bind(opened, slot->place, own);
}

static void tell_of_failure(const struct opened* opened) {
  fprintf(stderr,
          "farsum: Farsum could not redirect the MPI calls of %s, which was opened with RTLD_DEEPBIND (%s); windows of "
          "the program cannot be used there\n",
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
  for (size_t i = 0; i < opened->count; ++i) remember(&opened->objects[i]);
  for (size_t i = 0; i < opened->count; ++i) {
    opened->current = &opened->objects[i];
    farsum_mpi_visit_slots(&opened->current->map, look_at, opened);
  }
  if (opened->failed != 0) tell_of_failure(opened);
  free(opened);
  (void)dlerror(); /* of names that are nowhere: the program's own call has succeeded */
}

/* ---- who opens ----------------------------------------------------------------------------------------------- */

/* A file that a thread opens, and that may not be bound yet. */
struct awaited {
  struct awaited* next; /* an older one */
  unsigned long number;
  pthread_t opener;
  char file[PATH_MAX];
};

/* Guards the three below. Neither the loader nor an allocator is called with it held, from which look-ups come here. */
static pthread_mutex_t awaited_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct awaited* youngest_awaited;
static unsigned long last_number;
/* Read without the mutex, relaxed: a thread that looks up what another one has opened was told of it. */
static atomic_int awaited_count;

/* The number by which it is to be forgotten; 0: there was no memory for it, or the name is too long for a file's. */
static unsigned long await(const char* file) {
  const size_t bytes = strlen(file) + 1;
  struct awaited* const one = bytes > sizeof one->file ? NULL : malloc(sizeof *one);
  if (one == NULL) return 0;
  memcpy(one->file, file, bytes);
  one->opener = pthread_self();
  pthread_mutex_lock(&awaited_mutex);
  const unsigned long number = ++last_number;
  one->number = number;
  one->next = youngest_awaited;
  youngest_awaited = one;
  atomic_fetch_add_explicit(&awaited_count, 1, memory_order_relaxed);
  pthread_mutex_unlock(&awaited_mutex);
  return number;
}

/* Unless that was done before. */
static void forget(unsigned long number) {
  pthread_mutex_lock(&awaited_mutex);
  struct awaited** link = &youngest_awaited;
  while (*link != NULL && (*link)->number != number) link = &(*link)->next;
  struct awaited* const one = *link;
  if (one != NULL) {
    *link = one->next;
    atomic_fetch_sub_explicit(&awaited_count, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&awaited_mutex);
  free(one);
}

/* The youngest that is older than `number`, as it is now; false: there is none. */
static int copy_before(unsigned long number, struct awaited* copy) {
  pthread_mutex_lock(&awaited_mutex);
  const struct awaited* one = youngest_awaited;
  while (one != NULL && one->number >= number) one = one->next;
  if (one != NULL) *copy = *one;
  pthread_mutex_unlock(&awaited_mutex);
  return one != NULL;
}

/* The handle is to be closed. NULL: not there. */
static void* open_again(const char* file) { return farsum_mpi_dlopen()(file, RTLD_LAZY | RTLD_NOLOAD); }

/* What cannot be opened again is not there yet, or never will be, which is known where its opener is back from dlopen.
 * All else is forgotten only when it is bound, so that no other thread calls it before. */
static void bind_each_awaited(int is_back) {
  struct awaited one;
  for (unsigned long number = ULONG_MAX; copy_before(number, &one); number = one.number) {
    void* const handle = open_again(one.file);
    if (handle != NULL) {
      bind_opened(handle);
      dlclose(handle);
    }
    if (handle != NULL || (is_back && pthread_equal(one.opener, pthread_self()))) forget(one.number);
  }
}

static void bind_awaited(int is_back) {
  static _Thread_local int is_binding; /* a library that stands in for dlopen may look up while it passes one on */
  if (atomic_load_explicit(&awaited_count, memory_order_relaxed) == 0 || is_binding || farsum_mpi_is_resolving())
    return;
  is_binding = 1;
  bind_each_awaited(is_back);
  is_binding = 0;
}

/* The same may look up here by RTLD_NEXT while its caller's plugin is not there yet. */
void farsum_mpi_bind_awaited(void* handle) { bind_awaited(handle != RTLD_NEXT && handle != RTLD_DEFAULT); }

int farsum_mpi_opens_deep(const char* file, int mode) {
  bind_awaited(1);
  if ((mode & RTLD_DEEPBIND) == 0 || (mode & RTLD_NOLOAD) != 0 || file == NULL) return 0;
  if (farsum_mpi_setting_is_on("FARSUM_MPI_OFF")) return 0;
  /* What is there already stays as it is bound. */
  void* const handle = open_again(file);
  if (handle != NULL) {
    dlclose(handle);
    return 0;
  }
  if (strchr(file, '/') != NULL && strchr(file, '$') == NULL) return 1;
  (void)await(file);
  return 0;
}

/* Awaited meanwhile, too: its constructors may look up, and other threads open it. */
void* farsum_mpi_open_deep(const char* file, int mode) {
  const unsigned long number = await(file);
  void* const handle = farsum_mpi_dlopen()(file, mode);
  if (handle != NULL) bind_opened(handle);
  forget(number);
  return handle;
}
