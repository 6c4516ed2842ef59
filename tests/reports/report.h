/* For the programs after users' reports: checks that say WRONG with the values, and an end that all ranks agree on.
 * README.md says how a program runs and how it is judged. */
#ifndef FARSUM_TESTS_REPORTS_REPORT_H
#define FARSUM_TESTS_REPORTS_REPORT_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int my_rank, ranks, wrong;

/* A rank names six of what is wrong; the others are counted. */
#define CHECK(condition, ...)                                                      \
  do {                                                                             \
    if (!(condition) && wrong++ < 6) say_wrong(__LINE__, #condition, __VA_ARGS__); \
  } while (0)

#define CALL(expression)                                                         \
  do {                                                                           \
    const int class_of_call = error_class(expression);                           \
    CHECK(class_of_call == MPI_SUCCESS, "raised error class %d", class_of_call); \
  } while (0)

/* What is no verdict, such as a time; one rank says it. */
#define NOTE(...)          \
  do {                     \
    if (my_rank == 0) {    \
      printf("note: ");    \
      printf(__VA_ARGS__); \
      putchar('\n');       \
    }                      \
  } while (0)

/* In one piece, for the ranks' lines are mixed. */
__attribute__((format(printf, 3, 4))) static inline void say_wrong(int line, const char* condition, const char* format,
                                                                   ...) {
  char text[400];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  printf("WRONG: rank %d line %d: %s: %s\n", my_rank, line, condition, text);
  fflush(stdout);
}

static inline int error_class(int code) {
  int found = code;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &found);
  return found;
}

static inline void learn_ranks(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  learn_ranks();
}

/* Ends the program on all ranks: this machine or this library lacks what it is about. */
static inline void skip(const char* reason) {
  if (my_rank == 0) printf("SKIPPED: %s\n", reason);
  fflush(stdout);
  MPI_Finalize();
  exit(0);
}

/* Whether the program's first word is this one. */
static inline int told(int argc, char** argv, const char* word) { return argc > 1 && strcmp(argv[1], word) == 0; }

/* Sums what all ranks found wrong and says the verdict once. */
static inline int finish(void) {
  int all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank == 0) printf(all == 0 ? " No Errors\n" : "WRONG: %d checks\n", all);
  fflush(stdout);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}

#endif
