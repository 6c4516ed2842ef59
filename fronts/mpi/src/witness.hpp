// What a rank tells the witness that `farsum mpi` keeps beside the launcher (src/cli/mpi_witness.hpp), which names the
// rank that dies. Nothing happens without FARSUM_MPI_WITNESS, or where nobody listens there.
#pragma once

#include "calls.hpp"

namespace farsum::mpi {

// Once MPI_COMM_WORLD can be asked.
void report_to_witness();
// In MPI_Finalize.
void tell_witness_of_end();
// MPI_Abort tells it that the end is wanted.
void put_abort(farsum_mpi_calls& active);

}  // namespace farsum::mpi
