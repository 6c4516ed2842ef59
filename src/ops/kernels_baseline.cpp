// The kernel set for SSE2. Everything but the table has internal linkage, so no code compiled here can stand in for
// another set's.
#define FARSUM_KERNEL_VECTOR_BYTES 16
#include "ops/kernels_body.inl"

namespace farsum::ops {

constinit const KernelSet kernels_baseline = make_kernel_set(Isa::baseline, "baseline");

}  // namespace farsum::ops
