#include "blocking.hpp"

#include <cmath>

namespace fock {
namespace {

// Blocks start on cache lines, so that two ranks never write to one line of a window.
constexpr std::uint64_t doubles_per_line = 8;

bool starts_block(const Basis& basis, const Block& open, std::size_t shell, int most_functions) {
  const PlacedShell& next = basis.shells[shell];
  if (most_functions == 0) return next.atom != basis.shells[static_cast<std::size_t>(open.first_shell)].atom;
  return open.functions + next.functions > most_functions;
}

}  // namespace

Blocking make_blocking(const Basis& basis, int most_functions) {
  Blocking blocking;
  blocking.functions = basis.functions;
  for (std::size_t s = 0; s < basis.shells.size(); ++s) {
    const int shell = static_cast<int>(s);
    if (blocking.blocks.empty() || starts_block(basis, blocking.blocks.back(), s, most_functions)) {
      blocking.blocks.push_back({shell, shell, basis.shells[s].first_function, 0});
    }
    Block& block = blocking.blocks.back();
    block.end_shell = shell + 1;
    block.functions += basis.shells[s].functions;
  }
  return blocking;
}

std::uint64_t pair_number(int i, int j) {
  const auto row = static_cast<std::uint64_t>(i);
  return row * (row + 1) / 2 + static_cast<std::uint64_t>(j);
}

BlockPair pair_of_number(std::uint64_t number) {
  // The square root may be off by one in the last place; the loops put it right.
  auto row = static_cast<std::uint64_t>((std::sqrt(8.0 * static_cast<double>(number) + 1.0) - 1.0) / 2.0);
  while (row * (row + 1) / 2 > number) --row;
  while ((row + 1) * (row + 2) / 2 <= number) ++row;
  return {static_cast<int>(row), static_cast<int>(number - row * (row + 1) / 2)};
}

QuartetBlocks blocks_of(const BlockQuartet& quartet) {
  const auto [i, j] = quartet.bra;
  const auto [k, l] = quartet.ket;
  QuartetBlocks result;
  result.roles = {{{i, j}, {k, l}, {i, k}, {i, l}, {j, k}, {j, l}}};
  for (auto& use : result.roles) {
    use.transposed = use.rows < use.columns;
    const std::uint64_t pair = use.transposed ? pair_number(use.columns, use.rows) : pair_number(use.rows, use.columns);
    use.slot = 0;
    while (use.slot < result.distinct && result.pairs[static_cast<std::size_t>(use.slot)] != pair) ++use.slot;
    if (use.slot == result.distinct) result.pairs[static_cast<std::size_t>(result.distinct++)] = pair;
  }
  return result;
}

BlockLayout::BlockLayout(const Blocking& blocking, int ranks)
    : blocking_(blocking), doubles_(static_cast<std::size_t>(ranks)), owned_(static_cast<std::size_t>(ranks)) {
  places_.reserve(blocking.pair_count());
  for (std::uint64_t pair = 0; pair < blocking.pair_count(); ++pair) {
    const auto [i, j] = pair_of_number(pair);
    const std::size_t owner = pair % static_cast<std::uint64_t>(ranks);
    Place place{static_cast<int>(owner), doubles_[owner], blocking.blocks[static_cast<std::size_t>(i)].functions,
                blocking.blocks[static_cast<std::size_t>(j)].functions};
    doubles_[owner] += (place.elements() + doubles_per_line - 1) / doubles_per_line * doubles_per_line;
    places_.push_back(place);
    owned_[owner].push_back(pair);
  }
}

}  // namespace fock
