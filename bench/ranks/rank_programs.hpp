// What bench-ranks is when it is started as a rank: of Farsum's C interface, or of bare processes.
#pragma once

#include <optional>

namespace bench {

inline constexpr int exit_wrong_usage = 2;
inline constexpr const char* native_word = "native-rank";
inline constexpr const char* bare_word = "bare-ranks";

// The exit status where one of these words is the first argument. `farsum run` starts each native rank; bare ranks are
// started by their first process. Both print the records of the cases, as lab-ranks does.
std::optional<int> run_rank_program(int argc, char** argv);

}  // namespace bench
