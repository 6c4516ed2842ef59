// What `farsum bench reduce --measure` times: a collective call with so many bytes from each rank, of double sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

// In the order in which they are measured.
[[nodiscard]] std::vector<Call> all_calls();
[[nodiscard]] std::optional<Call> call_named(const std::string& name);

// What a program of ranks is asked for.
struct Request {
  std::vector<std::string> names;
  double seconds = 0.2;
  bool about = false;

  void declare(CLI::App& app);
  [[nodiscard]] std::vector<Call> calls() const;
};

// What rank 0 tells of a call.
struct Timing {
  double call_us = 0;  // the slowest rank's
  long calls = 0;
};

}  // namespace collectives
