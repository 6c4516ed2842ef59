// `farsum info --model --measure`: measures the cost model's parameters and leaves them where later jobs look.
#pragma once

#include <cstdint>

#include "base/settings.hpp"
#include "runtime/link_models.hpp"

namespace farsum::cli {

struct MeasuredModel {
  int exit_code = 0;
  bool reports = true;        // false on the ranks of a job that have only helped
  std::uint32_t partner = 0;  // machine_number() of the other end; 0: this machine's
};

// In a job: between rank 0 and the first rank of another host, or else rank 1. Outside one, starts two ranks here.
[[nodiscard]] MeasuredModel measure_model(const Settings& settings);

}  // namespace farsum::cli
