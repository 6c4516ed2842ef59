// Floating-point arithmetic as a process begins with it, for work that is done in a thread of the program's: what the
// program has changed (rounding, traps, denormals as zero) must not change others' sums, nor their flags its own.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cstdint>

namespace farsum::os {

class DefaultArithmetic {
 public:
#if defined(__x86_64__)
  DefaultArithmetic() : control_(_mm_getcsr()) {
    __asm__ volatile("fnstcw %0" : "=m"(x87_control_));
    if ((control_ & ~flags) != default_control) _mm_setcsr(default_control);
    if (x87_control_ != default_x87_control) load(default_x87_control);
  }
  ~DefaultArithmetic() {
    if (_mm_getcsr() != control_) _mm_setcsr(control_);
    if (x87_control_ != default_x87_control) load(x87_control_);
  }
#endif
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

#if defined(__x86_64__)
 private:
  static constexpr unsigned default_control = 0x1f80;
  static constexpr unsigned flags = 0x3f;  // of what has happened
  static constexpr std::uint16_t default_x87_control = 0x37f;

  static void load(std::uint16_t control) { __asm__ volatile("fldcw %0" : : "m"(control)); }

  unsigned control_;
  std::uint16_t x87_control_ = 0;
#else
  DefaultArithmetic() {}
#endif
};

}  // namespace farsum::os
