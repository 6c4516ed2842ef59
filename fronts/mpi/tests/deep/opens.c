/* What becomes of plugins that are opened with RTLD_DEEPBIND, and of the process around them, with the preload in front
 * and a stand-in as MPI library, which comes with the first plugin.
 *
 * opens FIRST SECOND    the plugins' bare names
 */
#include <pthread.h>

#include "../ucx/loaded.h"
#include "opener.h"

static int is_farsums(const void* symbol) {
  Dl_info info;
  return symbol != NULL && dladdr(symbol, &info) != 0 && strstr(info.dli_fname, "libfarsum_mpi_") != NULL;
}

static void* open_deep(const char* file) {
  void* const plugin = dlopen(file, RTLD_LAZY | RTLD_DEEPBIND);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return plugin;
}

static void* fence_of(void* plugin) {
  void* (*fence)(void);
  store(&fence, plugin, "fence_of_plugin");
  return fence();
}

/* The first call looks for the library while the plugin still has to be bound. */
static void check_first_call(const char* name) {
  void* const plugin = open_deep(name);
  CHECK(call_mpi() == 11);
  CHECK(is_farsums(fence_of(plugin)));
}

static void* look_up(void* unused) {
  (void)unused;
  CHECK(dlsym(RTLD_DEFAULT, "in_no_library") == NULL);
  return NULL;
}

static void look_up_in_other_thread(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, look_up, NULL) == 0);
  pthread_join(thread, NULL);
}

/* Another thread looks up when the plugin is about to be opened: it is bound all the same. */
static void check_look_up_meanwhile(const char* name) {
  opener_before_deep = look_up_in_other_thread;
  CHECK(is_farsums(fence_of(open_deep(name))));
  CHECK(opener_before_deep == NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  check_first_call(argv[1]);
  check_look_up_meanwhile(argv[2]);
  return failures != 0;
}
