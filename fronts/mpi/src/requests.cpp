#include "requests.hpp"

#include "calls.hpp"
#include "errors.hpp"
#include "front.hpp"
#include "quick_table.hpp"

namespace farsum::mpi {
namespace {

int empty_status(void*, MPI_Status* status) {
  library().Status_set_elements(status, MPI_BYTE, 0);
  library().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int nothing_to_free(void*) { return MPI_SUCCESS; }
int nothing_to_cancel(void*, int) { return MPI_SUCCESS; }

}  // namespace

int Requests::give_complete(MPI_Request* request) {
  // A send to nobody is complete when it is made; libraries keep one such request for all.
  return library().Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, Front::get().self(), request);
}

int Requests::give(farsum_request operation, MPI_Request* request) {
  int done = 0;
  if (farsum_test(&operation, &done) != FARSUM_OK || done != 0) return give_complete(request);
  const int result = library().Grequest_start(empty_status, nothing_to_free, nothing_to_cancel, nullptr, request);
  if (result != MPI_SUCCESS) return result;
  const std::lock_guard lock(mutex_);
  by_handle_[handle_key(*request)] = {operation};
  open_.store(by_handle_.size(), std::memory_order_relaxed);
  return MPI_SUCCESS;
}

}  // namespace farsum::mpi
