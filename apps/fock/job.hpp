// This process's place in the job, and what it did there. The only users of farsum.h are job, block_matrix and
// task_counter.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "farsum.h"

namespace fock {

// A communication call failed; the text is Farsum's own sentence.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void require(farsum_status status);

// Whether a destructor runs because an error is on its way out. Collective calls are then left out: the other ranks do
// not make them, and learn of the failure when this process ends.
inline bool is_unwinding() { return std::uncaught_exceptions() > 0; }

// What one rank did. Every member is a plain number, so that records are gathered as bytes.
struct Activity {
  // The tasks: blocks of density got, blocks of Fock accumulated, tickets drawn (the last of each build finds nothing).
  std::uint64_t tickets = 0;
  std::uint64_t gets = 0;
  std::uint64_t accumulates = 0;
  std::uint64_t bytes_got = 0;
  std::uint64_t bytes_accumulated = 0;
  // The diagonalising rank's gathers and scatters of whole matrices, counted in blocks.
  std::uint64_t gathered = 0;
  std::uint64_t scattered = 0;
  std::uint64_t quartets_done = 0;
  std::uint64_t quartets_screened = 0;
  std::uint64_t shell_quartets_done = 0;
  std::uint64_t shell_quartets_screened = 0;
  double get_s = 0;
  double accumulate_s = 0;
  double counter_s = 0;
  double compute_s = 0;
  double wait_s = 0;     // barriers and exchanges of small numbers
  double algebra_s = 0;  // diagonalisation, DIIS, gather and scatter
};

// Adds the time from its making to its end to one member of an Activity.
class Timed {
 public:
  explicit Timed(double& seconds) : seconds_(seconds), start_(clock::now()) {}
  ~Timed() { seconds_ += std::chrono::duration<double>(clock::now() - start_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  using clock = std::chrono::steady_clock;
  double& seconds_;
  clock::time_point start_;
};

// Joins the job on construction and leaves it on destruction.
class Job {
 public:
  Job();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool is_root() const { return rank_ == 0; }
  [[nodiscard]] Activity& activity() { return activity_; }

  void barrier();
  // Every rank gets the root's values; the vector has the same size everywhere.
  void broadcast(std::vector<double>& values);
  // Sums each entry over the ranks, in rank order, so that all ranks hold the same bits.
  void sum(std::vector<double>& values);
  // The records of all ranks, in rank order.
  [[nodiscard]] std::vector<Activity> all_activities();

 private:
  int rank_ = 0;
  int size_ = 1;
  Activity activity_;
};

}  // namespace fock
