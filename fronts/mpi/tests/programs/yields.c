/* Calls that do not wait offer the processor now and then, so that a program that polls lets others run, but a thread
 * works for fifty times as long as others took it before: of 0.4 s they get some 8 ms, and not each 80 us 3.
 * Takes seconds: a thread works for 0.4 s, three times */
#include "yields.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int yields_seen = most_yields();
  if (my_rank(MPI_COMM_WORLD) == 0) {
    CHECK(yields_seen >= 1, "no work of 0.4 s lets others run");
    CHECK(yields_seen <= 2 + work_ns / (50 * slice_ns), "%d times in 0.4 s", yields_seen);
  }
  return finish();
}
