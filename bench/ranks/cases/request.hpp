// What a program of ranks is asked for, and what it tells.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ranks/cases/rows.hpp"

namespace CLI {
class App;
}

namespace ranks {

struct Request {
  std::vector<Point> points;
  double seconds = 0.5;
  int threads = 1;  // the most that a point has
  bool calls_from_threads = false;
};

struct RequestOptions {
  std::vector<std::string> names;
  double seconds = 0.5;
  bool about = false;

  void declare(CLI::App& app);
  [[nodiscard]] Request request() const;
};

// The members of one JSON object, in their order.
using Record = std::vector<std::pair<const char*, std::variant<long, double, std::string>>>;

}  // namespace ranks
