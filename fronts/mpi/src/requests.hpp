// Requests of one-sided operations: most are complete before the call returns and get a completed request of the
// library's; the others are generalised requests that the front completes from the program's own wait and test calls.
//
// Any thread may call. Never holds its mutex while it calls the library, which may call back under a lock of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "errors.hpp"
#include "farsum.h"
#include "library.hpp"

namespace farsum::mpi {

struct Window;

// One operation that was not complete when its call returned. Lives until the library frees the request.
struct OpenRequest {
  farsum_request operation{};
  MPI_Request handle = MPI_REQUEST_NULL;
  const char* call = "";
  // Whose error handler is told of a failure, if the window still lives then.
  MPI_Win window = MPI_WIN_NULL;
  std::uint64_t engine_window = 0;

  std::mutex asking;                  // held by the thread that asks the engine
  std::atomic<bool> complete{false};  // set once the library knows
  // Written before `complete`.
  farsum_status status = FARSUM_OK;
  std::string sentence;
};

class Requests {
 public:
  // Gives the program a request for an operation of the engine's. The error of an operation that has failed already.
  int give(const Window& window, const char* call, farsum_request operation, MPI_Request* request);
  // A request that is complete.
  int give_complete(MPI_Request* request);

  // Whether any request of give() still lives. Calls that find none go straight to the library.
  // Relaxed: a thread that may wait for a request has it from the thread that made it, and that handed over more than
  // this.
  bool any_open() const { return open_.load(std::memory_order_relaxed) != 0; }

  // Null: the library's own.
  std::shared_ptr<OpenRequest> find(MPI_Request handle);
  // Takes those of `count` requests that are the engine's, with their positions in the array.
  struct Position {
    int index;
    std::shared_ptr<OpenRequest> request;
  };
  std::vector<Position> find_all(int count, const MPI_Request* handles);

  // Asks the engine; tells the library when the operation is complete. Returns whether it is.
  bool test(OpenRequest& request) { return advance(request, false); }
  // Waits in the engine for it.
  void wait(OpenRequest& request) { advance(request, true); }
  // The program is about to free the request: what the engine still does for it goes on without.
  void abandon(OpenRequest& request);
  // Gives back what the engine has finished among the abandoned.
  void drop_finished();

  // The error of a complete operation, told to the handler that it belongs to; MPI_SUCCESS twice where it went well.
  static Raised error_of(const OpenRequest& request);

  // Completes all. The engine still runs.
  void close();

 private:
  static int query(void* request, MPI_Status* status);
  static int freed(void* request);
  static int cancelled(void* request, int complete);

  bool advance(OpenRequest& request, bool blocking);

  std::atomic<std::size_t> open_{0};  // live requests and abandoned operations
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<OpenRequest>> by_handle_;
  std::vector<farsum_request> abandoned_;
};

}  // namespace farsum::mpi
