// Requests of one-sided operations: most are complete before the call returns and get a completed request of the library's;
// the others are generalised requests that the front completes from the program's own wait and test calls.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "farsum.h"
#include "library.hpp"

namespace farsum::mpi {

class Requests {
 public:
  // Gives the program a request for an operation of the engine's.
  int give(farsum_request operation, MPI_Request* request);
  // A request that is complete.
  int give_complete(MPI_Request* request);

  // Whether any request of give() still waits for the engine. Calls that find none go straight to the library.
  bool any_open() const { return open_.load(std::memory_order_relaxed) != 0; }
  // Completes what the engine has finished among `count` requests; returns how many of them still wait for the engine.
  int test(int count, const MPI_Request* requests);
  // Waits for the engine for those of `count` requests that are its. The error of an operation that failed, or success.
  int wait(int count, const MPI_Request* requests);
  // Completes what the engine has finished among all open ones.
  void test_all();

 private:
  struct Open {
    farsum_request operation;
  };
  bool finish(MPI_Request request, farsum_request& operation, bool blocking);

  std::atomic<std::size_t> open_{0};
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Open> by_handle_;
};

}  // namespace farsum::mpi
