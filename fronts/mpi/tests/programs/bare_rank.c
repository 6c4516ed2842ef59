/* OPTIONS: --limit 60 --until "1 of this host's 2 ranks (0) are in MPI_Init"
 * OPTIONS: --set FARSUM_WAIT_NOTICE=1
 * NOT FOR: impi mpich5 mpich5-abi openmpi5
 * Takes seconds: the witness speaks after one
 * It is looked at with two libraries only: a rank without Farsum, for which the others wait in
 * MPI_Init: the witness says so. */
#include <unistd.h>

#include "check.h"

static int number_before_init(void) {
  const char* text = getenv("PMI_RANK");
  if (text == NULL) text = getenv("OMPI_COMM_WORLD_RANK");
  return text == NULL ? 0 : atoi(text);
}

int main(int argc, char** argv) {
  const int is_bare = number_before_init() == 1;
  if (is_bare) setenv("FARSUM_MPI_OFF", "1", 1);
  MPI_Init(&argc, &argv);
  CHECK(is_bare, "MPI_Init returned");
  for (;;) pause();
}
