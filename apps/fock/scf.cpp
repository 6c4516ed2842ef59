#include "scf.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "guess.hpp"

namespace fock {

Scf::Scf(Job& job, const Molecule& molecule, const Basis& basis, int electrons, Integrals& integrals,
         const BlockLayout& layout, const ScfOptions& options)
    : job_(job),
      molecule_(molecule),
      basis_(basis),
      occupied_(electrons / 2),
      integrals_(integrals),
      layout_(layout),
      options_(options),
      core_(job, layout, "core Hamiltonian"),
      density_(job, layout, "density"),
      change_(job, layout, "density change"),
      repulsion_(job, layout, "repulsion"),
      fock_(job, layout, "Fock matrix"),
      diis_(job, layout, options.diis_depth),
      builder_(job, integrals, layout, options.build),
      previous_density_(layout.doubles_of(job.rank())) {
  set_core_hamiltonian();
  if (job_.is_root()) {
    const Timed timed(job_.activity().algebra_s);
    overlap_ = integrals_.overlap();
    orthogonaliser_ = orthogonaliser(overlap_);
  }
}

std::uint64_t Scf::window_bytes() const {
  return core_.local_bytes() + density_.local_bytes() + change_.local_bytes() + repulsion_.local_bytes() +
         fock_.local_bytes() + 2 * static_cast<std::uint64_t>(options_.diis_depth) * core_.local_bytes();
}

ScfResult Scf::run(const ScfObserver& observer) {
  ScfResult result;
  result.nuclear = nuclear_repulsion(molecule_);
  result.lowest_empty = std::numeric_limits<double>::quiet_NaN();
  set_guess();
  for (int n = 1; n <= options_.most_iterations && !result.converged; ++n) {
    const auto start = std::chrono::steady_clock::now();
    const double last_energy = result.energy;
    build_fock(n, observer);
    measure(result);
    Iteration iteration{.number = n,
                        .energy = result.energy,
                        .change = result.energy - last_energy,
                        .error = settle_error(),
                        .seconds = 0};
    result.converged =
        n > 1 && std::abs(iteration.change) < options_.energy_tolerance && iteration.error < options_.error_tolerance;
    if (!result.converged) {
      // The first density is a guess that no orbitals belong to: its error says nothing about the way to go.
      if (n > 1) diis_.extrapolate(fock_);
      renew_density(result);
    }
    iteration.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.iterations.push_back(iteration);
    observer.iteration(iteration);
  }
  return result;
}

void Scf::set_core_hamiltonian() {
  const Timed timed(job_.activity().compute_s);
  for (std::uint64_t pair : layout_.pairs_of(job_.rank())) {
    const auto [i, j] = pair_of_number(pair);
    const auto& blocks = layout_.blocking().blocks;
    integrals_.core_hamiltonian(blocks[static_cast<std::size_t>(i)], blocks[static_cast<std::size_t>(j)],
                                core_.local_block(pair).data());
  }
}

void Scf::set_guess() {
  if (options_.guess == Guess::atoms && job_.is_root()) {
    const Timed timed(job_.activity().algebra_s);
    density_.scatter(atomic_densities(molecule_, basis_));
  }
  job_.barrier();
  note_density_change();
}

// The repulsion matrix is linear in the density, so that of the change is added to what earlier builds left.
void Scf::build_fock(int iteration, const ScfObserver& observer) {
  if (!options_.incremental) {
    std::ranges::fill(repulsion_.local(), 0.0);
    repulsion_.publish();
  }
  builder_.add_repulsion(change_, repulsion_, [&](double share) { observer.build(iteration, share); });

  for (std::uint64_t pair : layout_.pairs_of(job_.rank())) {
    const BlockLayout::Place& place = layout_.place(pair);
    const auto [i, j] = pair_of_number(pair);
    const double* sums = repulsion_.local_block(pair).data();
    const double* core = core_.local_block(pair).data();
    double* fock = fock_.local_block(pair).data();
    for (int row = 0; row < place.rows; ++row) {
      for (int column = 0; column < place.columns; ++column) {
        const int at = row * place.columns + column;
        fock[at] = core[at] + FockBuilder::finished(sums, place, i == j, row, column);
      }
    }
  }
  fock_.publish();
}

void Scf::measure(ScfResult& result) {
  std::vector<double> sums = {density_.local_dot(0, core_, 0), density_.local_dot(0, fock_, 0)};
  job_.sum(sums);
  result.one_electron = 2 * sums[0];
  result.two_electron = sums[1] - sums[0];
  result.energy = result.one_electron + result.two_electron + result.nuclear;
}

// How far the density is from belonging to its own Fock matrix: X^T (FDS - SDF) X, scattered for DIIS; its largest
// element.
double Scf::settle_error() {
  std::vector<double> largest(1);
  if (job_.is_root()) {
    const Timed timed(job_.activity().algebra_s);
    const Matrix fd = product(fock_.gather(Symmetry::symmetric), density_.gather(Symmetry::symmetric));
    const Matrix fds = product(fd, overlap_);
    const Matrix small = product(product(transposed(orthogonaliser_), fds - transposed(fds)), orthogonaliser_);
    largest[0] = small.cwiseAbs().maxCoeff();
    Matrix error = Matrix::Zero(basis_.functions, basis_.functions);  // dropped combinations stay zero
    error.topLeftCorner(small.rows(), small.cols()) = small;
    diis_.errors().scatter(error, diis_.next_plane());
  }
  job_.broadcast(largest);
  job_.barrier();
  return largest[0];
}

void Scf::renew_density(ScfResult& result) {
  fock_.publish();
  job_.barrier();
  if (job_.is_root()) {
    const Timed timed(job_.activity().algebra_s);
    const Orbitals orbitals = diagonalise(fock_.gather(Symmetry::symmetric), orthogonaliser_);
    if (orbitals.energies.size() < occupied_) throw std::runtime_error("the basis set is too small for the electrons");
    const Matrix occupied = orbitals.coefficients.leftCols(occupied_);
    density_.scatter(product(occupied, transposed(occupied)));
    result.highest_occupied = orbitals.energies[occupied_ - 1];
    if (orbitals.energies.size() > occupied_) result.lowest_empty = orbitals.energies[occupied_];
    result.dropped_functions = basis_.functions - static_cast<int>(orbitals.energies.size());
  }
  job_.barrier();
  note_density_change();
}

void Scf::note_density_change() {
  density_.publish();
  const auto now = density_.local();
  const auto change = change_.local();
  for (std::size_t n = 0; n < now.size(); ++n) {
    change[n] = options_.incremental ? now[n] - previous_density_[n] : now[n];
    previous_density_[n] = now[n];
  }
  change_.publish();
}

}  // namespace fock
