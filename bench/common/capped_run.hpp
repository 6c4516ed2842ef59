// Runs a program with an empty stdin, keeps what it writes, and ends it when its time is up: a baseline may hang or
// take minutes, and its launcher must then take its ranks along.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct Command {
  std::vector<std::string> words;                       // the first is a path
  std::map<std::string, std::string> environment = {};  // besides this process's own
  std::int64_t cap_ms = 60'000;
  int stop_fd = -1;  // once it can be read the program is ended
};

enum class Ending : std::uint8_t { good, failed, capped, stopped };

struct Outcome {
  Ending ending = Ending::good;
  int exit_code = 0;  // 128 + signal when one killed it; 127 when it could not be started
  std::string output;
  std::string errors;
};

[[nodiscard]] Outcome run_capped(const Command& command);

}  // namespace bench
