// What the user asks of counter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../common/any_counter.hpp"

namespace counter {

enum class Tasks { equal, irregular };

struct Options {
  std::vector<int> cases = {1, 2, 3};
  std::vector<apps::CounterKind> kinds = {apps::CounterKind::strict};
  std::vector<Tasks> tasks = {Tasks::irregular};
  std::uint64_t tasks_per_rank = 10;
  double work_ms = 50;
  std::uint64_t seed = 1;
  int home = 0;
  bool json = false;
};

[[nodiscard]] const char* kind_name(apps::CounterKind kind);
[[nodiscard]] const char* tasks_name(Tasks tasks);

// Fills `options` and sets the environment that Farsum starts with. A value is the exit code of a program that ends
// here.
[[nodiscard]] std::optional<int> read_options(int argc, char** argv, Options& options);

}  // namespace counter
