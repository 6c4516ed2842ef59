// What a run did, for FARSUM_MPI_STATS: a decorator over the table of calls that counts and times each, and the report
// at the end. Without that setting the table is not decorated and nothing is counted.
#pragma once

#include "library.hpp"

namespace farsum::mpi {

// Whether the environment asks for numbers, on stderr or in a file.
bool statistics_wanted();

// Puts counting calls over those that the table has now.
void put_statistics(farsum_mpi_calls& active);

// Collective over MPI_COMM_WORLD, within MPI_Finalize and before the engine stops: rank 0 prints the numbers where they
// are wanted, and, where `farsum mpi` started the program, what could not be taken over. Otherwise does nothing.
void report_at_end();

// In a program of sessions, which has no such moment: brings the numbers so far to the first rank of the engine's
// context, collectively over it and while the engine runs; and prints, before the last session of this process ends,
// what it was brought.
void collect_at_engines_end();
void report_at_last_session();

}  // namespace farsum::mpi
