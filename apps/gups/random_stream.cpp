#include "random_stream.hpp"

#include <array>
#include <bit>

namespace gups {

std::uint64_t random_at(std::uint64_t n) {
  // The length of the sequence after which it repeats.
  constexpr std::uint64_t period = 1317624576693539401u;
  n %= period;
  if (n == 0) return 1;

  // squares[b] is the state 2b steps on; a state's bit b is worth squares[b] once the state is squared.
  std::array<std::uint64_t, 64> squares{};
  std::uint64_t x = 1;
  for (std::uint64_t& square : squares) {
    square = x;
    x = next_random(next_random(x));
  }

  std::uint64_t state = 2;
  for (int bit = static_cast<int>(std::bit_width(n)) - 2; bit >= 0; --bit) {
    std::uint64_t squared = 0;
    for (unsigned b = 0; b < 64; ++b) {
      if ((state >> b) & 1) squared ^= squares[b];
    }
    state = ((n >> bit) & 1) != 0 ? next_random(squared) : squared;
  }
  return state;
}

}  // namespace gups
