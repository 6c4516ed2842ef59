// A mebibyte, for test files that are compiled at once.
#pragma once

#include <cstddef>

namespace farsum::test {

inline constexpr std::size_t mib = std::size_t{1} << 20;

}  // namespace farsum::test
