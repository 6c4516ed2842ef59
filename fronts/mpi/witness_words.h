/* Where a rank meets the witness that `farsum mpi` keeps beside the launcher, and what they say: an arrival, and
 * packets of one 32-bit number. C11 and C++. */
#ifndef FARSUM_MPI_WITNESS_WORDS_H
#define FARSUM_MPI_WITNESS_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FARSUM_MPI_WITNESS_SETTING "FARSUM_MPI_WITNESS"

/* What a rank says first. */
struct farsum_witness_arrival {
  int32_t rank;
  int32_t ranks_here; /* how many ranks the launcher started on this host together; 0: it does not tell */
};

enum {
  /* What a rank says later. */
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
