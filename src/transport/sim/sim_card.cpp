#include "transport/sim/sim_card.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/sim/sim_world.hpp"

namespace farsum {

void SimCard::fetch_add(Rank origin, std::uint64_t* word, std::uint64_t operand, Answer answer) {
  update(
      origin, reinterpret_cast<std::byte*>(word), sizeof *word, [operand](std::uint64_t old) { return old + operand; },
      std::move(answer));
}

void SimCard::compare_and_swap(Rank origin, std::uint64_t* word, std::uint64_t expected, std::uint64_t desired,
                               Answer answer) {
  update(
      origin, reinterpret_cast<std::byte*>(word), sizeof *word,
      [expected, desired](std::uint64_t old) { return old == expected ? desired : old; }, std::move(answer));
}

void SimCard::update(Rank origin, std::byte* bytes, std::uint8_t size, Change change, Answer answer) {
  const Word word{bytes, size};
  world_.call_after(world_.draw(world_.options().card_latency),
                    [this, origin, word, change = std::move(change), answer = std::move(answer)]() mutable {
                      read_then_write(origin, word, std::move(change), std::move(answer));
                    });
}

// Takes its place behind the card's other operations: reads when they have written.
void SimCard::read_then_write(Rank origin, Word word, Change change, Answer answer) {
  const SimTime begin_ns = std::max(free_at_ns_, world_.now_ns());
  const SimTime gap_ns = world_.draw(world_.options().card_gap);
  // The next one begins a nanosecond later, so that no tie lets it read before this one has written.
  free_at_ns_ = begin_ns + gap_ns + 1;
  world_.call_after(begin_ns - world_.now_ns(),
                    [this, origin, word, gap_ns, change = std::move(change), answer = std::move(answer)] {
                      if (!world_.is_alive(owner_)) {
                        answer_origin(origin, Code::peer_failed, 0, answer);
                        return;
                      }
                      std::uint64_t old = 0;
                      std::memcpy(&old, word.bytes, word.size);
                      world_.call_after(gap_ns, [this, origin, word, old, change, answer] {
                        const std::uint64_t fresh = change(old);
                        std::memcpy(word.bytes, &fresh, word.size);
                        answer_origin(origin, Code::ok, old, answer);
                      });
                    });
}

void SimCard::answer_origin(Rank origin, Code code, std::uint64_t old, Answer answer) {
  world_.call_at_rank(origin, world_.draw(world_.options().card_latency),
                      [this, origin, code, old, answer = std::move(answer)] {
                        answer(code, old);
                        world_.wake_origin(origin);
                      });
}

}  // namespace farsum
