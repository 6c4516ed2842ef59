// The kernel set for AVX-512. Everything but the table has internal linkage, so no code compiled here can stand in for
// another set's.
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
#error "compile this file with -mavx512f, bw, dq and vl or more, at most x86-64-v4"
#endif

#define FARSUM_KERNEL_VECTOR_BYTES 64
#include "ops/kernels_body.inl"

namespace farsum::ops {

constinit const KernelSet kernels_avx512 = make_kernel_set(Isa::avx512, "avx512");

}  // namespace farsum::ops
