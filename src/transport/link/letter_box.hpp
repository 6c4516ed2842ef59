// The letters of one sender on their way: each a frame of its own, kept until the target has it and the wire has let go
// of it, sent again over a new connection. It keeps its buffers for the next letters, at most a window of them, until
// all are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/link/connection.hpp"
#include "transport/link/fifo.hpp"

namespace farsum::link {

class LetterBox {
 public:
  // The counters are the half's.
  LetterBox(const LinkOptions& options, Connection& connection, LinkCounters& counters)
      : omission_(options.omission), connection_(connection), counters_(counters) {}

  bool is_full() const { return letters_.size() == letters_in_window; }
  bool is_half_full() const { return letters_.size() >= letters_in_window / 2; }
  // Whether the target is known to have received all.
  bool is_empty() const { return letters_.empty(); }
  bool is_quiet() const { return in_wire_ == 0; }

  // Takes a letter made of two parts; false: there are so many already. Where there is no memory, nothing has changed.
  bool post(std::span<const std::byte> head, std::span<const std::byte> body);
  bool is_refused() const { return is_refused_; }  // the last one

  // A connection has opened: what is still here goes over it. No frame of the last one is out.
  void start();
  // The target has all letters below `upto`.
  void acknowledge(std::uint64_t upto) {
    if (upto > acknowledged_) free_below(upto);
  }
  void on_sent(FrameId id);
  void drop_all();              // for good; what the wire holds stays until on_sent
  bool pump(const Told& told);  // sends what was not sent over this connection; whether that was anything

  std::uint64_t sent_upto() const { return sent_upto_; }  // letters that the target can know of

  static bool is_letter(FrameId id) { return (id >> 62) == 1; }

 private:
  struct Letter {
    std::unique_ptr<std::byte[]> bytes;  // the header, then the letter
    std::size_t capacity = 0, size = 0;
    bool in_wire = false, was_sent = false;
  };

  void append(std::span<const std::byte> head, std::span<const std::byte> body);
  void send(Letter& letter, std::uint64_t number, const Told& told);
  void free_below(std::uint64_t upto);
  void free_acknowledged();

  Omission omission_;
  Connection& connection_;
  LinkCounters& counters_;
  Fifo<Letter> letters_;  // by number
  Fifo<Letter> spare_;
  std::uint64_t next_unsent_ = 0, sent_upto_ = 0, acknowledged_ = 0;
  std::size_t in_wire_ = 0;
  bool is_dropped_ = false, is_refused_ = false;
};

}  // namespace farsum::link
