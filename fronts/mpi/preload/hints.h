/* Settings of the MPI library's own that it reads in its Init: given there where nobody has set them, and taken back.
 */
#ifndef FARSUM_MPI_PRELOAD_HINTS_H
#define FARSUM_MPI_PRELOAD_HINTS_H

void farsum_mpi_give_hints(const char* library_version);
void farsum_mpi_take_hints_back(void);

#endif
