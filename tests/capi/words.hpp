// A window of words, with this rank's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "farsum.h"
#include "rank_processes.hpp"

namespace farsum::test {

struct Words {
  farsum_window window{};
  std::uint64_t* mine = nullptr;
};

// Collective over the world.
inline Words allocate_words(std::size_t count, const farsum_window_options* options = nullptr) {
  Words words;
  void* memory = nullptr;
  EXPECT_FINE(farsum_window_allocate(farsum_world(), count * 8, options, &memory, &words.window));
  words.mine = static_cast<std::uint64_t*>(memory);
  return words;
}

}  // namespace farsum::test
