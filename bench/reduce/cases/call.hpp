// What `farsum bench reduce` times: a collective call with so many bytes from each rank, of double sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace collectives {

enum class Kind : std::uint8_t { allreduce, reduce, reduce_scatter, broadcast, barrier };

struct Call {
  Kind kind = Kind::allreduce;
  std::size_t bytes = 0;  // of a rank's vector; of a reduce-scatter that of all blocks together, about

  // KIND/BYTES, as on command lines; barrier alone has no bytes.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::size_t elements() const { return bytes / sizeof(double); }
};

// Those of --measure, in the order in which they are measured.
[[nodiscard]] std::vector<Call> all_calls();
// Any kind, with any number of whole elements.
[[nodiscard]] std::optional<Call> call_named(const std::string& name);

// How calls are timed: many in a row, begun beside computing of all ranks or of the middle one, one by one.
enum class Way : std::uint8_t { in_a_row, overlap, middle, steady };
[[nodiscard]] const char* name_of(Way way);

// What a program of ranks is asked for.
struct Request {
  std::vector<std::string> names;
  Way way = Way::in_a_row;
  double seconds = 0.2;
  std::size_t most_calls = 100'000;  // one by one
  int nice = 0;                      // of all of a rank's threads, where it is not 0
  bool about = false;

  void declare(CLI::App& app);
  [[nodiscard]] std::vector<Call> calls() const;
  // For a process that has no other thread yet. Why it may not, in a sentence; empty where all is well.
  [[nodiscard]] std::string take_priority() const;
};

// Whether this process may have that priority; it is left as it was.
[[nodiscard]] bool may_be_nice(int nice);

// What rank 0 tells of a call, number by number.
using Figures = std::vector<std::pair<std::string, double>>;

}  // namespace collectives
