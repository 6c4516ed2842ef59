// `farsum info --model --measure`: measures the cost model's parameters and leaves them where later jobs look.
#pragma once

#include "base/settings.hpp"

namespace farsum::cli {

struct MeasuredModel {
  int exit_code = 0;
  bool reports = true;  // false on the ranks of a job that have only helped
};

// In a job: between rank 0 and the first rank of another host, or else rank 1. Outside one, starts two ranks here.
[[nodiscard]] MeasuredModel measure_model(const Settings& settings);

}  // namespace farsum::cli
