#include "collectives/letters.hpp"

#include <cstring>

namespace farsum {

// The length, then the letter.
std::size_t Letters::slot_stride(const Shape& shape) {
  return round_up(sizeof(std::uint64_t) + shape.slot_bytes, cache_line_bytes);
}

std::size_t Letters::footprint(const Shape& shape) {
  return shape.neighbours * (sizeof(Neighbour) + shape.slots * slot_stride(shape));
}

Letters::Letters(std::span<std::byte> block, const Shape& shape) : block_(block), shape_(shape) {}

Letters::Neighbour& Letters::at(std::uint32_t neighbour) const {
  return *reinterpret_cast<Neighbour*>(block_.data() + neighbour * sizeof(Neighbour));
}

std::byte* Letters::slot(std::uint32_t neighbour, std::uint64_t number) const {
  const std::size_t which = std::size_t{neighbour} * shape_.slots + number % shape_.slots;
  return block_.data() + shape_.neighbours * sizeof(Neighbour) + which * slot_stride(shape_);
}

Letters::Filed Letters::file(std::uint32_t from, std::span<const std::byte> letter) {
  LetterHead head;
  if (from >= shape_.neighbours || letter.size() < sizeof head) return Filed::refused;
  std::memcpy(&head, letter.data(), sizeof head);
  const std::span<const std::byte> rest = letter.subspan(sizeof head);
  Neighbour& neighbour = at(from);
  // Relaxed: only who serves writes it.
  const std::uint64_t credited = neighbour.credited.load(std::memory_order_relaxed);
  // No more can have been sent, since that was told, than there are slots.
  if (head.consumed < credited || head.consumed - credited > shape_.slots) return Filed::refused;
  const bool is_credit = head.number == LetterHead::credit_alone;
  if (is_credit) {
    if (!rest.empty()) return Filed::refused;
  } else {
    // Relaxed: only who serves writes it.
    const std::uint64_t number = neighbour.filed.load(std::memory_order_relaxed);
    // Acquire pairs with the release in consumed(): the slot is no longer read.
    const std::uint64_t consumed = neighbour.consumed.load(std::memory_order_acquire);
    if (head.number != number || number - consumed >= shape_.slots || rest.size() > shape_.slot_bytes)
      return Filed::refused;
    std::byte* const into = slot(from, number);
    const std::uint64_t bytes = rest.size();
    std::memcpy(into, &bytes, sizeof bytes);
    if (!rest.empty()) std::memcpy(into + sizeof bytes, rest.data(), rest.size());
    // Publishes the letter; pairs with the acquire in take().
    neighbour.filed.store(number + 1, std::memory_order_release);
  }
  // Relaxed: nothing is read because of it.
  neighbour.credited.store(head.consumed, std::memory_order_relaxed);
  return is_credit ? Filed::credit : Filed::letter;
}

std::optional<std::span<const std::byte>> Letters::take(std::uint32_t from) const {
  const Neighbour& neighbour = at(from);
  // Relaxed: only who walks writes it.
  const std::uint64_t number = neighbour.consumed.load(std::memory_order_relaxed);
  // Acquire pairs with the release in file(): the letter is whole.
  if (neighbour.filed.load(std::memory_order_acquire) == number) return std::nullopt;
  const std::byte* const place = slot(from, number);
  std::uint64_t bytes;
  std::memcpy(&bytes, place, sizeof bytes);
  return std::span(place + sizeof bytes, bytes);
}

void Letters::consumed(std::uint32_t from) {
  Neighbour& neighbour = at(from);
  // Relaxed: only who walks writes it.
  const std::uint64_t number = neighbour.consumed.load(std::memory_order_relaxed);
  // Gives the slot back; pairs with the acquire in file().
  neighbour.consumed.store(number + 1, std::memory_order_release);
}

bool Letters::has_room(std::uint32_t to) const {
  const Neighbour& neighbour = at(to);
  // Relaxed: nothing is read because of it.
  return neighbour.sent - neighbour.credited.load(std::memory_order_relaxed) < shape_.slots;
}

LetterHead Letters::head_of_next(std::uint32_t to) const {
  const Neighbour& neighbour = at(to);
  // Relaxed: only who walks writes it.
  return {.number = neighbour.sent, .consumed = neighbour.consumed.load(std::memory_order_relaxed)};
}

void Letters::sent(std::uint32_t to) {
  ++at(to).sent;
  credit_sent(to);
}

// With a slot that it knows to be free the neighbour can send whatever is waited for here.
std::optional<LetterHead> Letters::head_of_credit(std::uint32_t to) const {
  const LetterHead next = head_of_next(to);
  if (next.consumed - at(to).told < shape_.slots) return std::nullopt;
  return LetterHead{.number = LetterHead::credit_alone, .consumed = next.consumed};
}

void Letters::credit_sent(std::uint32_t to) { at(to).told = head_of_next(to).consumed; }

}  // namespace farsum
