// What a rank tells the witness that `farsum mpi` keeps beside the launcher (src/cli/mpi/mpi_witness.hpp), which names
// the rank that dies. Nothing happens without FARSUM_MPI_WITNESS, or where nobody listens there.
#pragma once

#include "calls.hpp"

namespace farsum::mpi {

// Once MPI_COMM_WORLD can be asked.
void report_to_witness();
// In MPI_Finalize.
void tell_witness_of_end();
// Where the job is about to be ended: what has to be said about it is said by whoever ends it.
void tell_witness_of_abort();
// MPI_Abort tells it so.
void put_abort(farsum_mpi_calls& active);

}  // namespace farsum::mpi
