// Chooses among the kernel sets by what the processor and the kernel allow.
#include "ops/kernels.hpp"

#include "ops/kernel_sets.hpp"

namespace farsum::ops {

namespace {

constexpr std::array<Isa, 3> slowest_first = {Isa::baseline, Isa::avx2, Isa::avx512};

#if FARSUM_HAS_X86_KERNELS
// Each level of the x86-64 psABI holds every extension that its kernel file is compiled for, and __builtin_cpu_supports
// also asks whether the operating system keeps the registers.
std::size_t count_runnable() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return 3;
  if (__builtin_cpu_supports("x86-64-v3")) return 2;
  return 1;
}
#else
// Other processors have the baseline alone, as their compiler makes it.
std::size_t count_runnable() { return 1; }
#endif

}  // namespace

const KernelSet& kernels(Isa isa) {
  // A discarded branch names no symbol: the files of the other sets are not compiled elsewhere.
  if constexpr (FARSUM_HAS_X86_KERNELS) {
    if (isa == Isa::avx512) return kernels_avx512;
    if (isa == Isa::avx2) return kernels_avx2;
  }
  return kernels_baseline;
}

std::span<const Isa> available_isas() {
  static const std::size_t runnable = count_runnable();
  return std::span(slowest_first).first(runnable);
}

const KernelSet& kernels_for_this_machine() {
  static const KernelSet& best = kernels(available_isas().back());
  return best;
}

}  // namespace farsum::ops
