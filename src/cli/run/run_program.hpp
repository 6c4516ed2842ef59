// Finds the program to run, as a shell would.
#pragma once

#include <string>

namespace farsum::cli {

struct FoundProgram {
  std::string path;      // with a slash in it; empty when there is none
  std::string sentence;  // why not
  int exit_code = 0;     // 126 or 127 then
};

// A name with a slash is a path; others are looked up in `search_path`, folders separated by colons.
[[nodiscard]] FoundProgram find_program(const std::string& name, const std::string& search_path);

}  // namespace farsum::cli
