/* A program that opens the MPI library itself, as ctypes, MPI.jl and plugins do, asks dlsym for its calls with the
 * handle it got. A profiler that the user preloads, as Darshan, or that the program is linked to asks with RTLD_NEXT
 * for what comes behind itself. LD_PRELOAD does not reach either, nor RTLD_DEFAULT in a plugin that was opened with
 * RTLD_DEEPBIND; served.h says what they are answered.
 */
#include "served.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "deep.h"
#include "next.h"
#include "preload_abi.h"
#include "setting.h"
#include "symbols.h"

static int begins_with(const char* text, const char* beginning) {
  while (*beginning != '\0' && *text == *beginning) {
    ++text;
    ++beginning;
  }
  return *beginning == '\0';
}

/* Most names that anybody looks up are none, and this is all that is done for them. MPII_Win_get_attr is one. */
int farsum_mpi_is_of_library(const char* name) {
  return begins_with(name, "MPI") || begins_with(name, "PMPI_") || begins_with(name, "mpi_") ||
         begins_with(name, "pmpi_") || begins_with(name, "ompi_");
}

/* Room for the longest name of a call, and more. */
enum { name_bytes = 128 };

/* PMPI_X of MPI_X; every other name itself. */
static const char* second_name(const char* name, char room[name_bytes]) {
  if (!begins_with(name, "MPI_") || strlen(name) + 2 > name_bytes) return name;
  room[0] = 'P';
  return strcpy(room + 1, name) - 1;
}

/* By either name that which a profiler's MPI_X does not stand in front of: the library's handle does not lead to a
 * profiler, and one may look up here what it passes on to. The two belong together: a window that Farsum has made is
 * nothing that the library's PMPI_X could work on. */
static void* own_function(const char* name) {
  char room[name_bytes];
  return farsum_mpi_own_function(second_name(name, room));
}

static const void* object_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) == 0 ? NULL : info.dli_fbase;
}

/* Whether the library answers for the function, or what holds its Fortran calls. The look-up that finds it is the last
 * one made, so that dlerror has nothing to say. */
static int is_librarys(const void* function, const char* name) {
  void* library = farsum_mpi_library_handle();
  if (library == NULL) return 0;
  if (farsum_mpi_dlsym()(library, name) == function) return 1;
#ifdef FARSUM_MPI_FORTRAN_SONAME
  void* fortran = farsum_mpi_dlopen()(FARSUM_MPI_FORTRAN_SONAME, RTLD_LAZY | RTLD_NOLOAD);
  if (fortran == NULL) return 0;
  const int is_fortrans = farsum_mpi_dlsym()(fortran, name) == function;
  dlclose(fortran); /* others hold it */
  return is_fortrans;
#else
  return 0;
#endif
}

static int is_mpi_library(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* file = slash == NULL ? path : slash + 1;
  return begins_with(file, "libmpi.so") || begins_with(file, "libmpich.so") || begins_with(file, "libmpi_abi.so");
}

static int makes_window(const char* name) {
  return strstr(name, "MPI_Win_create") != NULL || strstr(name, "MPI_Win_allocate") != NULL;
}

/* Of another MPI library than the one that is served. */
static void tell_of_other(const void* function, const char* name) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  Dl_info info;
  if (!makes_window(name) || dladdr(function, &info) == 0 || info.dli_fname == NULL) return;
  if (!is_mpi_library(info.dli_fname) || farsum_mpi_setting_is_on("FARSUM_MPI_OFF")) return;
  /* Relaxed: nothing else is passed on. */
  if (atomic_flag_test_and_set_explicit(&told, memory_order_relaxed)) return;
  fprintf(stderr,
          "farsum: the windows of %s stay that library's own: this process looks its calls up there, and it is not the "
          "MPI library that Farsum serves here (--abi %s)\n",
          info.dli_fname, FARSUM_MPI_ABI_NAME);
}

void* farsum_mpi_served_for(const void* found, const char* name) {
  void* const own = own_function(name);
  return own != NULL && found != NULL && is_librarys(found, name) ? own : NULL;
}

/* Whether the caller, which asks for what comes behind itself, would be given the library's function. */
static int next_is_librarys(const char* name, const void* caller) {
  char room[name_bytes];
  const char* second = second_name(name, room);
  const void* found = farsum_mpi_next_function(caller, name, second);
  return found != NULL && (is_librarys(found, name) || is_librarys(found, second));
}

void* farsum_mpi_served(void* handle, const char* name, const char* version, const void* caller) {
  if (name == NULL || !farsum_mpi_is_of_library(name)) return NULL;
  if (handle == RTLD_DEFAULT) {
    /* It leads here, but for what was opened with RTLD_DEEPBIND. */
    return farsum_mpi_is_deep(caller) ? farsum_mpi_served_for(farsum_mpi_needed_function(caller, name), name) : NULL;
  }
  void* const own = own_function(name);
  if (own == NULL) return NULL;
  if (handle == RTLD_NEXT) return next_is_librarys(name, caller) ? own : NULL;
  const void* found = version == NULL ? farsum_mpi_dlsym()(handle, name) : farsum_mpi_dlvsym()(handle, name, version);
  /* Such as the program's own handle, which leads here; and the library's look-ups of its own calls. */
  if (found == NULL || object_of(found) == object_of(own) || object_of(found) == object_of(caller)) return NULL;
  if (is_librarys(found, name)) return own;
  tell_of_other(found, name);
  return NULL;
}
