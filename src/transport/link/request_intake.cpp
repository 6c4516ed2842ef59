#include "transport/link/request_intake.hpp"

namespace farsum::link {

bool RequestIntake::knows_early(const Frame& frame) {
  if (!early_.has(frame.header.first)) return false;
  ++counters_.doubles;
  return true;
}

std::optional<std::uint64_t> RequestIntake::charge_of_new(const Frame& frame) const {
  if (frame.header.records == 0 || frame.payload.size() + sizeof(FrameHeader) > max_frame_bytes_) return {};
  if (!holds_whole_records(frame)) return {};
  std::uint64_t sum = 0;
  std::span<const std::byte> rest = frame.payload, message;
  RequestRecord record;
  for (std::uint64_t ticket = frame.header.first; next_record(rest, record, message); ++ticket) {
    if (record.reply_capacity > max_reply_) return {};
    if (ticket >= next_) sum += charge(record.bytes, record.reply_capacity);
  }
  return sum;
}

bool RequestIntake::receive(std::uint64_t ticket) {
  if (ticket >= next_) {
    ++next_;
    return true;
  }
  ++counters_.doubles;
  return false;
}

}  // namespace farsum::link
