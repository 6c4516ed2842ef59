// One half's records on their way: numbered and gathered into frames, which are kept until the peer has them and the
// wire has let go of them, and sent again over a new connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/link/connection.hpp"
#include "transport/link/fifo.hpp"
#include "transport/link/frame_buffers.hpp"

namespace farsum::link {

class Outbox {
 public:
  // The counters are the half's.
  Outbox(const LinkOptions& options, Connection& connection, LinkCounters& counters, FrameKind record_kind);

  void start();  // a connection has opened: what is still here goes over it
  void on_sent(FrameId id);
  bool is_quiet() const { return in_wire_ == 0; }

  // Records: room for one, then commit() of what it became. A held frame waits for let_go().
  std::span<std::byte> reserve(std::size_t bytes, std::size_t borrowed_bytes = 0);
  std::uint64_t commit(std::size_t bytes, std::uint64_t charge);  // returns the number of the frame
  void append_borrowed(std::span<const std::byte> body);  // belongs to the record last committed; ends the frame
  std::span<std::byte> last_record();                     // of the frame being gathered; empty where there is none
  bool gathers_first_record() const { return has_gathered() && frames_.back().records == 0; }
  void hold() { held_ = true; }
  void let_go() { held_ = false; }
  bool holds_back() const { return held_ && gathered_records() != 0; }
  std::size_t gathered_records() const { return has_gathered() ? frames_.back().records : 0; }
  std::size_t frames_out() const { return frames_.size() - (has_gathered() ? 1 : 0); }
  bool has_gathered() const { return !frames_.empty() && !frames_.back().sealed; }
  bool holds_frames() const { return !frames_.empty(); }
  bool holds_full() const { return next_unsent_ != frames_.end() && frames_[next_unsent_].sealed; }
  bool is_in_wire(std::uint64_t frame) const { return frames_.holds(frame) && frames_[frame].in_wire; }
  std::uint64_t sent_upto() const { return sent_upto_; }  // records that the peer can know of
  std::uint64_t held_bytes() const { return held_bytes_; }

  // The peer has all records below `upto`.
  void acknowledge(std::uint64_t upto);
  void drop_all();                    // nothing is kept any more; what the wire holds stays until on_sent
  std::uint64_t take_freed_charge();  // charges of the frames that were freed since the last call

  bool pump(const Told& told);  // sends what may be sent; whether that was anything

 private:
  struct OutFrame {
    FrameBuffers::Buffer buffer;
    std::size_t size = 0;
    std::size_t last_record = 0;  // where it begins
    std::uint64_t first = 0, charge = 0;
    std::uint16_t records = 0;
    bool sealed = false, in_wire = false, was_sent = false;
    std::span<const std::byte> body;
  };

  bool fits(std::size_t bytes) const;
  void seal();
  void free_acknowledged();
  void send_frame(OutFrame& frame, std::uint64_t number, const Told& told);

  LinkOptions options_;
  Connection& connection_;
  LinkCounters& counters_;
  FrameKind record_kind_;
  bool held_ = false;

  Fifo<OutFrame> frames_;
  FrameBuffers buffers_;
  std::uint64_t next_unsent_ = 0;
  std::uint64_t next_number_ = 0, sent_upto_ = 0, acknowledged_ = 0;
  std::uint64_t held_bytes_ = 0, freed_charge_ = 0;
  std::size_t in_wire_ = 0;
};

}  // namespace farsum::link
