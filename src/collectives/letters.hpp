// The slots of a team's letters on one node, and the credit for those of its neighbours: what came and was not
// consumed, what may be sent. It sends nothing and wakes nobody: its caller does (docs/internals/letters.md). Owner:
// collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "os/futex.hpp"

namespace farsum {

// Begins each letter of a team between two nodes.
struct LetterHead {
  static constexpr std::uint64_t credit_alone = ~std::uint64_t{0};

  std::uint64_t number;    // of the letters of its channel to this node: 0, 1, 2, ...; credit_alone: it takes no slot
  std::uint64_t consumed;  // so many of this node's were

  bool operator==(const LetterHead&) const = default;
};

struct LettersShape {
  std::uint32_t neighbours = 0;
  // Of each channel: two rounds deep, and more where one end may be further ahead.
  std::uint32_t slots = 2;
  // Of a letter without its head: at most what the transport carries to each of them (max_letter_bytes), less that.
  std::size_t slot_bytes = 4032;
  // So many channels a neighbour, for calls that are under way at once.
  std::uint32_t places = 1;

  std::uint32_t channels() const { return neighbours * places; }
  bool operator==(const LettersShape&) const = default;
};

// A channel is a place of a neighbour. In each, letters are taken in the order of their numbers; they may be filed in
// any, so that several ranks of the neighbour might send them, over roads that know nothing of each other. One at a
// time files, who serves; and one at a time walks the steps, whoever holds the claim to them: both at once, in one
// process or two. Capacity: `slots` letters of each channel. Whoever dies in a call leaves the letter as it was before:
// not filed, or not consumed.
template <class Policy>
class BasicLetters {
 public:
  using Shape = LettersShape;
  // What a letter has at most to lie in the line that says that it is there.
  static constexpr std::size_t short_bytes = 48;

  // What of a block is zeroed lies first, so that nobody touches a page of the slots that need none.
  static std::size_t zeroed_bytes(const Shape& shape) {
    return shape.channels() * (sizeof(Channel) + shape.slots * sizeof(Head));
  }
  static std::size_t footprint(const Shape& shape) {
    return zeroed_bytes(shape) + shape.channels() * shape.slots * slot_stride(shape);
  }
  // The block outlives it, as long as footprint() and aligned to two cache lines; one whose first bytes are zeroed is a
  // block whose letters all are to come. Everyone gives one shape.
  BasicLetters(std::byte* block, const Shape& shape) : block_(block), shape_(shape) {}

  const Shape& shape() const { return shape_; }
  std::uint32_t channel(std::uint32_t neighbour, std::uint32_t place) const {
    return place * shape_.neighbours + neighbour;
  }

  // ---- who serves

  enum class Filed : std::uint8_t {
    letter,   // it waits for take()
    credit,   // it told of credit only
    refused,  // nobody who keeps the rules sends it, and nothing was done
  };
  Filed file(std::uint32_t channel, const LetterHead& head, std::span<const std::byte> content) {
    if (channel >= shape_.channels()) return Filed::refused;
    Channel& of = at(channel);
    // Relaxed: only who serves writes it.
    const std::uint64_t credited = of.credited.load(std::memory_order_relaxed);
    // No more can have been sent, since that was told, than there are slots. Less is told by a letter that was
    // overtaken. How much was sent is not known here, for who walks counts it: who tells of more than that overruns its
    // own slots, and nobody else's.
    const bool tells_more = head.consumed > credited;
    if (tells_more && head.consumed - credited > shape_.slots) return Filed::refused;
    const bool is_credit = head.number == LetterHead::credit_alone;
    if (is_credit ? !content.empty() : !has_filed(channel, head.number, content)) return Filed::refused;
    // Relaxed: nothing is read because of it.
    if (tells_more) of.credited.store(head.consumed, std::memory_order_relaxed);
    return is_credit ? Filed::credit : Filed::letter;
  }

  // ---- who walks

  // The letter that is next by its number, if it was filed, without its head; it stays until consumed().
  std::optional<std::span<const std::byte>> take(std::uint32_t channel) const {
    // Relaxed: only who walks writes it.
    const std::uint64_t number = at(channel).consumed.load(std::memory_order_relaxed);
    const Head& head = head_of(channel, number);
    // Acquire pairs with the release in has_filed(): the letter is whole.
    if (head.stamp.load(std::memory_order_acquire) != number + 1) return std::nullopt;
    Policy::reads(&head.bytes, sizeof head.bytes);
    const std::size_t bytes = head.bytes;
    const std::byte* const content = content_of(channel, number, bytes);
    Policy::reads(content, bytes);
    return std::span(content, bytes);
  }
  // That one was combined or copied.
  void consumed(std::uint32_t channel) {
    Channel& of = at(channel);
    // Relaxed: only who walks writes it.
    const std::uint64_t number = of.consumed.load(std::memory_order_relaxed);
    // Gives the slot back; pairs with the acquire in has_filed().
    of.consumed.store(number + 1, std::memory_order_release);
  }

  // Whether the next letter finds a slot there.
  bool has_room(std::uint32_t channel) const {
    const Channel& of = at(channel);
    // Relaxed: nothing is read because of it. A neighbour that lies may have told of more than was sent.
    const std::uint64_t credited = of.credited.load(std::memory_order_relaxed);
    return of.sent < credited || of.sent - credited < shape_.slots;
  }
  // Of the next letter, which has room; and that it was taken by the transport.
  LetterHead head_of_next(std::uint32_t channel) const {
    return {.number = at(channel).sent, .consumed = credit(channel).consumed};
  }
  void sent(std::uint32_t channel) {
    ++at(channel).sent;
    credit_sent(channel);
  }
  // Whether the neighbour is to be told of credit alone: half of its slots may be taken as it knows, or both of two. To
  // be asked for after consumed(), when no letter goes there next; and that it was told, or will be.
  bool owes_credit(std::uint32_t channel) const {
    const std::uint32_t most_untold = shape_.slots < 4 ? shape_.slots : shape_.slots / 2;
    return credit(channel).consumed - at(channel).told >= most_untold;
  }
  void credit_sent(std::uint32_t channel) { at(channel).told = credit(channel).consumed; }
  // The head of a letter that tells of credit alone. Any thread may ask, also while somebody walks: what is told only
  // grows.
  LetterHead credit(std::uint32_t channel) const {
    // Relaxed: who walks has read what it says is consumed, and the way of the letter orders that before what comes.
    return {.number = LetterHead::credit_alone, .consumed = at(channel).consumed.load(std::memory_order_relaxed)};
  }

 private:
  using Word = typename Policy::template Atomic<std::uint64_t>;

  struct alignas(2 * cache_line_bytes) Channel {
    // Written by who serves: of this node's letters, so many were consumed, as the neighbour has told.
    Word credited;
    // Written by who walks; what is not atomic goes from one to the next by the claim.
    alignas(cache_line_bytes) Word consumed;  // of the neighbour's letters
    std::uint64_t told;                       // of these, as it knows
    std::uint64_t sent;                       // of this node's
  };
  // Written by who serves.
  struct alignas(cache_line_bytes) Head {
    Word stamp;  // one more than the number of the letter that lies here last; 0: there was none
    std::uint64_t bytes;
    std::byte content[short_bytes];
  };
  static_assert(sizeof(Head) == cache_line_bytes);

  static std::size_t slot_stride(const Shape& shape) {
    return shape.slot_bytes <= short_bytes ? 0 : round_up(shape.slot_bytes, cache_line_bytes);
  }
  Channel& at(std::uint32_t channel) const {
    return *reinterpret_cast<Channel*>(block_ + std::size_t{channel} * sizeof(Channel));
  }
  std::size_t slot_of(std::uint32_t channel, std::uint64_t number) const {
    return std::size_t{channel} * shape_.slots + number % shape_.slots;
  }
  Head& head_of(std::uint32_t channel, std::uint64_t number) const {
    std::byte* const heads = block_ + shape_.channels() * sizeof(Channel);
    return *reinterpret_cast<Head*>(heads + slot_of(channel, number) * sizeof(Head));
  }
  std::byte* content_of(std::uint32_t channel, std::uint64_t number, std::size_t bytes) const {
    if (bytes <= short_bytes) return head_of(channel, number).content;
    return block_ + zeroed_bytes(shape_) + slot_of(channel, number) * slot_stride(shape_);
  }
  // False: no slot is free for one of that number, or it has come before, or it is too long.
  bool has_filed(std::uint32_t channel, std::uint64_t number, std::span<const std::byte> content) {
    // Acquire pairs with the release in consumed(): the slot is no longer read.
    const std::uint64_t consumed = at(channel).consumed.load(std::memory_order_acquire);
    if (number - consumed >= shape_.slots || content.size() > shape_.slot_bytes) return false;
    Head& head = head_of(channel, number);
    // Relaxed: only who serves writes it.
    if (head.stamp.load(std::memory_order_relaxed) == number + 1) return false;
    std::byte* const into = content_of(channel, number, content.size());
    Policy::writes(&head.bytes, sizeof head.bytes);
    Policy::writes(into, content.size());
    head.bytes = content.size();
    std::copy(content.begin(), content.end(), into);
    // Publishes the letter; pairs with the acquire in take().
    head.stamp.store(number + 1, std::memory_order_release);
    return true;
  }

  std::byte* block_;
  Shape shape_;
};

using Letters = BasicLetters<SystemAtomics>;

}  // namespace farsum
