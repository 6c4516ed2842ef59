#include "collectives/letter_walk.hpp"

#include <utility>

#include "trees/walk.hpp"

namespace farsum {
namespace {

class LetterCarrier final : public trees::Carrier {
 public:
  LetterCarrier(const LetterRound& round, LetterContent& content) : round_(round), content_(content) {}

  bool send(const trees::Step& step) override {
    if (begins(step)) held_ = content_.held(step);
    if (!round_.post.try_send(peer_, round_.team, round_.number, held_, sent_)) return false;
    // The others are about to do the same: what they send is likely to be close, and nothing else tells of it.
    round_.waiter.note_come();
    return true;
  }
  bool take(const trees::Step& step) override {
    begins(step);
    const auto use = [&](std::span<const std::byte> letter) { status_ = content_.take(step, letter); };
    return round_.post.take(peer_, round_.team, round_.number, use) && status_.is_ok();
  }

  bool has_failed() const { return !status_.is_ok() || round_.post.has_failed(); }
  Status failure(const char* doing) { return status_.is_ok() ? round_.post.failure(doing) : std::move(status_); }

 private:
  // False: it has been tried before.
  bool begins(const trees::Step& step) {
    if (step_ == &step) return false;
    step_ = &step;
    peer_ = round_.first_of(step.peer);
    sent_ = 0;
    return true;
  }

  const LetterRound& round_;
  LetterContent& content_;
  // The current step; whom it is with; of one that sends, the letter, and how much of it has left.
  const trees::Step* step_ = nullptr;
  Rank peer_ = 0;
  std::span<const std::byte> held_;
  std::size_t sent_ = 0;
  Status status_;
};

}  // namespace

// A wait for each letter that has not come: each is looked for as long as the first.
Status walk_letters(const LetterRound& round, std::span<const trees::Step> steps, LetterContent& content,
                    const char* doing) {
  LetterCarrier carrier(round, content);
  std::size_t at = 0;
  bool has_ended = false;
  while (!has_ended) {
    const std::size_t from = at;
    const auto moves = [&] {
      has_ended = trees::advance(steps, at, carrier);
      return has_ended || at != from || carrier.has_failed();
    };
    if (Status status = round.waiter.wait_served(round.waiter.own_events(), moves, doing); !status.is_ok())
      return status;
    if (!has_ended && carrier.has_failed()) return carrier.failure(doing);
  }
  return {};
}

}  // namespace farsum
