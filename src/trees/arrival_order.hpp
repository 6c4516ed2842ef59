// The order in which the children of a node in an f-nomial tree would arrive if a letter took one unit of time on its
// way and one to combine. For f-nomial trees the parameters of a link give the same order, but only units cannot be
// fitted anew. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "trees/fnomial.hpp"

namespace farsum::trees {

// `children` are in slot order; those that arrive at once stay in it.
void sort_by_arrival(std::vector<Fnomial::Child>& children, std::uint32_t degree);

}  // namespace farsum::trees
