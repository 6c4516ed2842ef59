/* OPTIONS: --say "this program made no window." --say ARMCI_NETWORK=MPI-PR
 * A program that makes no window is told so at its end.
 */
#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CALL(MPI_Barrier(MPI_COMM_WORLD));
  return finish();
}
