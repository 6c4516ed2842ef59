// The frames of a link: any bytes to the decoders; frames with a right key but hostile contents to both halves.
#include <cstring>

#include "hostile.hpp"
#include "targets.hpp"
#include "transport/link/made_frames.hpp"
#include "transport/link/receiver.hpp"
#include "transport/link/sender.hpp"

namespace farsum::fuzz {
namespace {

using namespace farsum::link;

// A frame to a half whose key and lengths are right and whose fields are the input's.
Bytes hostile_frame(Reader& input, FrameKind kind, Rank from, Rank to) {
  const std::uint8_t shape = input.byte();
  FrameHeader header = header_of(kind, from, to, (shape & 1) != 0 ? 1 + (input.byte() & 3) : 1);
  if ((shape & 2) != 0) header.first = input.number();
  if ((shape & 4) != 0) header.seen = input.number();
  if ((shape & 8) != 0) header.credit = input.number();
  if ((shape & 16) != 0) header.stamp = input.number();
  Bytes payload;
  if (kind == FrameKind::requests) {
    for (int left = shape >> 5; left != 0; --left, ++header.records) {
      const Bytes one = record(input.byte() * 4u, input.byte() * 8u, input.byte() & 3);
      payload.insert(payload.end(), one.begin(), one.end());
    }
  } else if (kind == FrameKind::replies) {
    for (int left = shape >> 5; left != 0; --left, ++header.records) {
      const Bytes one = entry(input.number(), 1 + (input.byte() & 3), input.byte() & 15, input.byte() & 31);
      payload.insert(payload.end(), one.begin(), one.end());
    }
  } else if (kind == FrameKind::hello) {
    payload = input.bytes(shape >> 5);
  } else if (kind == FrameKind::letters) {
    payload.resize(input.byte() * 20u);
  }
  const std::uint8_t damage = input.byte();
  if (!payload.empty() && (damage & 15) == 15) payload[(damage >> 4) % payload.size()] = std::byte{input.byte()};
  return bytes_of(header, payload);
}

constexpr FrameKind to_target[] = {FrameKind::requests, FrameKind::requests, FrameKind::seen, FrameKind::ping,
                                   FrameKind::hello,    FrameKind::requests, FrameKind::bye,  FrameKind::letters};
constexpr FrameKind to_origin[] = {FrameKind::replies, FrameKind::replies, FrameKind::pong,    FrameKind::recall,
                                   FrameKind::replies, FrameKind::bye_ack, FrameKind::refused, FrameKind::hello_ack};

// Checks tickets, and answers in all ways that there are; and takes letters.
class Engine : public RequestHandler, public LetterHandler {
 public:
  Served on_request(Rank, std::span<const std::byte> message, std::span<std::byte> room, ReplyToken token) override {
    if (!is_again_) demand(token.ticket == next_++);
    for (const std::byte byte : message) sum += static_cast<std::uint64_t>(byte);
    for (std::byte& byte : room) byte = std::byte{1};
    is_again_ = message.size() % 16 == 4 && !is_again_;
    if (is_again_) return {Served::Kind::again, Code::ok, 0};
    if (message.size() % 16 != 8) return {Served::Kind::done, Code::ok, static_cast<std::uint32_t>(room.size())};
    later.push_back(token.ticket);
    return {Served::Kind::later, Code::ok, 0};
  }

  void on_letter(Rank, std::span<const std::byte> letter) noexcept override {
    demand(letter.size() <= max_letter_bytes);
    for (const std::byte byte : letter) sum += static_cast<std::uint64_t>(byte);
  }

  std::vector<std::uint64_t> later;
  std::uint64_t sum = 0;

 private:
  std::uint64_t next_ = 0;
  bool is_again_ = false;
};

std::uint64_t malformed_or_stale(const LinkCounters& counters) {
  return counters.malformed + counters.stale + counters.before_hello;
}

void check_entries(Frame frame) {
  std::span<const std::byte> data;
  RequestRecord a_record;
  std::span<const std::byte> rest = frame.payload;
  while (next_record(rest, a_record, data)) demand(data.size() == a_record.bytes);
  ReplyEntry an_entry;
  rest = frame.payload;
  while (next_entry(rest, an_entry, data)) demand(data.size() == an_entry.bytes);
  (void)holds_whole_records(frame);
  (void)holds_whole_entries(frame);
}

// A frame is obeyed, or counted as what is wrong with it.
template <class Half, class Context>
void feed(Half& half, const Bytes& frame, Context&& context) {
  const std::uint64_t before = malformed_or_stale(half.counters());
  const Fault fault = half.on_frame(frame_of(frame), context);
  demand((fault == Fault::none) == (before == malformed_or_stale(half.counters())));
}

}  // namespace

void link_frame(Input input) {
  const auto* const begin = reinterpret_cast<const std::byte*>(input.data());
  Bytes bytes(begin, begin + input.size());
  Frame frame;
  for (const bool with_key : {false, true}) {
    if (with_key && bytes.size() >= sizeof(FrameHeader)) {
      FrameHeader header;
      std::memcpy(&header, bytes.data(), sizeof header);
      header.key = key_of(secret_of_tests(), header.from, header.to, header.epoch, goes_to_origin(header.kind));
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    if (decode(bytes, secret_of_tests(), 1, frame) == Fault::none) {
      demand(frame.payload.size() + sizeof(FrameHeader) == bytes.size() && frame.header.to == 1);
      check_entries(frame);
    }
  }
}

void link_receiver(Input input) {
  Reader reader(input);
  CreditPool pool(1 << 16, 8);
  RecordingWire wire;
  Engine engine;
  ReceiverOptions options;
  options.me = 1;
  options.secret = secret_of_tests();
  options.letters = &engine;
  LinkReceiver receiver(options, wire, pool);
  std::uint32_t closed = 0;
  receiver.on_frame(frame_of(bytes_of(header_of(FrameKind::hello, 0, 1))), engine);
  while (!reader.empty()) {
    const std::uint8_t action = reader.byte();
    if (action < 192) {
      feed(receiver, hostile_frame(reader, to_target[action & 7], 0, 1), engine);
    } else if (action < 208) {
      receiver.serve_parked(engine, 1 + (action & 3));
    } else if (action < 224) {
      wire.let_go([&](FrameId id) { receiver.on_sent(id, true); });
    } else if (action < 232 && !engine.later.empty()) {
      receiver.complete(engine.later.back(), Code::ok, {});
      engine.later.pop_back();
    } else if (wire.disconnected > closed) {
      wire.let_go([&](FrameId id) { receiver.on_sent(id, false); });
      receiver.on_disconnected(closed = wire.disconnected);
    }
    receiver.end_turn();
    pool.hand_out();
    demand(receiver.is_closed() || receiver.held_bytes() <= receiver.granted_bytes());
    demand(receiver.early_letter_bytes() <= most_early_letter_bytes);
    demand(pool.used() <= pool.total());
  }
}

void link_sender(Input input) {
  Reader reader(input);
  RecordingWire wire;
  SenderOptions options;
  options.peer = 1;
  options.secret = secret_of_tests();
  std::vector<Bytes> places;
  std::vector<std::size_t> capacities;  // by ticket
  LinkSender sender(options, wire);
  sender.open(0);
  FrameHeader ack = header_of(FrameKind::hello_ack, 1, 0);
  ack.credit = 1 << 16;
  ack.stamp = wire.sent.back().header.stamp;
  sender.on_frame(frame_of(bytes_of(ack)), 0);
  std::uint64_t now = 0, posted = 0, taken = 0;
  std::uint32_t closed = 0;
  const Bytes body(64);
  while (!reader.empty()) {
    const std::uint8_t action = reader.byte();
    now += 1000;
    if (action < 144) {
      feed(sender, hostile_frame(reader, to_origin[action & 7], 1, 0), now);
    } else if (action < 208) {
      Post post;
      places.emplace_back(action & 31);
      post.body = std::span(body).first(action & 63);
      post.reply_capacity = action & 31;
      if ((action & 1) != 0) post.reply_into = places.back();
      post.borrow_body = (action & 2) != 0;
      post.may_wait = (action & 4) != 0;
      post.may_hold = (action & 8) != 0;
      if (const auto ticket = sender.post(post, now)) {
        demand(*ticket == posted++);
        capacities.push_back(post.reply_capacity);
      }
    } else if (action < 210) {
      sender.flush(now);
    } else if (action < 212) {
      sender.post_letter(std::span(body).first(8), body, now);
    } else if (action < 216) {
      sender.take_replies([&](std::uint64_t ticket, Code, std::span<const std::byte> data) {
        demand(ticket < posted && data.size() <= capacities[ticket]);
        ++taken;
      });
    } else if (action < 232) {
      wire.let_go([&](FrameId id) { sender.on_sent(id, true, now); });
    } else if (action < 240) {
      sender.tick(now += std::uint64_t{reader.byte()} << 26);
    } else if (wire.disconnected > closed) {
      wire.let_go([&](FrameId id) { sender.on_sent(id, false, now); });
      sender.on_disconnected(closed = wire.disconnected, now);
    }
  }
  // Each request is answered once, by the target or by its end.
  sender.give_up(Code::peer_failed);
  wire.let_go([&](FrameId id) { sender.on_sent(id, false, now); });
  sender.take_replies([&](std::uint64_t, Code, std::span<const std::byte>) { ++taken; });
  demand(taken == posted && sender.is_quiet() && !sender.has_unreceived_letters());
}

namespace {

using Inputs = std::vector<std::vector<std::uint8_t>>;

std::vector<std::uint8_t> raw(const Bytes& bytes) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {begin, begin + bytes.size()};
}

Inputs honest_frames() {
  FrameHeader requests = header_of(FrameKind::requests, 0, 1);
  requests.records = 1;
  FrameHeader replies = header_of(FrameKind::replies, 0, 1);
  replies.records = 1;
  return {raw(bytes_of(requests, record(40, 8))), raw(bytes_of(replies, entry(0, 1, 0, 8))),
          raw(bytes_of(header_of(FrameKind::hello, 0, 1), Bytes(79))), raw(bytes_of(header_of(FrameKind::ping, 0, 1)))};
}

// Frames with contents that are right more often than chance makes them.
Inputs exchanges() {
  return {{0, 0x20, 1, 1, 0, 0, 210, 0, 0x22, 1, 1, 2, 0, 0, 0},
          {0, 0x42, 1, 1, 4, 4, 0, 2, 0, 1, 0, 200, 215, 4, 1, 2, 0, 240},
          {145, 150, 155, 0, 0x22, 1, 0, 1, 0, 0, 0, 0, 210, 220, 241},
          // credit that comes back though what came early has used it
          {0x30, 0xb0, 0xb0, 0xb0, 0xb0, 0xb1, 0xb0, 0x65, 0x65, 0x65, 0x65, 0x65, 0x65, 0x65, 0x00,
           0x00, 0x00, 0x00, 0x00, 0x22, 0x10, 0x22, 0xe8, 0xf2, 0xf2, 0x38, 0xf2, 0x22, 0x01, 0x00,
           0x10, 0xc6, 0x00, 0x00, 0x31, 0x00, 0x00, 0xfb, 0x00, 0x00, 0xc6, 0x00, 0x00, 0x00, 0x00,
           0x00, 0xf2, 0x00, 0x00, 0xcf, 0x00, 0x00, 0xe4, 0x22, 0x5b, 0x00, 0x00, 0x22, 0xc6}};
}

constexpr Target all_targets[] = {{"link_frame", link_frame, honest_frames},
                                  {"link_sender", link_sender, exchanges},
                                  {"link_receiver", link_receiver, exchanges},
                                  {"owner_message", owner_message, owner_messages},
                                  {"lease_reply", lease_reply, lease_replies},
                                  {"team_letter", team_letter, team_letters},
                                  {"desk_letter", desk_letter, desk_letters},
                                  {"network_card", network_card, network_cards},
                                  {"ucx_seal", ucx_seal, ucx_seals}};

}  // namespace

std::span<const Target> targets() { return all_targets; }

}  // namespace farsum::fuzz
