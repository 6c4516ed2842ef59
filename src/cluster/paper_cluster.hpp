// The cluster of paper 5 with each of the four carriers: what its tables give, and what is assumed where they give
// nothing.
#pragma once

#include <cstdint>

#include "cluster/lists.hpp"
#include "cluster/machine.hpp"
#include "ops/element_type.hpp"

namespace farsum::cluster {

// A sum over all ranks.
struct Reduction {
  std::uint32_t nodes = 906;
  std::uint32_t ranks_a_node = 1;
  ops::ElementType type = ops::ElementType::int32;
  std::uint64_t elements = 1;
  std::uint32_t degree = 4;  // of the tree that is not the host's, as in section 6.3
  std::uint32_t splits = 0;
};

// What is fitted or chosen for the paper's numbers, and what a curve may be drawn for more than one value of.
struct PaperConstants {
  std::int64_t barrier_ns = 0;
  Noise noise;
  // Of the bus by a letter, on its way from or to a host. No table has it. It is chosen: section 6.4 has the best times
  // of the host at a third of its average, and with this they are some 30 us. Half of C, 4.6 us, is the most it can be.
  std::int64_t crossing_ns = 1'500;
};

Machine paper_machine(CarrierKind carrier, const Reduction& reduction, const PaperConstants& constants);
// The host's is a complete tree of four children a node, as its library has (section 6.1), the others' an f-nomial one.
Lists paper_lists(CarrierKind carrier, const Reduction& reduction);

}  // namespace farsum::cluster
