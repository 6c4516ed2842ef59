// One half's frames on their way: numbered records gathered into frames, kept until the peer has them and the wire has
// let go of them, sent again over a new connection; and control frames, one of a kind at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/link/fifo.hpp"
#include "transport/link/link.hpp"

namespace farsum::link {

class Outbox {
 public:
  // What every frame tells besides its records; both only grow.
  struct Told {
    std::uint64_t seen = 0;
    std::uint64_t credit = 0;
    std::uint64_t letters = 0;  // received; to the origin only
  };

  Outbox(const LinkOptions& options, Wire& wire, FrameKind record_kind);

  // Connections. Between start() and stop() frames go out. Records wait for release_records().
  void connect(std::span<const std::byte> address) { wire_.connect(epoch_, address); }
  void disconnect() { wire_.disconnect(epoch_); }
  void start(std::uint32_t epoch);
  void stop() { started_ = records_go_ = false; }
  void release_records() { records_go_ = true; }
  void on_sent(FrameId id);
  bool is_quiet() const { return in_wire_ == 0 && controls_in_wire_ == 0; }

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
  bool holds_unsent() const { return next_unsent_ != frames_.end() && frames_[next_unsent_].records != 0; }
  bool is_in_wire(std::uint64_t frame) const { return frames_.holds(frame) && frames_[frame].in_wire; }
  std::uint64_t next_number() const { return next_number_; }
  std::uint64_t sent_upto() const { return sent_upto_; }  // records that the peer can know of
  std::uint64_t held_bytes() const { return held_bytes_; }

  // The peer has all records below `upto`.
  void acknowledge(std::uint64_t upto);
  void drop_all();                    // nothing is kept any more; what the wire holds stays until on_sent
  std::uint64_t take_freed_charge();  // charges of the frames that were freed since the last call

  // Sends a control frame now, or when the one of its kind that is out has been sent; true: now.
  bool control(FrameKind kind, std::uint64_t first, std::uint64_t stamp, const Told& told,
               std::span<const std::byte> payload = {});
  // Sends what may be sent; whether that was anything.
  bool pump(const Told& told);

  LinkCounters& counters() { return counters_; }
  const LinkCounters& counters() const { return counters_; }

 private:
  struct OutFrame {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0, size = 0;
    std::size_t last_record = 0;  // where it begins
    std::uint64_t first = 0, charge = 0;
    std::uint16_t records = 0;
    bool sealed = false, in_wire = false, was_sent = false;
    std::span<const std::byte> body;
  };
  struct Control {
    FrameHeader header{};
    std::uint64_t first = 0, stamp = 0;
    std::span<const std::byte> payload;
    bool due = false, in_wire = false;
  };

  bool fits(std::size_t bytes) const;
  void make_room(OutFrame& frame, std::size_t bytes);
  bool is_full_frame(std::size_t capacity) const;
  void discard(OutFrame& frame);
  void seal();
  void free_acknowledged();
  void send_frame(OutFrame& frame, std::uint64_t number, const Told& told);
  void send_control(FrameKind kind, const Told& told);
  FrameHeader header_of(FrameKind kind, std::size_t payload_bytes, const Told& told) const;
  void count_sent(FrameKind kind, std::size_t bytes);

  LinkOptions options_;
  Wire& wire_;
  FrameKind record_kind_;
  std::uint32_t epoch_ = 0;
  std::uint64_t key_ = 0;
  bool started_ = false, records_go_ = false, held_ = false;

  Fifo<OutFrame> frames_;
  std::vector<OutFrame> spare_;  // small buffers for the next frames
  std::uint64_t next_unsent_ = 0;
  std::uint64_t next_number_ = 0, sent_upto_ = 0, acknowledged_ = 0;
  std::uint64_t held_bytes_ = 0, freed_charge_ = 0;
  std::uint64_t seen_told_with_records_ = 0;  // for Omission::bare_acks
  std::size_t in_wire_ = 0, controls_in_wire_ = 0;
  std::array<Control, frame_kinds> controls_;
  LinkCounters counters_;
};

}  // namespace farsum::link
