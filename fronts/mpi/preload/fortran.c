/* Fortran's attribute getters, which call neither MPI_Win_get_attr nor PMPI_Win_get_attr but a function of their
 * library that no C program sees.
 *
 * A predefined attribute is asked for through PMPI_Win_get_attr, whosever the window is, and turned into the integer
 * that Fortran gets. Every other attribute is the library's own business, and nothing here sees what Fortran does with
 * one: it is set by MPII_Win_set_attr or Open MPI's ompi_attr_set_aint, and a keyval is made by MPI_Win_create_keyval
 * with MPII_Keyval_set_proxy behind it, or by ompi_attr_create_keyval_aint. All else of Fortran's bindings for windows
 * calls MPI_X or PMPI_X.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "preload_abi.h"
#include "symbols.h"

#define EXPORTED __attribute__((visibility("default")))

/* The function of this name in the first of these libraries that is loaded. Found anew each time: attributes are asked
 * for seldom. */
static void find_function(void* slot, const char* const sonames[], size_t count, const char* name) {
  void* function = NULL;
  for (size_t i = 0; i < count && function == NULL; ++i) {
    void* library = farsum_mpi_dlopen()(sonames[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) continue;
    function = farsum_mpi_dlsym()(library, name);
    dlclose(library); /* only the count of uses that RTLD_NOLOAD raised */
  }
  if (function == NULL) function = farsum_mpi_dlsym()(RTLD_NEXT, name);
  memcpy(slot, &function, sizeof function);
}

/* Fortran gets the base as an address and the others by value, where C gets pointers to them. False: not predefined. */
static int predefined(MPI_Win win, int keyval, MPI_Aint* value, int* flag, int* result) {
  void* place = NULL;
  if (keyval != MPI_WIN_BASE && keyval != MPI_WIN_SIZE && keyval != MPI_WIN_DISP_UNIT &&
      keyval != MPI_WIN_CREATE_FLAVOR && keyval != MPI_WIN_MODEL) {
    return 0;
  }
  *result = PMPI_Win_get_attr(win, keyval, &place, flag);
  if (*result != MPI_SUCCESS || *flag == 0) return 1;
  if (keyval == MPI_WIN_BASE) {
    *value = (MPI_Aint)place;
  } else if (keyval == MPI_WIN_SIZE) {
    *value = *(const MPI_Aint*)place;
  } else {
    *value = *(const int*)place;
  }
  return 1;
}

#if !defined(FARSUM_MPI_ABI_openmpi)

/* MPICH's and Intel's. Of `kind` the lowest bit says that an integer is asked for, by Fortran; the keys that Fortran
 * knows are larger by one than C's. */
EXPORTED int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag, int kind);
EXPORTED int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag, int kind) {
  static const char* const sonames[] = {FARSUM_MPI_SONAMES};
  int (*librarys)(MPI_Win, int, void*, int*, int) = NULL;
  MPI_Aint integer = 0;
  int result = MPI_SUCCESS;
  const int by_fortran = (kind & 1) != 0;
  if (by_fortran &&
      (predefined(win, keyval, &integer, flag, &result) || predefined(win, keyval - 1, &integer, flag, &result))) {
    if (result == MPI_SUCCESS && *flag != 0) memcpy(value, &integer, sizeof integer);
    return result;
  }
  find_function(&librarys, sonames, sizeof sonames / sizeof sonames[0], "MPII_Win_get_attr");
  return librarys == NULL ? MPI_ERR_OTHER : librarys(win, keyval, value, flag, kind);
}

#else

/* Open MPI's, under every name that a Fortran compiler may give it. The library answers first: it knows which integer
 * is its compiler's .TRUE., and sets the error. */
EXPORTED void ompi_win_get_attr_f(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag, MPI_Fint* ierror);
EXPORTED void ompi_win_get_attr_f(MPI_Fint* win, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag, MPI_Fint* ierror) {
  static const char* const fortran_sonames[] = {FARSUM_MPI_FORTRAN_SONAME};
  static const char* const sonames[] = {FARSUM_MPI_SONAMES};
  void (*librarys)(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Fint*, MPI_Fint*) = NULL;
  MPI_Win (*from_fortran)(MPI_Fint) = NULL;
  MPI_Fint error = MPI_SUCCESS;
  MPI_Aint integer = 0;
  int has_value = 0;
  int result = MPI_SUCCESS;
  find_function(&librarys, fortran_sonames, 1, "ompi_win_get_attr_f");
  find_function(&from_fortran, sonames, sizeof sonames / sizeof sonames[0], "PMPI_Win_f2c");
  if (librarys == NULL || from_fortran == NULL) {
    error = MPI_ERR_OTHER;
  } else {
    librarys(win, keyval, value, flag, &error);
    if (error == MPI_SUCCESS && predefined(from_fortran(*win), *keyval, &integer, &has_value, &result) &&
        result == MPI_SUCCESS && has_value != 0) {
      *value = integer;
    }
  }
  if (ierror != NULL) *ierror = error;
}

#define SAME(name)                                                          \
  EXPORTED void name(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Fint*, MPI_Fint*) \
      __attribute__((alias("ompi_win_get_attr_f")));
SAME(mpi_win_get_attr)
SAME(mpi_win_get_attr_)
SAME(mpi_win_get_attr__)
SAME(MPI_WIN_GET_ATTR)
SAME(MPI_Win_get_attr_f)
SAME(MPI_Win_get_attr_f08)
SAME(pmpi_win_get_attr)
SAME(pmpi_win_get_attr_)
SAME(pmpi_win_get_attr__)
SAME(PMPI_WIN_GET_ATTR)
SAME(PMPI_Win_get_attr_f)
SAME(PMPI_Win_get_attr_f08)

#endif
