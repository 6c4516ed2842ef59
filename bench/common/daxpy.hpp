// A sum of doubles as fast as a processor has instructions for it: a limit of what adds in memory.
#pragma once

#include <cstddef>

namespace bench {

// y += a * x with the widest vectors of this processor. No lock, no check, private memory.
using Daxpy = void (*)(double* y, const double* x, std::size_t count, double a);
struct DaxpyChoice {
  Daxpy run;
  const char* name;
};
DaxpyChoice best_daxpy();

}  // namespace bench
