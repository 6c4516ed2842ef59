// What each file of the front puts into the table of calls.
#pragma once

#include "library.hpp"

namespace farsum::mpi {

void put_window_calls(farsum_mpi_calls& active);      // windows.cpp
void put_operation_calls(farsum_mpi_calls& active);   // operations.cpp
void put_epoch_calls(farsum_mpi_calls& active);       // epochs.cpp
void put_object_calls(farsum_mpi_calls& active);      // objects.cpp
void put_memory_calls(farsum_mpi_calls& active);      // memory.cpp
void put_waiting_calls(farsum_mpi_calls& active);     // attending.cpp
void put_collective_calls(farsum_mpi_calls& active);  // collectives.cpp
void put_request_calls(farsum_mpi_calls& active);     // request_calls.cpp
void put_error_calls(farsum_mpi_calls& active);       // errors.cpp
void put_handler_calls(farsum_mpi_calls& active);     // handlers.cpp

}  // namespace farsum::mpi
