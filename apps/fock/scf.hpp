// The self-consistent field: iterates density -> Fock matrix -> density until both energy and error have settled.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "diis.hpp"
#include "fock_builder.hpp"

namespace fock {

enum class Guess { atoms, core };

struct ScfOptions {
  BuildOptions build;
  Guess guess = Guess::atoms;
  bool incremental = true;  // build from the change of the density only
  int diis_depth = 8;       // 1: no extrapolation
  int most_iterations = 60;
  double energy_tolerance = 1e-10;  // Hartree between iterations
  double error_tolerance = 1e-7;    // largest element of the orthogonalised FDS - SDF
};

struct Iteration {
  int number = 0;
  double energy = 0;
  double change = 0;
  double error = 0;
  double seconds = 0;
};

struct ScfResult {
  bool converged = false;
  double energy = 0;
  double nuclear = 0;
  double one_electron = 0;
  double two_electron = 0;
  double highest_occupied = 0;
  double lowest_empty = 0;  // NaN where there is none
  int dropped_functions = 0;
  std::vector<Iteration> iterations;
};

struct ScfObserver {
  std::function<void(const Iteration&)> iteration;         // after each, on every rank
  std::function<void(int iteration, double share)> build;  // share of the tickets dealt out
};

class Scf {
 public:
  // Collective. The arguments must outlive it.
  Scf(Job& job, const Molecule& molecule, const Basis& basis, int electrons, Integrals& integrals,
      const BlockLayout& layout, const ScfOptions& options);

  // Collective; the result is the same on every rank, save the orbital energies, which the diagonalising rank alone
  // has.
  [[nodiscard]] ScfResult run(const ScfObserver& observer);

  // Bytes of window memory of this rank.
  [[nodiscard]] std::uint64_t window_bytes() const;

 private:
  void set_core_hamiltonian();
  void set_guess();
  void build_fock(int iteration, const ScfObserver& observer);
  void measure(ScfResult& result);
  [[nodiscard]] double settle_error();
  void renew_density(ScfResult& result);
  void note_density_change();

  Job& job_;
  const Molecule& molecule_;
  const Basis& basis_;
  int occupied_;
  Integrals& integrals_;
  const BlockLayout& layout_;
  ScfOptions options_;

  BlockMatrix core_;
  BlockMatrix density_;    // of one electron of each pair
  BlockMatrix change_;     // what the next build contracts: the density, or what changed in it
  BlockMatrix repulsion_;  // sums of the builds, unfinished
  BlockMatrix fock_;
  Diis diis_;
  FockBuilder builder_;
  std::vector<double> previous_density_;  // this rank's blocks

  // On the diagonalising rank only. Neither is a density or a Fock matrix.
  Matrix overlap_;
  Matrix orthogonaliser_;
};

}  // namespace fock
