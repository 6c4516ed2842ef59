#include "transport/link/connection.hpp"

namespace farsum::link {

void Connection::open(std::uint32_t epoch, std::span<const std::byte> address) {
  epoch_ = epoch;
  key_ = key_of(options_.secret, options_.me, options_.peer, epoch, to_origin_);
  is_there_ = true;
  data_go_ = false;
  ++counters_.connections;
  wire_.connect(epoch, address);
}

void Connection::close() {
  if (!is_up()) return;
  is_closing_ = true;
  wire_.disconnect(epoch_);
}

bool Connection::on_disconnected(std::uint32_t epoch) {
  if (epoch != epoch_ || !is_closing_) return false;
  is_there_ = is_closing_ = false;
  return true;
}

FrameHeader Connection::header_of(FrameKind kind, std::size_t payload_bytes, const Told& told) const {
  FrameHeader header{};
  header.magic_word = magic;
  header.epoch = epoch_;
  header.version = wire_version;
  header.kind = kind;
  header.from = options_.me;
  header.to = options_.peer;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  header.key = key_;
  header.seen = told.seen;
  header.credit = told.credit;
  return header;
}

FrameHeader Connection::header_of_records(FrameKind kind, std::size_t payload_bytes, std::uint16_t records,
                                          std::uint64_t first, const Told& told) {
  FrameHeader header = header_of(kind, payload_bytes, told);
  header.records = records;
  header.first = first;
  if (to_origin_) received_letters(header) = told.letters;
  seen_told_with_records_ = told.seen;
  return header;
}

FrameHeader Connection::header_of_control(FrameKind kind, std::size_t payload_bytes, std::uint64_t first,
                                          std::uint64_t stamp, const Told& told) const {
  FrameHeader header = header_of(kind, payload_bytes, told);
  header.first = first;
  header.stamp = stamp;
  if (to_origin_) received_letters(header) = told.letters;
  if (options_.omission == Omission::bare_acks) header.seen = seen_told_with_records_;
  return header;
}

void Connection::send(FrameId id, FrameKind kind, std::span<const std::span<const std::byte>> pieces) {
  LinkCounters::Traffic& traffic = counters_.sent[static_cast<std::size_t>(kind)];
  ++traffic.frames;
  for (const std::span<const std::byte> piece : pieces) traffic.bytes += piece.size();
  wire_.send(id, epoch_, pieces);
}

}  // namespace farsum::link
