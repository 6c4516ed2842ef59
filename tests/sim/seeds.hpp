// Which seeds a test runs, and what a failure says so that one of them can be run again.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace farsum {

// Sanitized code is ten times slower: there the first of the seeds will do.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t seed_share = 5;
#else
inline constexpr std::uint64_t seed_share = 1;
#endif

// `count` seeds from 1, or the one that FARSUM_SEED names.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* const one = std::getenv("FARSUM_SEED")) return {std::strtoull(one, nullptr, 10)};
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= (count + seed_share - 1) / seed_share; ++seed) all.push_back(seed);
  return all;
}

inline std::string how_to_replay(std::uint64_t seed) {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  return "seed " + std::to_string(seed) + "; replay with: FARSUM_SEED=" + std::to_string(seed) + " " +
         program_invocation_short_name + " --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

// Stops at the first seed that fails.
template <class Body>
void for_each_seed(std::uint64_t count, Body&& body) {
  for (const std::uint64_t seed : seeds(count)) {
    SCOPED_TRACE(how_to_replay(seed));
    body(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace farsum
