// One half's connection: opened and closed through the wire, an epoch each, with the headers of the frames that go over
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/link/link.hpp"

namespace farsum::link {

// What every frame tells besides its records; all only grow.
struct Told {
  std::uint64_t seen = 0;
  std::uint64_t credit = 0;
  std::uint64_t letters = 0;  // received; to the origin only
};

class Connection {
 public:
  // What is sent goes to the origin, or to the target. The counters are the half's.
  Connection(const LinkOptions& options, Wire& wire, LinkCounters& counters, bool to_origin)
      : options_(options), wire_(wire), counters_(counters), to_origin_(to_origin) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // None is there. `address` as in Wire::connect.
  void open(std::uint32_t epoch, std::span<const std::byte> address);
  void let_data_go() { data_go_ = true; }  // the halves have greeted each other
  void close();                            // by force; where it is closed, or being closed, nothing happens
  // Whether this one was being closed, and is gone now.
  bool on_disconnected(std::uint32_t epoch);

  std::uint32_t epoch() const { return epoch_; }  // of the latest; 0: there was none
  bool is_there() const { return is_there_; }     // also while it is being closed
  bool is_up() const { return is_there_ && !is_closing_; }
  bool takes_data() const { return is_up() && data_go_; }  // records and letters

  FrameHeader header_of(FrameKind kind, std::size_t payload_bytes, const Told& told) const;
  FrameHeader header_of_records(FrameKind kind, std::size_t payload_bytes, std::uint16_t records, std::uint64_t first,
                                const Told& told);
  FrameHeader header_of_control(FrameKind kind, std::size_t payload_bytes, std::uint64_t first, std::uint64_t stamp,
                                const Told& told) const;
  // Sends a frame whose first piece begins with its header, as Wire::send does, and counts it.
  void send(FrameId id, FrameKind kind, std::span<const std::span<const std::byte>> pieces);

 private:
  LinkOptions options_;
  Wire& wire_;
  LinkCounters& counters_;
  bool to_origin_;
  bool is_there_ = false, is_closing_ = false, data_go_ = false;
  std::uint32_t epoch_ = 0;
  std::uint64_t key_ = 0;
  std::uint64_t seen_told_with_records_ = 0;  // for Omission::bare_acks
};

}  // namespace farsum::link
