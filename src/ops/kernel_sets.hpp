// The kernel sets themselves, one per translation unit. Only kernels.cpp picks among them.
#pragma once

#include "ops/kernels.hpp"

namespace farsum::ops {

extern const KernelSet kernels_baseline;
extern const KernelSet kernels_avx2;
extern const KernelSet kernels_avx512;

}  // namespace farsum::ops
