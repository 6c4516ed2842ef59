// The letters that have come from one origin: each is handed over once and in order. Those that come before their turn
// are kept, less than a window of them.
#pragma once

#include <cstdint>

#include "transport/link/early_frames.hpp"
#include "transport/link/link.hpp"
#include "transport/transport.hpp"

namespace farsum::link {

class LetterIntake {
 public:
  // Without a handler letters are malformed. The counters are the half's.
  LetterIntake(const LinkOptions& options, LetterHandler* handler, LinkCounters& counters)
      : peer_(options.peer), omission_(options.omission), handler_(handler), counters_(counters) {}

  Fault on_letter(const Frame& frame);
  void forget_early() { early_.clear(); }

  std::uint64_t next() const { return next_; }  // all smaller ones were received
  bool is_asked() const { return is_asked_; }   // what was received
  void note_told() { is_asked_ = false; }
  std::uint64_t early_bytes() const { return early_.bytes(); }

 private:
  void hand_over(const Frame& frame);

  Rank peer_;
  Omission omission_;
  LetterHandler* handler_;
  LinkCounters& counters_;
  std::uint64_t next_ = 0;
  bool is_asked_ = false;
  EarlyFrames early_;
};

}  // namespace farsum::link
