// Paper 3's helper: a thread that sits in a blocking send to its own process, so that a library that makes progress
// inside any blocking call makes it while the rank computes. Needs MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <thread>

namespace lab {

// Collective to make and to destroy, for it splits the world into communicators of one process each.
class HelperThread {
 public:
  HelperThread() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm_);
    // The paper's MPI_Send blocked, for its libraries buffered nothing to the own rank. Today's may; a synchronous send
    // waits for its receive in all of them.
    thread_ = std::thread([this] { MPI_Ssend(&message_, 1, MPI_INT, 0, tag, comm_); });
  }
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;
  ~HelperThread() {
    int received = 0;
    MPI_Recv(&received, 1, MPI_INT, 0, tag, comm_, MPI_STATUS_IGNORE);
    thread_.join();
    MPI_Comm_free(&comm_);
  }

 private:
  static constexpr int tag = 123;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int message_ = 0;
  std::thread thread_;
};

}  // namespace lab
