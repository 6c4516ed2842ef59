// For tests that run the project's tools: a command of the shell, what it printed, and how it ended.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace farsum::test {

struct Ended {
  int status;  // -1: by a signal
  std::string output;
};

inline Ended shell(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1 < /dev/null").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), got);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

}  // namespace farsum::test
