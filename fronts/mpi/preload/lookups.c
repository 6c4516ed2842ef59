/* dlsym, dlvsym and dlopen as this library exports them. A look-up that is not served, and a file that deep.h does not
 * open, are passed on by a jump, so that the function behind sees who called: RTLD_NEXT and RTLD_DEFAULT go by that,
 * and where a library is looked for. The build makes a jump of the last call, whatever else it is asked to do
 * (CMakeLists.txt), and watches nothing here.
 */
#include <stddef.h>

#include "deep.h"
#include "served.h"
#include "symbols.h"

#define EXPORTED __attribute__((visibility("default")))

#if defined(__clang__)
#define JUMP __attribute__((musttail))
#else
#define JUMP
#endif

EXPORTED farsum_mpi_dlsym_function dlsym;
EXPORTED farsum_mpi_dlvsym_function dlvsym;
EXPORTED farsum_mpi_dlopen_function dlopen;

void* dlsym(void* handle, const char* name) {
  farsum_mpi_bind_awaited(handle);
  void* const served = farsum_mpi_served(handle, name, NULL, __builtin_return_address(0));
  if (served != NULL) return served;
  JUMP return farsum_mpi_dlsym()(handle, name);
}

void* dlvsym(void* handle, const char* name, const char* version) {
  farsum_mpi_bind_awaited(handle);
  void* const served = farsum_mpi_served(handle, name, version, __builtin_return_address(0));
  if (served != NULL) return served;
  JUMP return farsum_mpi_dlvsym()(handle, name, version);
}

void* dlopen(const char* file, int mode) {
  if (farsum_mpi_opens_deep(file, mode)) return farsum_mpi_open_deep(file, mode);
  JUMP return farsum_mpi_dlopen()(file, mode);
}
