#include "transport/link/letter_box.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace farsum::link {
namespace {

constexpr FrameId letter_bit = FrameId{1} << 62;

}  // namespace

bool LetterBox::post(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (is_full()) {
    is_refused_ = true;
    return false;
  }
  append(head, body);
  is_refused_ = false;
  return true;
}

void LetterBox::append(std::span<const std::byte> head, std::span<const std::byte> body) {
  letters_.make_room();
  spare_.make_room(letters_in_window - spare_.size());  // what is given back asks for no memory
  const std::size_t size = sizeof(FrameHeader) + head.size() + body.size();
  Letter letter;
  if (!spare_.empty() && spare_.front().capacity >= size) letter = std::exchange(spare_.front(), {});
  if (letter.bytes == nullptr) {
    letter.bytes = std::make_unique_for_overwrite<std::byte[]>(size);
    letter.capacity = size;
  }
  // A spare that was too short makes way for the longer one.
  if (!spare_.empty()) spare_.pop_front();
  letter.size = size;
  std::byte* const at = letter.bytes.get() + sizeof(FrameHeader);
  if (!head.empty()) std::memcpy(at, head.data(), head.size());
  if (!body.empty()) std::memcpy(at + head.size(), body.data(), body.size());
  letters_.push_back(std::move(letter));
}

void LetterBox::start() {
  free_acknowledged();
  next_unsent_ = letters_.begin();
}

void LetterBox::free_below(std::uint64_t upto) {
  acknowledged_ = upto;
  free_acknowledged();
}

void LetterBox::free_acknowledged() {
  while (!letters_.empty() && letters_.begin() < acknowledged_ && !letters_.front().in_wire) {
    Letter letter = std::move(letters_.front());
    letters_.pop_front();
    letter.was_sent = false;
    if (!is_dropped_ && spare_.size() < letters_in_window) spare_.push_back(std::move(letter));
  }
  next_unsent_ = std::max(next_unsent_, letters_.begin());
}

void LetterBox::on_sent(FrameId id) {
  const std::uint64_t number = id & ~letter_bit;
  letters_[number].in_wire = false;
  --in_wire_;
  if (omission_ == Omission::keep_letter_until_received) acknowledged_ = std::max(acknowledged_, number + 1);
  free_acknowledged();
}

void LetterBox::drop_all() {
  is_dropped_ = true;
  spare_.clear();
  next_unsent_ = letters_.end();
  acknowledge(letters_.end());
}

void LetterBox::send(Letter& letter, std::uint64_t number, const Told& told) {
  FrameHeader header = connection_.header_of(FrameKind::letters, letter.size - sizeof header, told);
  header.first = number;
  header.stamp = asks_what_was_received(number) && omission_ != Omission::asking_letters ? 1 : 0;
  std::memcpy(letter.bytes.get(), &header, sizeof header);
  if (letter.was_sent) ++counters_.replayed;
  letter.in_wire = letter.was_sent = true;
  ++in_wire_;
  sent_upto_ = std::max(sent_upto_, number + 1);
  const std::span<const std::byte> piece(letter.bytes.get(), letter.size);
  connection_.send(letter_bit | number, FrameKind::letters, std::span(&piece, 1));
}

bool LetterBox::pump(const Told& told) {
  if (!connection_.takes_data()) return false;
  bool any = false;
  for (; next_unsent_ != letters_.end(); any = true) {
    const std::uint64_t number = next_unsent_++;
    send(letters_[number], number, told);
  }
  return any;
}

}  // namespace farsum::link
