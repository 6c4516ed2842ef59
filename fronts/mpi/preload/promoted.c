#include "promoted.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols.h"

#define EXPORTED __attribute__((visibility("default")))

typedef int fork_function(void);
typedef int madvise_function(void* address, size_t bytes, int advice);

/* Behind this file in the order of symbols. */
static fork_function* _Atomic next_fork;
static madvise_function* _Atomic next_madvise;

static const struct farsum_mpi_memory_calls* _Atomic told;

/* Acquire pairs with the release in farsum_mpi_tell_of_memory: what the front needs for them is there. */
static const struct farsum_mpi_memory_calls* fronts(void) { return atomic_load_explicit(&told, memory_order_acquire); }

/* Relaxed, here and below: functions of libraries that are loaded already. */
void farsum_mpi_finds_memory_calls(void) {
  void* symbol = farsum_mpi_dlsym()(RTLD_NEXT, "_Fork");
  fork_function* fork_bare = NULL;
  memcpy(&fork_bare, &symbol, sizeof symbol);
  atomic_store_explicit(&next_fork, fork_bare, memory_order_relaxed);
  symbol = farsum_mpi_dlsym()(RTLD_NEXT, "madvise");
  madvise_function* advise = NULL;
  memcpy(&advise, &symbol, sizeof symbol);
  atomic_store_explicit(&next_madvise, advise, memory_order_relaxed);
}

/* A call may come before the constructor of this file; an allocator's from inside dlsym. */
static int kernels_madvise(void* address, size_t bytes, int advice) {
  return (int)syscall(SYS_madvise, address, bytes, advice);
}

/* Where the C library has none (before glibc 2.34), neither has this process. */
EXPORTED pid_t _Fork(void);
pid_t _Fork(void) {
  fork_function* fork_bare = atomic_load_explicit(&next_fork, memory_order_relaxed);
  if (fork_bare == NULL) {
    farsum_mpi_finds_memory_calls();
    fork_bare = atomic_load_explicit(&next_fork, memory_order_relaxed);
  }
  if (fork_bare == NULL) {
    errno = ENOSYS;
    return -1;
  }
  const struct farsum_mpi_memory_calls* const calls = fronts();
  return calls == NULL ? fork_bare() : calls->fork_bare(fork_bare);
}

EXPORTED int madvise(void* address, size_t bytes, int advice);
int madvise(void* address, size_t bytes, int advice) {
  madvise_function* advise = atomic_load_explicit(&next_madvise, memory_order_relaxed);
  if (advise == NULL) advise = kernels_madvise;
  const struct farsum_mpi_memory_calls* const calls = fronts();
  return calls == NULL ? advise(address, bytes, advice) : calls->advise(address, bytes, advice, advise);
}

/* ---- UCX ------------------------------------------------------------------------------------------------------- */

/* UCX watches calls by writing over the first instructions of the function that a program finds first: here of the one
 * above, which then never runs. Whoever has asked it, by its published interface, is told of the call instead, before
 * it is made, and may make it. */
enum { ucm_madvise = 1 << 6, ucm_installs_nothing = 1 << 24 };
enum { before_the_call = -1 };
enum { not_made_yet = -1 };

struct ucm_madvise_event {
  int result;
  void* address;
  size_t bytes;
  int advice;
};
typedef void ucm_callback(int type, void* event, void* argument);
typedef int ucm_set_event_handler_function(int events, int priority, ucm_callback* callback, void* argument);

static void heard_of_madvise(int type, void* event, void* unused) {
  (void)unused;
  struct ucm_madvise_event* const call = event;
  const struct farsum_mpi_memory_calls* const calls = fronts();
  if (type != ucm_madvise || calls == NULL || call->result != not_made_yet) return;
  call->result = calls->advise(call->address, call->bytes, call->advice, kernels_madvise);
}

static void ask_ucx(void) {
  void* const ucm = farsum_mpi_dlopen()("libucm.so.0", RTLD_LAZY | RTLD_NOLOAD);
  void* const symbol = farsum_mpi_dlsym()(ucm != NULL ? ucm : RTLD_DEFAULT, "ucm_set_event_handler");
  if (symbol == NULL) return;
  ucm_set_event_handler_function* set_handler = NULL;
  memcpy(&set_handler, &symbol, sizeof symbol);
  /* Where it has no memory for that, UCX itself does not run. */
  (void)set_handler(ucm_madvise | ucm_installs_nothing, before_the_call, heard_of_madvise, NULL);
}

void farsum_mpi_tell_of_memory(const struct farsum_mpi_memory_calls* calls) {
  const int is_first = fronts() == NULL;
  atomic_store_explicit(&told, calls, memory_order_release);
  if (is_first) ask_ucx();
}
