#include "transport/trace/trace_transport.hpp"

#include <fmt/format.h>

namespace farsum {

namespace {

constexpr std::size_t kind_count = 256;

// Relaxed everywhere below: nothing is ordered by a count.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t value = 1) {
  counter.fetch_add(value, std::memory_order_relaxed);
}
std::uint64_t get(const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

std::uint8_t kind_of(std::span<const std::byte> head, std::span<const std::byte> body = {}) {
  if (!head.empty()) return std::to_integer<std::uint8_t>(head.front());
  return body.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(body.front());
}

}  // namespace

const char* name_of(TraceWhat what) {
  switch (what) {
    case TraceWhat::posted:
      return "posted";
    case TraceWhat::refused:
      return "refused";
    case TraceWhat::reply:
      return "reply";
    case TraceWhat::served:
      return "served";
    case TraceWhat::again:
      return "again";
    case TraceWhat::later:
      return "later";
    case TraceWhat::completed:
      return "completed";
    case TraceWhat::read:
      return "read";
    case TraceWhat::write:
      return "write";
    case TraceWhat::letter:
      return "letter";
  }
  return "unknown";
}

std::string TraceEvent::text() const {
  return fmt::format("{} peer {} kind {} ticket {} bytes {} code {}", name_of(what), peer, message_kind, ticket, bytes,
                     static_cast<unsigned>(code));
}

struct TraceTransport::Counters {
  // Written by the threads that post to the peer and take its replies.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> posted{0};
  std::atomic<std::uint64_t> posted_bytes{0};
  std::atomic<std::uint64_t> kept{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> replies{0};
  std::atomic<std::uint64_t> reply_bytes{0};
  std::atomic<std::uint64_t> failed_replies{0};

  // Written by the agent.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> served{0};
  std::atomic<std::uint64_t> served_bytes{0};
  std::atomic<std::uint64_t> agains{0};
  std::atomic<std::uint64_t> laters{0};

  // Written by whoever sends letters.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> letters{0};
  std::atomic<std::uint64_t> letter_bytes{0};

  // Written by both.
  alignas(cache_line_bytes) std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> read_bytes{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> write_bytes{0};

  void add_to(TraceCounts& sum) const {
    sum.posted += get(posted);
    sum.posted_bytes += get(posted_bytes);
    sum.kept += get(kept);
    sum.refused += get(refused);
    sum.replies += get(replies);
    sum.reply_bytes += get(reply_bytes);
    sum.failed_replies += get(failed_replies);
    sum.served += get(served);
    sum.served_bytes += get(served_bytes);
    sum.agains += get(agains);
    sum.laters += get(laters);
    sum.letters += get(letters);
    sum.letter_bytes += get(letter_bytes);
    sum.reads += get(reads);
    sum.read_bytes += get(read_bytes);
    sum.writes += get(writes);
    sum.write_bytes += get(write_bytes);
  }
};

class TraceTransport::CountingReplies final : public ReplyHandler {
 public:
  CountingReplies(TraceTransport& trace, ReplyHandler& inner) : trace_(trace), inner_(inner) {}

  void on_reply(Rank from, std::uint64_t ticket, Code code, std::span<const std::byte> reply) override {
    Counters& peer = trace_.by_peer_[from];
    add(peer.replies);
    add(peer.reply_bytes, reply.size());
    if (code != Code::ok) add(peer.failed_replies);
    trace_.record({.what = TraceWhat::reply, .peer = from, .code = code, .ticket = ticket, .bytes = reply.size()});
    inner_.on_reply(from, ticket, code, reply);
  }

 private:
  TraceTransport& trace_;
  ReplyHandler& inner_;
};

class TraceTransport::CountingRequests final : public RequestHandler {
 public:
  CountingRequests(TraceTransport& trace, RequestHandler& inner) : trace_(trace), inner_(inner) {}

  Served on_request(Rank from, std::span<const std::byte> message, std::span<std::byte> reply_room,
                    ReplyToken token) override {
    // It looks before the handler runs: the message is not to be looked at after its reply.
    const std::uint8_t kind = kind_of(message);
    const Served served = inner_.on_request(from, message, reply_room, token);
    for (Counters* counters : {&trace_.by_peer_[from], &trace_.by_kind_[kind]})
      count(*counters, served.kind, message.size());
    trace_.record({.what = what_of(served.kind),
                   .peer = from,
                   .message_kind = kind,
                   .code = served.code,
                   .ticket = token.ticket,
                   .bytes = message.size()});
    return served;
  }

 private:
  static TraceWhat what_of(Served::Kind kind) {
    switch (kind) {
      case Served::Kind::done:
        return TraceWhat::served;
      case Served::Kind::again:
        return TraceWhat::again;
      case Served::Kind::later:
        return TraceWhat::later;
    }
    return TraceWhat::served;
  }

  static void count(Counters& counters, Served::Kind kind, std::size_t message_bytes) {
    if (kind == Served::Kind::again) {
      add(counters.agains);
      return;
    }
    add(counters.served);
    add(counters.served_bytes, message_bytes);
    if (kind == Served::Kind::later) add(counters.laters);
  }

  TraceTransport& trace_;
  RequestHandler& inner_;
};

TraceTransport::TraceTransport(Transport& inner, Rank ranks, TraceRecorder* recorder)
    : inner_(inner),
      ranks_(ranks),
      recorder_(recorder),
      by_peer_(std::make_unique<Counters[]>(ranks)),
      by_kind_(std::make_unique<Counters[]>(kind_count)) {}

TraceTransport::~TraceTransport() = default;

TraceCounts TraceTransport::counts_of_peer(Rank peer) const {
  TraceCounts counts;
  by_peer_[peer].add_to(counts);
  return counts;
}

TraceCounts TraceTransport::counts_of_kind(std::uint8_t message_kind) const {
  TraceCounts counts;
  by_kind_[message_kind].add_to(counts);
  return counts;
}

TraceCounts TraceTransport::total() const {
  TraceCounts counts;
  for (Rank peer = 0; peer < ranks_; ++peer) by_peer_[peer].add_to(counts);
  return counts;
}

std::optional<std::uint64_t> TraceTransport::try_post(Rank peer, std::span<const std::byte> head,
                                                      std::span<const std::byte> body, const PostOptions& options) {
  const std::uint8_t kind = kind_of(head, body);
  const std::optional<std::uint64_t> ticket = inner_.try_post(peer, head, body, options);
  count_post(peer, kind, head.size() + body.size(), options.may_keep, ticket);
  return ticket;
}

void TraceTransport::count_post(Rank peer, std::uint8_t kind, std::uint64_t bytes, bool may_keep,
                                std::optional<std::uint64_t> ticket) {
  for (Counters* counters : {&by_peer_[peer], &by_kind_[kind]}) {
    add(ticket ? counters->posted : counters->refused);
    if (ticket) add(counters->posted_bytes, bytes);
    if (ticket && may_keep) add(counters->kept);
  }
  record({.what = ticket ? TraceWhat::posted : TraceWhat::refused,
          .peer = peer,
          .message_kind = kind,
          .ticket = ticket.value_or(0),
          .bytes = bytes});
}

bool TraceTransport::try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
  const std::uint64_t bytes = header.size() + body.size();
  const bool is_taken = inner_.try_letter(to, header, body);
  if (is_taken) {
    add(by_peer_[to].letters);
    add(by_peer_[to].letter_bytes, bytes);
  }
  record({.what = is_taken ? TraceWhat::letter : TraceWhat::refused, .peer = to, .bytes = bytes});
  return is_taken;
}

std::size_t TraceTransport::poll_replies(Rank peer, ReplyHandler& handler) {
  CountingReplies counting(*this, handler);
  return inner_.poll_replies(peer, counting);
}

std::size_t TraceTransport::poll_replies_unattended(Rank peer, ReplyHandler& handler) {
  CountingReplies counting(*this, handler);
  return inner_.poll_replies_unattended(peer, counting);
}

std::size_t TraceTransport::poll_requests(RequestHandler& handler, std::size_t budget) {
  CountingRequests counting(*this, handler);
  return inner_.poll_requests(counting, budget);
}

void TraceTransport::complete(ReplyToken token, Code code, std::span<const std::byte> reply) {
  record(
      {.what = TraceWhat::completed, .peer = token.peer, .code = code, .ticket = token.ticket, .bytes = reply.size()});
  inner_.complete(token, code, reply);
}

Transfer TraceTransport::read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into,
                              std::uint64_t cookie) {
  add(by_peer_[peer].reads);
  add(by_peer_[peer].read_bytes, into.size());
  record({.what = TraceWhat::read, .peer = peer, .ticket = cookie, .bytes = into.size()});
  return inner_.read(peer, remote_address, into, cookie);
}

Transfer TraceTransport::write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                               std::uint64_t cookie) {
  add(by_peer_[peer].writes);
  add(by_peer_[peer].write_bytes, from.size());
  record({.what = TraceWhat::write, .peer = peer, .ticket = cookie, .bytes = from.size()});
  return inner_.write(peer, remote_address, from, cookie);
}

}  // namespace farsum
