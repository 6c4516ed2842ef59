// Integrals over the basis from libint2: overlap, core Hamiltonian, Schwarz bounds, and one engine for repulsion
// integrals. The only user of libint2. Nothing here communicates.
#pragma once

#include <memory>
#include <vector>

#include "basis.hpp"
#include "block_matrix.hpp"

namespace fock {

// libint2 must be set up once per process before anything else here, and torn down last.
class IntegralLibrary {
 public:
  IntegralLibrary();
  ~IntegralLibrary();
  IntegralLibrary(const IntegralLibrary&) = delete;
  IntegralLibrary& operator=(const IntegralLibrary&) = delete;
};

class Integrals {
 public:
  // Throws InputError where the basis has shells beyond what the library was built for.
  Integrals(const Molecule& molecule, const Basis& basis);
  ~Integrals();
  Integrals(const Integrals&) = delete;
  Integrals& operator=(const Integrals&) = delete;

  [[nodiscard]] int shell_count() const;
  [[nodiscard]] int functions_of(int shell) const;
  [[nodiscard]] int first_function_of(int shell) const;

  [[nodiscard]] Matrix overlap();

  // Kinetic energy plus attraction by all nuclei, for the functions of the shells [first, end) of each side, row-major
  // into `block`.
  void core_hamiltonian(const Block& rows, const Block& columns, double* block);

  // Bound of shell pair (a, b): |(ab|cd)| <= schwarz(a, b) * schwarz(c, d).
  [[nodiscard]] double schwarz(int a, int b) const;

  // (ab|cd), row-major with d fastest; valid until the next call. Null where all are negligible.
  [[nodiscard]] const double* repulsion(int a, int b, int c, int d);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace fock
