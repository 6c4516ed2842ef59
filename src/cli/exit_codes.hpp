// The launcher's exit codes, as docs/reference/command.md lists them. A failing rank's own code, or 128 + its signal,
// takes precedence.
#pragma once

namespace farsum::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_timeout = 124;
inline constexpr int exit_launcher_failed = 125;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_signal_base = 128;

}  // namespace farsum::cli
