/* Where a rank meets the witness that `farsum mpi` keeps beside the launcher, and what they say: packets of one 32-bit
 * number. C11 and C++. */
#ifndef FARSUM_MPI_WITNESS_WORDS_H
#define FARSUM_MPI_WITNESS_WORDS_H

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FARSUM_MPI_WITNESS_SETTING "FARSUM_MPI_WITNESS"

enum {
  /* A rank says its number, 0 or more, and later one of these. */
  farsum_witness_has_finished = -1,
  farsum_witness_ends_the_job = -2,
  /* The witness says when it watches the rank's process. */
  farsum_witness_watches = -3
};

/* Of a socket in the abstract namespace, of which nothing is left behind. The address's bytes; 0: the name is too long.
 */
static inline socklen_t farsum_witness_address(const char* name, struct sockaddr_un* address) {
  const size_t length = strlen(name);
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (length + 1 > sizeof address->sun_path) return 0;
  memcpy(address->sun_path + 1, name, length);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

#endif
