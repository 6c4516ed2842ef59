// What one run of bench-ranks was asked for, and who takes part in it.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "common/lab.hpp"
#include "ranks/cases/rows.hpp"

namespace bench {

inline constexpr const char* native_library = "native";

struct Options {
  std::vector<std::string> rows;       // as the shell's patterns; empty: all
  std::vector<std::string> libraries;  // empty: all that are here
  std::vector<int> ranks;              // empty: 2, 4, 8 and so on up to the processors
  std::vector<int> threads;            // of the rows with threads
  int pairs = 3;
  double seconds = 0;  // of each row and turn; 0: as the others say
  bool full = false;
  bool quick = false;
  bool oversubscribe = false;
};

// Who carries out the cases: a library alone or with Farsum, Farsum's C interface, or bare processes.
struct Contender {
  enum class Kind : std::uint8_t { alone, with_farsum, native, bare };

  Kind kind = Kind::bare;
  std::string library = {};

  auto operator<=>(const Contender&) const = default;
  [[nodiscard]] bool is_farsum() const { return kind == Kind::with_farsum || kind == Kind::native; }
  [[nodiscard]] std::string name() const {
    if (kind == Kind::bare) return "bare processes";
    if (kind == Kind::native) return "native Farsum";
    return library + (kind == Kind::alone ? " alone" : " with Farsum");
  }
};

// The points to measure with so many ranks. Those of one group are measured by one start of the ranks.
struct Plan {
  int ranks = 2;
  std::string group;
  std::vector<ranks::Point> points;
};

[[nodiscard]] std::vector<Plan> plans_of(const Options& options);

}  // namespace bench
