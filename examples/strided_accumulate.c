/* Every rank adds the same 3 x 4 block of ones into the middle of a 6 x 8 matrix on rank 0, in one call, all at once.
 *
 *   farsum run -n 3 build/bin/example-strided_accumulate
 */
#include <farsum.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 6, columns = 8, block_rows = 3, block_columns = 4, first_row = 1, first_column = 2 };

static void require(farsum_status status) {
  if (status == FARSUM_OK) return;
  fprintf(stderr, "%s: %s\n", farsum_status_name(status), farsum_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  int rank, size;
  require(farsum_init(NULL));
  require(farsum_rank(farsum_world(), &rank));
  require(farsum_size(farsum_world(), &size));
  void* memory;
  farsum_window window;
  const size_t bytes = rank == 0 ? rows * columns * sizeof(double) : 0;
  require(farsum_window_allocate(farsum_world(), bytes, NULL, &memory, &window));

  double ones[block_rows * block_columns];
  for (int i = 0; i < block_rows * block_columns; ++i) ones[i] = 1;
  const size_t counts[1] = {block_rows};
  const int64_t strides[1] = {columns * sizeof(double)};
  farsum_layout block = {.kind = FARSUM_STRIDED, .bytes = block_columns * sizeof(double), .levels = 1};
  block.counts = counts;
  block.strides = strides;
  farsum_operation add = {
      .struct_bytes = sizeof add, .kind = FARSUM_ACCUMULATE, .type = FARSUM_DOUBLE, .op = FARSUM_SUM};
  add.offset = (first_row * columns + first_column) * sizeof(double);
  add.origin = ones;
  add.target_layout = &block;
  require(farsum_lock(window, 0, FARSUM_LOCK_SHARED));
  require(farsum_operate(window, &add, NULL));
  require(farsum_unlock(window, 0));
  require(farsum_barrier(farsum_world()));

  double sum = 0;
  const double* matrix = memory;
  for (int i = 0; rank == 0 && i < rows * columns; ++i) {
    printf("%3.0f%s", matrix[i], i % columns == columns - 1 ? "\n" : "");
    sum += matrix[i];
  }
  const int is_right = rank != 0 || sum == (double)(size * block_rows * block_columns);

  require(farsum_window_free(&window));
  require(farsum_finalize());
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
