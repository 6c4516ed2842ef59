#include "diis.hpp"

#include <algorithm>

namespace fock {

Diis::Diis(Job& job, const BlockLayout& layout, int depth)
    : job_(job),
      depth_(depth),
      focks_(job, layout, "DIIS Fock matrices", depth),
      errors_(job, layout, "DIIS errors", depth),
      products_(Matrix::Zero(depth, depth)) {}

void Diis::extrapolate(BlockMatrix& fock) {
  errors_.publish();
  const int slot = next_;
  std::ranges::copy(fock.local(), focks_.local(slot).begin());
  kept_ = std::min(kept_ + 1, depth_);
  next_ = (next_ + 1) % depth_;

  std::vector<double> row(static_cast<std::size_t>(kept_));
  for (int other = 0; other < kept_; ++other) {
    row[static_cast<std::size_t>(other)] = errors_.local_dot(slot, errors_, other);
  }
  job_.sum(row);
  for (int other = 0; other < kept_; ++other) {
    products_(slot, other) = products_(other, slot) = row[static_cast<std::size_t>(other)];
  }
  if (kept_ < 2) return;

  const std::vector<double> mix = coefficients();
  const auto result = fock.local();
  std::ranges::fill(result, 0.0);
  for (int other = 0; other < kept_; ++other) {
    const auto kept = focks_.local(other);
    for (std::size_t n = 0; n < result.size(); ++n) result[n] += mix[static_cast<std::size_t>(other)] * kept[n];
  }
}

// Minimises the norm of the mixed error with coefficients that sum to one. The root solves, so that all ranks use the
// same bits.
std::vector<double> Diis::coefficients() {
  std::vector<double> mix(static_cast<std::size_t>(kept_));
  if (job_.is_root()) {
    // Scaling by the smallest norm keeps the system well conditioned while the errors shrink.
    const double scale = 1.0 / std::max(products_.diagonal().head(kept_).minCoeff(), 1e-300);
    Matrix system = Matrix::Constant(kept_ + 1, kept_ + 1, -1.0);
    system.topLeftCorner(kept_, kept_) = scale * products_.topLeftCorner(kept_, kept_);
    system(kept_, kept_) = 0;
    std::vector<double> right(static_cast<std::size_t>(kept_) + 1);
    right.back() = -1;
    std::ranges::copy_n(solve(system, right).begin(), kept_, mix.begin());
  }
  job_.broadcast(mix);
  return mix;
}

}  // namespace fock
