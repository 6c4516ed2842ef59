// What every caller of Transport::try_letter keeps, however it was built: else it would wait for ever.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace farsum {

[[noreturn, gnu::cold]] inline void stop_on_letter(const char* fault) {
  std::fprintf(stderr, "farsum: internal error: a letter %s\n", fault);
  std::abort();
}

inline void require_of_letter(bool condition, const char* otherwise) {
  if (!condition) [[unlikely]]
    stop_on_letter(otherwise);
}

}  // namespace farsum
