/* The small file that is preloaded into every process of a job: it exports MPI_X and PMPI_X for each call of calls.h
 * and sends them on, to the library until MPI is initialised and to the front from then on. It links nothing but libc,
 * has no undefined data symbol, and does nothing in a process without an MPI library. What ucx.c, opal.c, locking.c
 * and promoted.c export passes calls on, and no more in such a process.
 *
 * Both names are exported because Fortran libraries call either. A profiler's own MPI_X, found behind this file in the
 * order of symbols, is called first; it comes back through PMPI_X.
 */
#include <dlfcn.h>

/* Headers do not agree on the `const` of these, so that theirs are hidden from what is exported here. */
#define MPI_Request_get_status_all hidden_Request_get_status_all
#define MPI_Request_get_status_any hidden_Request_get_status_any
#define MPI_Request_get_status_some hidden_Request_get_status_some
#define PMPI_Request_get_status_all hidden_PRequest_get_status_all
#define PMPI_Request_get_status_any hidden_PRequest_get_status_any
#define PMPI_Request_get_status_some hidden_PRequest_get_status_some
#include <mpi.h>
#undef MPI_Request_get_status_all
#undef MPI_Request_get_status_any
#undef MPI_Request_get_status_some
#undef PMPI_Request_get_status_all
#undef PMPI_Request_get_status_any
#undef PMPI_Request_get_status_some

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "closing.h"
#include "hints.h"
#include "locking.h"
#include "next.h"
#include "polls.h"
#include "preload_abi.h"
#include "promoted.h"
#include "served.h"
#include "setting.h"
#include "symbols.h"
#include "yield.h"

#define EXPORTED __attribute__((visibility("default")))

static void resolve(void);
static int init_then_front(int* argc, char*** argv);
static int init_thread_then_front(int* argc, char*** argv, int required, int* provided);
static int init_session(MPI_Info info, MPI_Errhandler handler, farsum_mpi_session* session);
static int finalize_session(farsum_mpi_session* session);
static int finalize(void);
static int start_front(int with_world);
#define LATE_DECLARATION(name, parameters, arguments) static int late_##name parameters;
FARSUM_MPI_CREATIONS(LATE_DECLARATION, , int, int)
FARSUM_MPI_CREATIONS(LATE_DECLARATION, _c, MPI_Count, MPI_Aint)
FARSUM_MPI_DYNAMIC_CREATION(LATE_DECLARATION)

/* ---- the tables ---------------------------------------------------------------------------------------------- */

static struct farsum_mpi_library library; /* the library's own functions */
static void* library_handle;
static int resolved;
static pthread_mutex_t resolve_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int is_resolving;

/* Until the library is found each slot looks for it and calls again. */
#define FIRST_DECLARATION(name, parameters, arguments) static int first_##name parameters;
#define OUTER_FIRST_DECLARATION(name, parameters, arguments) static int outer_first_##name parameters;
FARSUM_MPI_CALLS(FIRST_DECLARATION)
FARSUM_MPI_CALLS(OUTER_FIRST_DECLARATION)

#define FIRST_SLOT(name, parameters, arguments) .name = first_##name,
#define OUTER_FIRST_SLOT(name, parameters, arguments) .name = outer_first_##name,
#define FUNCTION_TYPE(name, parameters, arguments) \
  typedef int name##_function parameters;          \
  typedef name##_function* name##_pointer;
FARSUM_MPI_CALLS(FUNCTION_TYPE)
/* Of programs of sessions, threads call while another one's first window starts the front. */
#define ATOMIC_SLOT(name, parameters, arguments) _Atomic name##_pointer name;
struct shared_calls {
  FARSUM_MPI_CALLS(ATOMIC_SLOT)
};
/* What PMPI_X calls, and what MPI_X calls: the same unless a profiler has an MPI_X. */
static struct shared_calls active = {FARSUM_MPI_CALLS(FIRST_SLOT)};
static struct shared_calls outer = {FARSUM_MPI_CALLS(OUTER_FIRST_SLOT)};
static struct farsum_mpi_calls profiler; /* NULL where there is none */
/* What `active` holds. Written by resolve, from then on under start_mutex. */
static struct farsum_mpi_calls latest;

/* Acquire pairs with the release in publish: what the function needs is there. */
#define FUNCTION_OF(table, name) atomic_load_explicit(&(table).name, memory_order_acquire)

static void publish(void) {
#define PUBLISH(name, parameters, arguments)                              \
  atomic_store_explicit(&active.name, latest.name, memory_order_release); \
  atomic_store_explicit(&outer.name, profiler.name != NULL ? profiler.name : latest.name, memory_order_release);
  FARSUM_MPI_CALLS(PUBLISH)
}

/* Whether it is there. */
static int find_library(void) {
  /* Another preload's dlopen, which resolve() calls, may look something up. */
  if (is_resolving) return 0;
  pthread_mutex_lock(&resolve_mutex);
  if (!resolved) {
    is_resolving = 1;
    resolve();
    is_resolving = 0;
  }
  const int found = resolved;
  pthread_mutex_unlock(&resolve_mutex);
  return found;
}

void* farsum_mpi_library_handle(void) { return find_library() ? library_handle : NULL; }

int farsum_mpi_is_resolving(void) { return is_resolving; }

/* A call before the library could be found, as from a program that loads MPI by hand. */
static void need_library(const char* call) {
  if (find_library()) return;
  fprintf(stderr, "farsum: %s was called, but no MPI library of this kind (%s) is loaded in this process\n", call,
          FARSUM_MPI_ABI_NAME);
  abort();
}

#define FIRST(name, parameters, arguments)                 \
  static int first_##name parameters {                     \
    need_library("MPI_" #name);                            \
    const name##_pointer call = FUNCTION_OF(active, name); \
    return call arguments;                                 \
  }                                                        \
  static int outer_first_##name parameters {               \
    need_library("MPI_" #name);                            \
    const name##_pointer call = FUNCTION_OF(outer, name);  \
    return call arguments;                                 \
  }
FARSUM_MPI_CALLS(FIRST)

/* A call that is newer than the library. Who comes here asked by a weak symbol or by dlsym whether the call is there,
 * and was told yes by this file; mpi4py, which does so for every call, knows a call that is not there by this number of
 * its own. It is no library's error. */
#define ABSENT_CALL (-1431655766)
#define MISSING(name, parameters, arguments)                            \
  static int missing_##name parameters {                                \
    fprintf(stderr, "farsum: this MPI library has no MPI_%s\n", #name); \
    return ABSENT_CALL;                                                 \
  }
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
FARSUM_MPI_CALLS(MISSING)
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Open MPI's null handle is the address of data in its library, which this file must not need. */
static int is_null(MPI_Request request) {
#ifdef OPEN_MPI
  return (void*)request == farsum_mpi_dlsym()(library_handle, "ompi_request_null");
#else
  return request == MPI_REQUEST_NULL;
#endif
}

/* MPI 4.1's calls on several requests, where the library has the one on one request only. */
static MPI_Status* status_at(MPI_Status* statuses, int index) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + index;
}

static int status_of_all(int count, const MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  *flag = 1;
  for (int i = 0; i < count && *flag; ++i) {
    const int result = library.Request_get_status(requests[i], flag, status_at(statuses, i));
    if (result != MPI_SUCCESS) return result;
  }
  return MPI_SUCCESS;
}

static int status_of_any(int count, const MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  int active_requests = 0;
  *flag = 0;
  *index = MPI_UNDEFINED;
  for (int i = 0; i < count; ++i) {
    if (is_null(requests[i])) continue;
    ++active_requests;
    const int result = library.Request_get_status(requests[i], flag, status);
    if (result != MPI_SUCCESS) return result;
    if (*flag) {
      *index = i;
      return MPI_SUCCESS;
    }
  }
  if (active_requests == 0) *flag = 1;
  return MPI_SUCCESS;
}

static int status_of_some(int count, const MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  int active_requests = 0;
  *done = 0;
  for (int i = 0; i < count; ++i) {
    if (is_null(requests[i])) continue;
    ++active_requests;
    int flag = 0;
    const int result = library.Request_get_status(requests[i], &flag, status_at(statuses, *done));
    if (result != MPI_SUCCESS) return result;
    if (flag) indices[(*done)++] = i;
  }
  if (active_requests == 0) *done = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

/* ---- what is exported ---------------------------------------------------------------------------------------- */

#define EXPORT(name, parameters, arguments)                \
  EXPORTED int MPI_##name parameters {                     \
    const name##_pointer call = FUNCTION_OF(outer, name);  \
    return call arguments;                                 \
  }                                                        \
  EXPORTED int PMPI_##name parameters {                    \
    const name##_pointer call = FUNCTION_OF(active, name); \
    return call arguments;                                 \
  }
FARSUM_MPI_ALL_COUNTED_CALLS(EXPORT, , int, int)
#ifndef FARSUM_MPI_NO_LARGE_COUNTS
FARSUM_MPI_COUNTED_CALLS(EXPORT, _c, MPI_Count, MPI_Aint)
/* Not where some of the libraries are older than these: a program that asks whether they are there, and goes on
 * without, must not be told that they are. */
#ifdef FARSUM_MPI_ALL_HAVE_TWINS
FARSUM_MPI_COLLECTIVE_CALLS(EXPORT, _c, MPI_Count, MPI_Aint)
FARSUM_MPI_WAITING_COUNTED_CALLS(EXPORT, _c, MPI_Count, MPI_Aint)
#endif
#endif
FARSUM_MPI_UNCOUNTED_CALLS(EXPORT)

/* ---- finding the library ------------------------------------------------------------------------------------- */

static const char* file_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
}

/* A profiler's function of this name, if one stands between this file and the library; else NULL. */
static void* profiler_function(const char* name, const void* librarys) {
  void* next = farsum_mpi_dlsym()(RTLD_NEXT, name);
  if (next == NULL || librarys == NULL || next == librarys) return NULL;
  return strcmp(file_of(next), file_of(librarys)) == 0 ? NULL : next;
}

/* ISO C keeps object and function pointers apart; POSIX lets dlsym cross over. */
static void store(void* slot, void* function) { memcpy(slot, &function, sizeof function); }

static void resolve(void) {
  static const char* const sonames[] = {FARSUM_MPI_SONAMES};
  for (size_t i = 0; i < sizeof sonames / sizeof sonames[0] && library_handle == NULL; ++i) {
    library_handle = farsum_mpi_dlopen()(sonames[i], RTLD_LAZY | RTLD_NOLOAD);
  }
  if (library_handle == NULL) return; /* a process that loads MPI later is looked at again then */
#define LOOK_UP(name, parameters, arguments) store(&library.name, farsum_mpi_dlsym()(library_handle, "PMPI_" #name));
  FARSUM_MPI_CALLS(LOOK_UP)
  FARSUM_MPI_HELPERS(LOOK_UP)
  if (library.Request_get_status_all == NULL) library.Request_get_status_all = status_of_all;
  if (library.Request_get_status_any == NULL) library.Request_get_status_any = status_of_any;
  if (library.Request_get_status_some == NULL) library.Request_get_status_some = status_of_some;
#define TO_LIBRARY(name, parameters, arguments)            \
  if (library.name == NULL) library.name = missing_##name; \
  latest.name = library.name;                              \
  store(&profiler.name, profiler_function("MPI_" #name, farsum_mpi_dlsym()(library_handle, "MPI_" #name)));
  FARSUM_MPI_CALLS(TO_LIBRARY)
#define TO_LATE(name, parameters, arguments) latest.name = late_##name;
  latest.Init = init_then_front;
  latest.Init_thread = init_thread_then_front;
  latest.Session_init = init_session;
  latest.Session_finalize = finalize_session;
  latest.Finalize = finalize;
  FARSUM_MPI_CREATIONS(TO_LATE, , int, int)
  FARSUM_MPI_CREATIONS(TO_LATE, _c, MPI_Count, MPI_Aint)
  FARSUM_MPI_DYNAMIC_CREATION(TO_LATE)
  publish();
  farsum_mpi_lets_yield();
  resolved = 1;
}

/* ---- the front begins after the library's Init ---------------------------------------------------------------- */

static void give_hints(void) {
  if (farsum_mpi_setting_is_on("FARSUM_MPI_OFF")) return;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (library.Get_library_version(version, &length) == MPI_SUCCESS) farsum_mpi_give_hints(version);
}

static int init_then_front(int* argc, char*** argv) {
  give_hints();
  const int result = library.Init(argc, argv);
  farsum_mpi_take_hints_back();
  return result == MPI_SUCCESS ? start_front(1) : result;
}

static int init_thread_then_front(int* argc, char*** argv, int required, int* provided) {
  give_hints();
  const int result = library.Init_thread(argc, argv, required, provided);
  farsum_mpi_take_hints_back();
  return result == MPI_SUCCESS ? start_front(1) : result;
}

/* A program of sessions has no Init; its front begins with its first window. */
#define LATE(name, parameters, arguments)                   \
  static int late_##name parameters {                       \
    const int result = start_front(0);                      \
    const name##_pointer call = FUNCTION_OF(active, name);  \
    return result == MPI_SUCCESS ? call arguments : result; \
  }
FARSUM_MPI_CREATIONS(LATE, , int, int)
FARSUM_MPI_CREATIONS(LATE, _c, MPI_Count, MPI_Aint)
FARSUM_MPI_DYNAMIC_CREATION(LATE)

/* Whether a list with colons between its items holds this one. */
static int lists(const char* list, const char* item, size_t bytes) {
  while (list != NULL && *list != '\0') {
    const size_t length = strcspn(list, ":");
    if (length == bytes && strncmp(list, item, bytes) == 0) return 1;
    list += length + (list[length] == ':');
  }
  return 0;
}

/* Children of this process are none of the job's: they inherit neither the preload nor what came with it. */
static void leave_environment(void) {
  Dl_info self;
  const char* list = getenv("LD_PRELOAD");
  const char* runtimes = getenv(FARSUM_MPI_RUNTIMES_SETTING);
  if (list == NULL || dladdr((const void*)&resolved, &self) == 0) return;
  char* kept = malloc(strlen(list) + 1);
  if (kept == NULL) return;
  size_t length = 0;
  for (const char* item = list; *item != '\0';) {
    const size_t bytes = strcspn(item, ": ");
    if (bytes != 0 && !lists(self.dli_fname, item, bytes) && !lists(runtimes, item, bytes)) {
      if (length != 0) kept[length++] = ':';
      memcpy(kept + length, item, bytes);
      length += bytes;
    }
    item += bytes;
    if (*item != '\0') ++item;
  }
  kept[length] = '\0';
  if (length == 0) {
    unsetenv("LD_PRELOAD");
  } else {
    setenv("LD_PRELOAD", kept, 1);
  }
  free(kept);
}

/* The front lies beside this file. */
static int front_path(char* path, size_t room) {
  const char* mine = file_of((const void*)&resolved);
  const char* slash = strrchr(mine, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - mine + 1);
  const int length = snprintf(path, room, "%.*slibfarsum_front_%s.so", folder, mine, FARSUM_MPI_ABI_NAME);
  return length > 0 && (size_t)length < room;
}

/* Written under start_mutex. */
static farsum_mpi_front_end_function* _Atomic front_ending;
static farsum_mpi_front_end_function* _Atomic front_end;

static farsum_mpi_front_end_function* end_function(void* front, const char* name) {
  farsum_mpi_front_end_function* function = NULL;
  store(&function, farsum_mpi_dlsym()(front, name));
  return function;
}

static farsum_mpi_front_start_function* load_front(void) {
  char path[4096];
  void* front = front_path(path, sizeof path) ? farsum_mpi_dlopen()(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  farsum_mpi_front_start_function* start = NULL;
  if (front != NULL) store(&start, farsum_mpi_dlsym()(front, FARSUM_MPI_FRONT_START));
  if (front != NULL) {
    /* Release pairs with the acquire in finalize_session: what the front's constructors made is there. */
    atomic_store_explicit(&front_ending, end_function(front, FARSUM_MPI_FRONT_ENDING), memory_order_release);
    atomic_store_explicit(&front_end, end_function(front, FARSUM_MPI_FRONT_END), memory_order_release);
    farsum_mpi_front_before_mlockall_function* before_mlockall = NULL;
    store(&before_mlockall, farsum_mpi_dlsym()(front, FARSUM_MPI_FRONT_BEFORE_MLOCKALL));
    farsum_mpi_tell_of_locking(before_mlockall);
  }
  if (start != NULL) return start;
  const char* why = dlerror();
  fprintf(stderr, "farsum: the one-sided layer stays the MPI library's own: %s could not be loaded (%s)\n", path,
          why == NULL ? "its path is too long" : why);
  return NULL;
}

static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Under start_mutex. */
static farsum_mpi_front_start_function* front_start(void) {
  static int looked;
  static farsum_mpi_front_start_function* start;
  if (!looked) {
    looked = 1;
    leave_environment();
    start = load_front();
  }
  return start;
}

static pthread_mutex_t sessions_mutex = PTHREAD_MUTEX_INITIALIZER;
static long live_sessions; /* guarded by sessions_mutex */

static void count_session(void) {
  pthread_mutex_lock(&sessions_mutex);
  ++live_sessions;
  pthread_mutex_unlock(&sessions_mutex);
}

static int init_session(MPI_Info info, MPI_Errhandler handler, farsum_mpi_session* session) {
  give_hints();
  const int result = library.Session_init(info, handler, session);
  farsum_mpi_take_hints_back();
  if (result == MPI_SUCCESS) count_session();
  return result;
}

static int finalize_session(farsum_mpi_session* session) {
  pthread_mutex_lock(&sessions_mutex);
  const int is_last = --live_sessions == 0;
  farsum_mpi_front_end_function* const ending = atomic_load_explicit(&front_ending, memory_order_acquire);
  farsum_mpi_front_end_function* const end = atomic_load_explicit(&front_end, memory_order_acquire);
  /* Before another thread can have a session. The mutex is not held while the front waits for other ranks: there a
   * thread may have a session already, and wait for one of this rank to open its own. */
  if (is_last && ending != NULL) ending();
  pthread_mutex_unlock(&sessions_mutex);
  if (is_last && end != NULL) end();
  const int looks_after = is_last && !farsum_mpi_setting_is_on("FARSUM_MPI_OFF");
  if (looks_after) farsum_mpi_begins_to_end();
  const int result = library.Session_finalize(session);
  if (looks_after) farsum_mpi_has_ended();
  if (result != MPI_SUCCESS) count_session();
  return result;
}

static int finalize(void) {
  if (farsum_mpi_setting_is_on("FARSUM_MPI_OFF")) return library.Finalize();
  farsum_mpi_begins_to_end();
  const int result = library.Finalize();
  farsum_mpi_has_ended();
  return result;
}

/* Threads may make their first windows at once: the later ones find the front started. */
static int start_front(int with_world) {
  int result = MPI_SUCCESS;
  pthread_mutex_lock(&start_mutex);
  farsum_mpi_front_start_function* start = farsum_mpi_setting_is_on("FARSUM_MPI_OFF") ? NULL : front_start();
  struct farsum_mpi_calls calls = latest;
  /* What the front does not take over. */
#define NOT_LATE(name, parameters, arguments) \
  if (calls.name == late_##name) calls.name = library.name;
  FARSUM_MPI_CREATIONS(NOT_LATE, , int, int)
  FARSUM_MPI_CREATIONS(NOT_LATE, _c, MPI_Count, MPI_Aint)
  FARSUM_MPI_DYNAMIC_CREATION(NOT_LATE)
  if (start != NULL) {
    const struct farsum_mpi_preload preload = {
        sizeof preload, &library, &calls, library_handle, farsum_mpi_tell_of_polls, farsum_mpi_tell_of_memory};
    result = start(&preload, with_world);
  }
  if (result == MPI_SUCCESS) {
    latest = calls;
    publish();
  }
  pthread_mutex_unlock(&start_mutex);
  return result;
}

__attribute__((constructor)) static void begin(void) {
  farsum_mpi_sees_start();
  farsum_mpi_finds_memory_calls();
  (void)find_library();
}
