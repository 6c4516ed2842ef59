/* The functions of UCX that MPICH calls while it waits and while it ends: passed on to the UCX that it was linked to,
 * and what polls.h, yield.h and closing.h say of them is done. Open MPI has a setting to yield (hints.c), and not the
 * other's fault; where it polls stands in opal.c.
 */
#include "closing.h"
#include "polls.h"
#include "preload_abi.h"
#include "scope.h"
#include "yield.h"

#ifndef FARSUM_MPI_ABI_openmpi

#define EXPORTED __attribute__((visibility("default")))

typedef void* disconnect_function(void* endpoint);
typedef void request_function(void* request);
typedef void destroy_function(void* worker);

/* By UCX's published interface. */
EXPORTED farsum_mpi_progress_function ucp_worker_progress;
EXPORTED disconnect_function ucp_disconnect_nb;
EXPORTED request_function ucp_request_release;
EXPORTED request_function ucp_request_free;
EXPORTED destroy_function ucp_worker_destroy;

#define FUNCTION(type, function, name) FARSUM_MPI_CALLERS_FUNCTION(type, function, "libucp", name)

unsigned ucp_worker_progress(void* worker) {
  FUNCTION(farsum_mpi_progress_function, progress, "ucp_worker_progress");
  const int in_turn = farsum_mpi_turn_begins();
  if (in_turn) farsum_mpi_closes_worker(progress, worker);
  const unsigned events = progress(worker);
  farsum_mpi_turn_ends(in_turn);
  farsum_mpi_has_polled();
  farsum_mpi_has_heard(events);
  return events;
}

void* ucp_disconnect_nb(void* endpoint) {
  FUNCTION(disconnect_function, disconnect, "ucp_disconnect_nb");
  farsum_mpi_closes();
  const int in_turn = farsum_mpi_turn_begins();
  void* request = disconnect(endpoint);
  farsum_mpi_turn_ends(in_turn);
  return request;
}

static void give_back(request_function* function, void* request) {
  const int in_turn = farsum_mpi_turn_begins();
  function(request);
  farsum_mpi_turn_ends(in_turn);
}

void ucp_request_release(void* request) {
  FUNCTION(request_function, release, "ucp_request_release");
  give_back(release, request);
}

void ucp_request_free(void* request) {
  FUNCTION(request_function, free_request, "ucp_request_free");
  give_back(free_request, request);
}

void ucp_worker_destroy(void* worker) {
  FUNCTION(destroy_function, destroy, "ucp_worker_destroy");
  farsum_mpi_destroys_worker(worker);
  destroy(worker);
}

#endif
