#include "fock_builder.hpp"

#include <algorithm>
#include <cmath>

namespace fock {
namespace {

constexpr std::uint64_t tickets_per_progress_report = 64;

const Block& block(const BlockLayout& layout, int number) {
  return layout.blocking().blocks[static_cast<std::size_t>(number)];
}

double largest_magnitude(const double* values, std::size_t count) {
  double largest = 0;
  for (std::size_t n = 0; n < count; ++n) largest = std::max(largest, std::abs(values[n]));
  return largest;
}

// How strongly each role's density enters: Coulomb terms (ij, kl) four times the exchange terms.
constexpr std::array<double, role_count> role_weight = {1.0, 1.0, 0.25, 0.25, 0.25, 0.25};

}  // namespace

FockBuilder::FockBuilder(Job& job, Integrals& integrals, const BlockLayout& layout, const BuildOptions& options)
    : job_(job),
      integrals_(integrals),
      layout_(layout),
      options_(options),
      counter_(job, options.counter,
               options.task == TaskSize::pair ? layout.pair_count() : layout.blocking().quartet_count()),
      block_bounds_(layout.pair_count()),
      block_norms_(layout.pair_count()) {
  for (std::uint64_t pair = 0; pair < layout.pair_count(); ++pair) {
    const auto [i, j] = pair_of_number(pair);
    for (int a = block(layout, i).first_shell; a < block(layout, i).end_shell; ++a) {
      for (int b = block(layout, j).first_shell; b < block(layout, j).end_shell; ++b) {
        block_bounds_[pair] = std::max(block_bounds_[pair], integrals.schwarz(a, b));
      }
    }
  }
}

void FockBuilder::add_repulsion(BlockMatrix& density, BlockMatrix& repulsion,
                                const std::function<void(double)>& progress) {
  counter_.reset();
  share_block_norms(density);
  std::uint64_t drawn = 0;
  for (std::uint64_t ticket = counter_.next(); ticket < counter_.limit(); ticket = counter_.next()) {
    // The last pairs have the most quartets, so they are dealt out first and the ranks finish close together.
    do_ticket(counter_.limit() - 1 - ticket, density, repulsion);
    if (++drawn % tickets_per_progress_report == 0) {
      progress(static_cast<double>(ticket) / static_cast<double>(counter_.limit()));
    }
  }
  repulsion.finish_accumulates();
  job_.barrier();
  repulsion.publish();
}

double FockBuilder::finished(const double* values, const BlockLayout::Place& place, bool on_diagonal, int row,
                             int column) {
  const double value = values[row * place.columns + column];
  return on_diagonal ? (value + values[column * place.columns + row]) / 2 : value / 2;
}

// Each owner finds the norms of its blocks; all ranks need all of them to screen. A norm per block is not a matrix of
// functions: it is what lets a rank know that a quartet needs no blocks at all.
void FockBuilder::share_block_norms(BlockMatrix& density) {
  std::fill(block_norms_.begin(), block_norms_.end(), 0.0);
  for (std::uint64_t pair : layout_.pairs_of(job_.rank())) {
    const auto values = density.local_block(pair);
    block_norms_[pair] = largest_magnitude(values.data(), values.size());
  }
  job_.sum(block_norms_);
}

BlockQuartet FockBuilder::quartet_of(std::uint64_t ticket) const {
  const BlockPair numbers = pair_of_number(ticket);
  return {pair_of_number(static_cast<std::uint64_t>(numbers.i)), pair_of_number(static_cast<std::uint64_t>(numbers.j))};
}

bool FockBuilder::negligible(const BlockQuartet& quartet) const {
  const QuartetBlocks blocks = blocks_of(quartet);
  double norm = 0;
  for (std::size_t r = 0; r < role_count; ++r) {
    norm = std::max(norm, role_weight[r] * block_norms_[blocks.pairs[static_cast<std::size_t>(blocks.roles[r].slot)]]);
  }
  const double bound = block_bounds_[pair_number(quartet.bra.i, quartet.bra.j)] *
                       block_bounds_[pair_number(quartet.ket.i, quartet.ket.j)];
  return bound * norm < options_.threshold;
}

void FockBuilder::do_ticket(std::uint64_t ticket, BlockMatrix& density, BlockMatrix& repulsion) {
  if (options_.task == TaskSize::quartet) {
    do_quartet(quartet_of(ticket), density, repulsion);
    return;
  }
  for (std::uint64_t ket = 0; ket <= ticket; ++ket) {
    do_quartet({pair_of_number(ticket), pair_of_number(ket)}, density, repulsion);
  }
}

void FockBuilder::do_quartet(const BlockQuartet& quartet, BlockMatrix& density, BlockMatrix& repulsion) {
  if (negligible(quartet)) {
    ++job_.activity().quartets_screened;
    return;
  }
  ++job_.activity().quartets_done;
  const QuartetBlocks blocks = blocks_of(quartet);
  fetch(blocks, density);
  {
    const Timed timed(job_.activity().compute_s);
    contract(quartet, blocks);
  }
  // The buffers of the quartet before are free only now: its accumulates were under way while this one computed.
  repulsion.release_accumulates();
  {
    const Timed timed(job_.activity().compute_s);
    combine_roles(blocks);
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(blocks.distinct); ++s) {
    repulsion.start_accumulate(blocks.pairs[s], slot_fock_[s].data());
  }
}

void FockBuilder::fetch(const QuartetBlocks& blocks, BlockMatrix& density) {
  for (std::size_t s = 0; s < static_cast<std::size_t>(blocks.distinct); ++s) {
    slot_density_[s].resize(layout_.place(blocks.pairs[s]).elements());
    density.start_get(blocks.pairs[s], slot_density_[s].data());
  }
  density.finish_gets();

  const Timed timed(job_.activity().compute_s);
  for (std::size_t r = 0; r < role_count; ++r) {
    const QuartetBlocks::Use& use = blocks.roles[r];
    const auto slot = static_cast<std::size_t>(use.slot);
    const BlockLayout::Place& place = layout_.place(blocks.pairs[slot]);
    role_density_[r].resize(place.elements());
    role_fock_[r].assign(place.elements(), 0.0);
    role_columns_[r] = use.transposed ? place.rows : place.columns;
    const Eigen::Map<const Matrix> stored(slot_density_[slot].data(), place.rows, place.columns);
    if (use.transposed) {
      Eigen::Map<Matrix>(role_density_[r].data(), place.columns, place.rows) = stored.transpose();
    } else {
      Eigen::Map<Matrix>(role_density_[r].data(), place.rows, place.columns) = stored;
    }
  }
}

// Visits each unique shell quartet of the block quartet once. Pairs within a block pair (i, i) keep a >= b; where bra
// and ket are the same block pair, the ket's shell pair is not beyond the bra's.
void FockBuilder::contract(const BlockQuartet& quartet, const QuartetBlocks& blocks) {
  const std::array<const Block*, 4> home = {&block(layout_, quartet.bra.i), &block(layout_, quartet.bra.j),
                                            &block(layout_, quartet.ket.i), &block(layout_, quartet.ket.j)};
  const bool same_bra = quartet.bra.i == quartet.bra.j;
  const bool same_ket = quartet.ket.i == quartet.ket.j;
  const bool same_pair = quartet.bra.i == quartet.ket.i && quartet.bra.j == quartet.ket.j;
  double density = 0;
  for (std::size_t r = 0; r < role_count; ++r) {
    density =
        std::max(density, role_weight[r] * block_norms_[blocks.pairs[static_cast<std::size_t>(blocks.roles[r].slot)]]);
  }
  Activity& activity = job_.activity();
  for (int a = home[0]->first_shell; a < home[0]->end_shell; ++a) {
    const int b_end = same_bra ? a + 1 : home[1]->end_shell;
    for (int b = home[1]->first_shell; b < b_end; ++b) {
      const double bra_bound = integrals_.schwarz(a, b) * density;
      const int c_end = same_pair ? a + 1 : home[2]->end_shell;
      for (int c = home[2]->first_shell; c < c_end; ++c) {
        int d_end = same_ket ? c + 1 : home[3]->end_shell;
        if (same_pair && c == a) d_end = std::min(d_end, b + 1);
        for (int d = home[3]->first_shell; d < d_end; ++d) {
          if (bra_bound * integrals_.schwarz(c, d) < options_.threshold) {
            ++activity.shell_quartets_screened;
            continue;
          }
          ++activity.shell_quartets_done;
          const bool same_shell_pair = a == c && b == d;
          const double degeneracy = (a == b ? 1.0 : 2.0) * (c == d ? 1.0 : 2.0) * (same_shell_pair ? 1.0 : 2.0);
          contract_shells(a, b, c, d, degeneracy, home);
        }
      }
    }
  }
}

void FockBuilder::contract_shells(int a, int b, int c, int d, double degeneracy,
                                  const std::array<const Block*, 4>& home) {
  const double* values = integrals_.repulsion(a, b, c, d);
  if (values == nullptr) return;
  const int na = integrals_.functions_of(a), nb = integrals_.functions_of(b);
  const int nc = integrals_.functions_of(c), nd = integrals_.functions_of(d);
  const int a0 = integrals_.first_function_of(a) - home[0]->first_function;
  const int b0 = integrals_.first_function_of(b) - home[1]->first_function;
  const int c0 = integrals_.first_function_of(c) - home[2]->first_function;
  const int d0 = integrals_.first_function_of(d) - home[3]->first_function;
  const auto at = [this](Role role, int row, int column) { return row * role_columns_[role] + column; };
  const double exchange = -0.25;

  for (int i = a0; i < a0 + na; ++i) {
    for (int j = b0; j < b0 + nb; ++j) {
      const double d_ij = role_density_[role_ij][at(role_ij, i, j)] * degeneracy;
      double f_ij = 0;
      const double* d_il = &role_density_[role_il][at(role_il, i, d0)];
      const double* d_jl = &role_density_[role_jl][at(role_jl, j, d0)];
      double* f_il = &role_fock_[role_il][at(role_il, i, d0)];
      double* f_jl = &role_fock_[role_jl][at(role_jl, j, d0)];
      for (int k = c0; k < c0 + nc; ++k) {
        const double* d_kl = &role_density_[role_kl][at(role_kl, k, d0)];
        double* f_kl = &role_fock_[role_kl][at(role_kl, k, d0)];
        const int ik = at(role_ik, i, k), jk = at(role_jk, j, k);
        const double d_ik = role_density_[role_ik][ik] * degeneracy * exchange;
        const double d_jk = role_density_[role_jk][jk] * degeneracy * exchange;
        double f_ik = 0, f_jk = 0;
        for (int l = 0; l < nd; ++l) {
          const double value = values[l];
          f_ij += d_kl[l] * value;
          f_kl[l] += d_ij * value;
          f_ik += d_jl[l] * value;
          f_jl[l] += d_ik * value;
          f_il[l] += d_jk * value;
          f_jk += d_il[l] * value;
        }
        role_fock_[role_ik][ik] += f_ik * degeneracy * exchange;
        role_fock_[role_jk][jk] += f_jk * degeneracy * exchange;
        values += nd;
      }
      role_fock_[role_ij][at(role_ij, i, j)] += f_ij * degeneracy;
    }
  }
}

// Adds the roles that share a stored block, turned the way it is stored.
void FockBuilder::combine_roles(const QuartetBlocks& blocks) {
  for (std::size_t s = 0; s < static_cast<std::size_t>(blocks.distinct); ++s) {
    slot_fock_[s].assign(layout_.place(blocks.pairs[s]).elements(), 0.0);
  }
  for (std::size_t r = 0; r < role_count; ++r) {
    const QuartetBlocks::Use& use = blocks.roles[r];
    const auto slot = static_cast<std::size_t>(use.slot);
    const BlockLayout::Place& place = layout_.place(blocks.pairs[slot]);
    Eigen::Map<Matrix> stored(slot_fock_[slot].data(), place.rows, place.columns);
    if (use.transposed) {
      stored += Eigen::Map<const Matrix>(role_fock_[r].data(), place.columns, place.rows).transpose();
    } else {
      stored += Eigen::Map<const Matrix>(role_fock_[r].data(), place.rows, place.columns);
    }
  }
}

}  // namespace fock
