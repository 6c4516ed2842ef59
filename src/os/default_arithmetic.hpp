// Floating-point arithmetic as a process begins with it, for work that is done in a thread of the program's: what the
// program has changed (rounding, traps, denormals as zero) must not change others' sums, nor their flags be its own.
#pragma once

#include <cfenv>

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

}  // namespace farsum::os
