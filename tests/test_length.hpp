// How much of itself a test does: `make test` runs a short form of those that are marked "In full in make test-all".
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace farsum::test {

// The line by which tools/run_tests sees that a test without the mark was shortened.
inline constexpr const char* short_form_line = "[  SHORT   ] of what make test-all does in full";

inline bool is_short_form() {
  static const bool is_short = [] {
    const char* const length = std::getenv("FARSUM_TEST_LENGTH");
    if (length == nullptr || std::string_view(length) != "short") return false;
    std::puts(short_form_line);
    return true;
  }();
  return is_short;
}

// A count of seeds, calls or inputs: in full, or of the short form.
template <class Count>
Count in_full_or(Count in_full, Count in_short_form) {
  return is_short_form() ? in_short_form : in_full;
}

}  // namespace farsum::test
