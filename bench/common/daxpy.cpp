// The daxpy that bulk accumulates are measured against. Written with intrinsics and unrolled by four, so that it does
// not depend on what -O2 vectorises; the aligned stream of a few hundred KiB then runs at the speed of the cache.
#include "common/daxpy.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {
namespace {

void daxpy_plain(double* y, const double* x, std::size_t count, double a) {
  for (std::size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] void daxpy_avx2(double* y, const double* x, std::size_t count, double a) {
  const __m256d scale = _mm256_set1_pd(a);
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (std::size_t lane = 0; lane < 16; lane += 4) {
      const __m256d sum = _mm256_fmadd_pd(scale, _mm256_loadu_pd(x + i + lane), _mm256_loadu_pd(y + i + lane));
      _mm256_storeu_pd(y + i + lane, sum);
    }
  }
  daxpy_plain(y + i, x + i, count - i, a);
}

[[gnu::target("avx512f")]] void daxpy_avx512(double* y, const double* x, std::size_t count, double a) {
  const __m512d scale = _mm512_set1_pd(a);
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    for (std::size_t lane = 0; lane < 32; lane += 8) {
      const __m512d sum = _mm512_fmadd_pd(scale, _mm512_loadu_pd(x + i + lane), _mm512_loadu_pd(y + i + lane));
      _mm512_storeu_pd(y + i + lane, sum);
    }
  }
  daxpy_plain(y + i, x + i, count - i, a);
}

#endif

}  // namespace

DaxpyChoice best_daxpy() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {daxpy_avx512, "avx512"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {daxpy_avx2, "avx2"};
#endif
  return {daxpy_plain, "plain"};
}

}  // namespace bench
