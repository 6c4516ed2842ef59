// The rows of `farsum bench ranks`: what the programs of the ranks and the one that starts them both know of each.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace ranks {

struct Row {
  const char* name;
  const char* group;  // rows of a group are measured by one start of the ranks
  const char* unit;   // M/s and GB/s are of all ranks together, us are of one operation
  std::vector<std::string> variants;
  std::vector<std::string> usual_variants;  // those measured unless all are asked for
  std::optional<double> aim_at_16;          // in the unit, where there is one

  [[nodiscard]] bool is_rate() const { return std::string(unit) != "us"; }
  [[nodiscard]] bool has_threads() const { return std::string(group) == "threads"; }
};

inline constexpr const char* allocated = "allocate";  // the window's memory is the library's
inline constexpr const char* user_memory = "create";  // it is the program's
inline constexpr const char* one_window = "one-window";
inline constexpr const char* window_each = "window-each";

inline const std::vector<Row>& all_rows() {
  static const std::vector<std::string> own{allocated};
  static const std::vector<std::string> user{user_memory};
  static const std::vector<std::string> both{allocated, user_memory};
  static const std::vector<std::string> windows{one_window, window_each};
  static const std::vector<Row> rows{
      {"lock-one", "locks", "M/s", both, own, 2.0},
      {"lock-random", "locks", "M/s", both, own, 12.0},
      {"lock-work", "locks", "M/s", own, own, 0.47},
      {"lock-shared", "locks", "M/s", own, own, {}},
      {"lock-all", "locks", "us", own, own, 1.0},
      {"fence", "locks", "us", own, own, 1.5},
      {"allocate-64KiB", "windows", "us", own, own, 80.0},
      {"allocate-64KiB-free", "windows", "us", own, own, 15.0},
      {"create-4KiB", "windows", "us", user, user, 40.0},
      {"create-4KiB-free", "windows", "us", user, user, 40.0},
      {"fetch-op-one", "updates", "M/s", both, both, 25.0},
      {"fetch-op-random", "updates", "M/s", both, own, {}},
      {"sums-random", "updates", "M/s", both, own, {}},
      {"accumulate-512B-one", "updates", "M/s", both, both, 4.0},
      {"counter", "updates", "us", both, both, 30.0},
      {"accumulate-1MiB-one", "transfers", "GB/s", both, own, {}},
      {"accumulate-1MiB-ring", "transfers", "GB/s", both, own, {}},
      {"put-1MiB-ring", "transfers", "GB/s", both, own, {}},
      {"get-1MiB-ring", "transfers", "GB/s", both, own, {}},
      {"threads-fetch-op", "threads", "M/s", windows, windows, {}},
      {"threads-lock", "threads", "M/s", windows, windows, {}},
      {"threads-flush", "threads", "M/s", windows, windows, {}},
  };
  return rows;
}

inline const Row* row_called(const std::string& name) {
  const auto& rows = all_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return name == row.name; });
  return found == rows.end() ? nullptr : &*found;
}

// One row in one of its variants, by so many threads a rank. In words and records it is ROW/VARIANT/THREADS.
struct Point {
  const Row* row = nullptr;
  std::string variant;
  int threads = 1;

  [[nodiscard]] std::string name() const {
    return std::string(row->name) + "/" + variant + "/" + std::to_string(threads);
  }
};

inline std::optional<Point> point_called(const std::string& name) {
  const std::size_t first = name.find('/');
  const std::size_t second = name.rfind('/');
  if (first == std::string::npos || second == first) return std::nullopt;
  Point point{.row = row_called(name.substr(0, first)), .variant = name.substr(first + 1, second - first - 1)};
  const auto [end, error] = std::from_chars(name.data() + second + 1, name.data() + name.size(), point.threads);
  const bool is_number = error == std::errc() && end == name.data() + name.size() && point.threads > 0;
  if (point.row == nullptr || !is_number) return std::nullopt;
  const auto& variants = point.row->variants;
  return std::find(variants.begin(), variants.end(), point.variant) != variants.end() ? std::optional(point)
                                                                                      : std::nullopt;
}

}  // namespace ranks
