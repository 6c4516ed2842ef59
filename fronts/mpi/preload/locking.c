/* libc's mlockall, passed on, and the front told before. What has no front yet asks the kernel how much is locked when
 * it begins.
 */
#include "locking.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols.h"

typedef int mlockall_function(int flags);

static farsum_mpi_front_before_mlockall_function* _Atomic told;

void farsum_mpi_tell_of_locking(farsum_mpi_front_before_mlockall_function* front) {
  /* Release pairs with the acquire below: what the front's constructors made is there. */
  atomic_store_explicit(&told, front, memory_order_release);
}

__attribute__((visibility("default"))) int mlockall(int flags) {
  farsum_mpi_front_before_mlockall_function* const front = atomic_load_explicit(&told, memory_order_acquire);
  if (front != NULL) front(flags);
  /* A sanitizer's, where there is one. */
  mlockall_function* next = NULL;
  void* const found = farsum_mpi_dlsym()(RTLD_NEXT, "mlockall");
  memcpy(&next, &found, sizeof next);
  return next != NULL ? next(flags) : (int)syscall(SYS_mlockall, flags);
}
