// Floating-point arithmetic as a process begins with it, for work that is done in a thread of the program's: what the
// program has changed (rounding, traps, denormals as zero) must not change others' sums, nor their flags be its own.
#pragma once

#include <cfenv>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace farsum::os {

class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_{};
};

#ifdef __SSE2__
// The same for what is computed in vector registers alone. It is made for a few elements at a time: a thread that has
// the default reads one register twice, and writes it where a flag was raised.
class DefaultVectorArithmetic {
 public:
  DefaultVectorArithmetic() : before_(_mm_getcsr()) {
    if ((before_ & ~raised_flags) != at_begin) _mm_setcsr(at_begin);
  }
  ~DefaultVectorArithmetic() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }
  DefaultVectorArithmetic(const DefaultVectorArithmetic&) = delete;
  DefaultVectorArithmetic& operator=(const DefaultVectorArithmetic&) = delete;

 private:
  static constexpr unsigned raised_flags = 0x3f;
  static constexpr unsigned at_begin = 0x1f80;  // all exceptions masked, to nearest, subnormals as they are

  unsigned before_;
};
#else
using DefaultVectorArithmetic = DefaultArithmetic;
#endif

}  // namespace farsum::os
