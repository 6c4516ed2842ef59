/* What becomes of plugins that are opened with RTLD_DEEPBIND, and of the process around them, with the preload in front
 * and a stand-in as MPI library, which comes with the first plugin.
 *
 * opens FIRST SECOND SHALLOW    two plugins' bare names, and the file of one that is opened without that flag
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

static void* next_of(void* plugin, const char* name) {
  void* (*its)(const char*, const char*);
  store(&its, plugin, "next_of_plugin");
  return its(name, NULL);
}

static void* default_of(void* plugin, const char* name) {
  void* (*its)(const char*);
  store(&its, plugin, "default_of_plugin");
  return its(name);
}

/* The first call looks for the library while the plugin still has to be bound. */
static void* check_first_call(const char* name) {
  void* const plugin = open_deep(name);
  CHECK(call_mpi() == 11);
  CHECK(is_farsums(fence_of(plugin)));
  return plugin;
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

/* A plugin that was opened deep gets what no profiler stands in front of, and one that was opened behind it the call
 * that is found first. */
static void check_shallow(void* deep, const char* file) {
  void* const shallow = load(file);
  CHECK(default_of(deep, "MPI_Win_fence") == dlsym(RTLD_DEFAULT, "PMPI_Win_fence"));
  CHECK(default_of(shallow, "MPI_Win_fence") == dlsym(RTLD_DEFAULT, "MPI_Win_fence"));
  CHECK(fence_of(shallow) == dlsym(RTLD_DEFAULT, "MPI_Win_fence"));
  /* Its own library is behind it, whatever was there when the process started. */
  CHECK(is_farsums(next_of(shallow, "MPI_Win_fence")));
  close_passing();
  CHECK(is_farsums(next_of(shallow, "MPI_Win_fence")));
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* const deep = check_first_call(argv[1]);
  check_look_up_meanwhile(argv[2]);
  check_shallow(deep, argv[3]);
  return failures != 0;
}
