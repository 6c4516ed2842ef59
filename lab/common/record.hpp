// What a program tells of one measurement: named values, in their order.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/timing.hpp"

namespace lab {

struct Named {
  std::string name;
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Spread> value;
};
using Record = std::vector<Named>;

// One JSON object, on one line.
[[nodiscard]] std::string json_of(const Record& record);

}  // namespace lab
