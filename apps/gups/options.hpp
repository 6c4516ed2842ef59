// What the user asks of gups, and the names of things.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "farsum.h"

namespace gups {

enum class Way { gmp, gmp_mutex, accumulate, aggregated, direct, batched, card };
enum class Epochs { per_update, one };  // of the accumulate way
enum class Memory { allocated, adopted };

struct Options {
  std::vector<Way> ways;
  farsum_op op = FARSUM_BXOR;
  unsigned log2_words = 22;
  std::uint64_t updates = 0;  // 0: four times the words
  std::uint64_t batch = 1024;
  std::uint32_t aggregate = 0;  // 0: an even share of the batch per rank
  Epochs epochs = Epochs::one;
  Memory memory = Memory::allocated;
  std::string path;  // empty: what the environment says
  bool baseline = false;
  int repeat = 1;
  bool json = false;
  bool quiet = false;

  [[nodiscard]] std::uint64_t words() const { return std::uint64_t{1} << log2_words; }
  [[nodiscard]] std::uint64_t total_updates() const { return updates != 0 ? updates : 4 * words(); }
};

[[nodiscard]] const char* way_name(Way way);
[[nodiscard]] const char* op_name(farsum_op op);
// Whether no update may be lost; the others fall under HPCC's 1 %.
[[nodiscard]] bool is_atomic(Way way);

// A value is the exit code of a program that ends here.
[[nodiscard]] std::optional<int> read_options(int argc, char** argv, Options& options);

}  // namespace gups
