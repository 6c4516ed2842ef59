// A short run of every fuzz target without a fuzzing engine: its corpus, and inputs mutated from it by a seed.
#include <gtest/gtest.h>

#include "sim/seeds.hpp"
#include "targets.hpp"
#include "test_length.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum::fuzz {
namespace {

constexpr std::size_t inputs_a_seed = 400, most_bytes = 600;

void mutate(std::vector<std::uint8_t>& input, SimRandom& random) {
  const std::size_t at = random.below(input.size() + 1);
  switch (random.below(5)) {
    case 0:
      input.insert(input.begin() + at, random.next() & 0xff);
      break;
    case 1:
      if (at < input.size()) input.erase(input.begin() + at);
      break;
    case 2:
      if (at < input.size()) input[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
      break;
    case 3:  // a part of it once more
      if (input.size() < most_bytes) {
        const std::vector<std::uint8_t> part(input.begin() + at, input.end());
        input.insert(input.end(), part.begin(), part.end());
      }
      break;
    default:
      for (std::uint64_t left = random.below(16); left != 0; --left) input.push_back(random.next() & 0xff);
  }
}

// In full in make test-all: each target takes 40,000 inputs.
TEST(FuzzTargets, take_no_harm_from_hostile_bytes) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(target.name);
    for (const std::vector<std::uint8_t>& input : target.corpus()) target.run(input);
    for_each_seed(test::in_full_or(100, 5), [&](std::uint64_t seed) {
      SimRandom random(seed);
      std::vector<std::vector<std::uint8_t>> pool = target.corpus();
      for (std::size_t i = 0; i < inputs_a_seed; ++i) {
        std::vector<std::uint8_t> input = pool[random.below(pool.size())];
        for (std::uint64_t left = 1 + random.below(8); left != 0; --left) mutate(input, random);
        if (input.size() > most_bytes) input.resize(most_bytes);
        target.run(input);
        pool.size() < 32 ? pool.push_back(input) : void(pool[4 + random.below(28)] = input);
      }
    });
  }
}

}  // namespace
}  // namespace farsum::fuzz
