// Collective calls of MPI, as the cases of bench/reduce/cases want them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>

#include "common/session.hpp"

namespace lab {

class MpiJob {
 public:
  explicit MpiJob(const Session& session) : rank_(session.rank()), size_(session.size()) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  static void allreduce(const double* mine, double* result, std::size_t count) {
    MPI_Allreduce(mine, result, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  static void reduce(const double* mine, double* result, std::size_t count, int root) {
    MPI_Reduce(mine, result, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
  }
  static void reduce_scatter(const double* mine, double* result, std::size_t block) {
    MPI_Reduce_scatter_block(mine, result, static_cast<int>(block), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  static void broadcast(double* buffer, std::size_t count, int root) {
    MPI_Bcast(buffer, static_cast<int>(count), MPI_DOUBLE, root, MPI_COMM_WORLD);
  }
  static void largest(const double* mine, double* result, std::size_t count) {
    MPI_Allreduce(mine, result, static_cast<int>(count), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  [[nodiscard]] static double largest(double mine) {
    double result = 0;
    largest(&mine, &result, 1);
    return result;
  }

  using Begun = MPI_Request;
  [[nodiscard]] static Begun begin(const double* mine, double* result, std::size_t count) {
    Begun begun = MPI_REQUEST_NULL;
    MPI_Iallreduce(mine, result, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &begun);
    return begun;
  }
  [[nodiscard]] static bool is_over(Begun& begun) {
    int done = 0;
    MPI_Test(&begun, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  static void wait(Begun& begun) { MPI_Wait(&begun, MPI_STATUS_IGNORE); }
  [[noreturn]] static void fail(const std::string& what) { lab::fail("{}", what); }

 private:
  int rank_;
  int size_;
};

}  // namespace lab
