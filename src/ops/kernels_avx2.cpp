// The kernel set for AVX2. Everything but the table has internal linkage, so no code compiled here can stand in for
// another set's.
#ifndef __AVX2__
#error "compile this file with -mavx2 or more, at most x86-64-v3"
#endif

#define FARSUM_KERNEL_VECTOR_BYTES 32
#include "ops/kernels_body.inl"

namespace farsum::ops {

constinit const KernelSet kernels_avx2 = make_kernel_set(Isa::avx2, "avx2");

}  // namespace farsum::ops
