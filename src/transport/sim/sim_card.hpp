// A simulated network card's atomics on words of one rank's memory. Operations of one card are atomic to each other,
// and to nothing else: between a card's read and its write of a word, the CPU's update of that word is lost, as on real
// cards that promise atomicity to themselves only. Which executor may touch which word is the atomicity domain's
// business, not the card's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/status.hpp"
#include "base/units.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum {

class SimWorld;

class SimCard {
 public:
  // Told at the origin: Code::peer_failed when the owner died first, and what the word held before.
  using Answer = std::function<void(Code code, std::uint64_t old)>;

  SimCard(SimWorld& world, Rank owner) : world_(world), owner_(owner) {}

  using Change = std::function<std::uint64_t(std::uint64_t)>;

  // `word` has 4 or 8 bytes; the old value comes in the low ones, and those of the new one count.
  void update(Rank origin, std::byte* word, std::uint8_t bytes, Change change, Answer answer);
  void fetch_add(Rank origin, std::uint64_t* word, std::uint64_t operand, Answer answer);
  void compare_and_swap(Rank origin, std::uint64_t* word, std::uint64_t expected, std::uint64_t desired, Answer answer);

 private:
  struct Word {
    std::byte* bytes;
    std::uint8_t size;
  };

  void read_then_write(Rank origin, Word word, Change change, Answer answer);
  void answer_origin(Rank origin, Code code, std::uint64_t old, Answer answer);

  SimWorld& world_;
  Rank owner_;
  SimTime free_at_ns_ = 0;
};

}  // namespace farsum
