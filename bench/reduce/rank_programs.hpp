// What bench-reduce is when it is started as a rank: of Farsum's C interface, or one of two bare processes.
#pragma once

#include <optional>

namespace bench {

inline constexpr int exit_wrong_usage = 2;
inline constexpr const char* native_word = "native-rank";
inline constexpr const char* bare_word = "bare-pair";

// The exit status where one of these words is the first argument. `farsum run` starts each native rank. Both print
// JSON lines, as lab-reduce does.
std::optional<int> run_rank_program(int argc, char** argv);

}  // namespace bench
