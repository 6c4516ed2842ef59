/* OPTIONS: --limit 60 --until "1 of this host's 2 ranks (0) are in MPI_Init"
 * A rank without Farsum, for which the others wait in MPI_Init: the witness says so. */
#include <unistd.h>

#include "check.h"

static int number_before_init(void) {
  const char* text = getenv("PMI_RANK");
  if (text == NULL) text = getenv("OMPI_COMM_WORLD_RANK");
  return text == NULL ? 0 : atoi(text);
}

int main(int argc, char** argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  if (strstr(version, "MPICH Version:\t4") == NULL && strstr(version, "Open MPI v4") == NULL) {
    puts("it takes 10 s, and is looked at with two libraries only");
    return 77;
  }
  const int is_bare = number_before_init() == 1;
  if (is_bare) setenv("FARSUM_MPI_OFF", "1", 1);
  MPI_Init(&argc, &argv);
  CHECK(is_bare, "MPI_Init returned");
  for (;;) pause();
}
