/* A function that this file stands in for, as one of its callers was linked to it. */
#ifndef FARSUM_MPI_PRELOAD_SCOPE_H
#define FARSUM_MPI_PRELOAD_SCOPE_H

#include <string.h>

/* The function of this name that the library around `caller` was linked to; where that cannot be seen, the one of the
 * first library of the process whose file name has `library` in it. Ends the process where there is none. Both names
 * are literals. */
void* farsum_mpi_function_of(const void* caller, const char* library, const char* name);

/* Declares `function`, the caller's: whose return address counts is that of the function this stands in. ISO C keeps
 * object and function pointers apart; POSIX lets dlsym cross over. */
#define FARSUM_MPI_CALLERS_FUNCTION(type, function, library, name)                         \
  type* function;                                                                          \
  do {                                                                                     \
    void* symbol = farsum_mpi_function_of(__builtin_return_address(0), (library), (name)); \
    memcpy(&(function), &symbol, sizeof symbol);                                           \
  } while (0)

#endif
