// Counts, and on request records, what passes through any transport. Stands between the protocol and the transport it
// wraps and changes nothing. Transfers are counted when they are asked for; how a started one ends is told to the inner
// transport's handler, past this one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/transport.hpp"

namespace farsum {

// The counts of one peer or one message kind. They are plain numbers: a copy taken at one moment.
struct TraceCounts {
  std::uint64_t posted = 0;  // requests sent
  std::uint64_t posted_bytes = 0;
  std::uint64_t kept = 0;     // of those posted, the ones that may leave with later ones
  std::uint64_t refused = 0;  // posts that found no room
  std::uint64_t replies = 0;  // replies received
  std::uint64_t reply_bytes = 0;
  std::uint64_t failed_replies = 0;  // of those, with another code than ok
  std::uint64_t served = 0;          // requests finished here
  std::uint64_t served_bytes = 0;
  std::uint64_t agains = 0;   // times a handler put one off
  std::uint64_t laters = 0;   // requests answered late
  std::uint64_t letters = 0;  // sent
  std::uint64_t letter_bytes = 0;
  std::uint64_t reads = 0;  // transfers asked for
  std::uint64_t read_bytes = 0;
  std::uint64_t writes = 0;
  std::uint64_t write_bytes = 0;
};

enum class TraceWhat : std::uint8_t { posted, refused, reply, served, again, later, completed, read, write, letter };

const char* name_of(TraceWhat what);

struct TraceEvent {
  TraceWhat what = TraceWhat::posted;
  Rank peer = 0;
  std::uint8_t message_kind = 0;  // first byte of the message; 0 where there is none
  Code code = Code::ok;
  std::uint64_t ticket = 0;  // or the cookie of a transfer
  std::uint64_t bytes = 0;

  std::string text() const;
};

// Takes the events as they happen, from whichever thread makes them.
class TraceRecorder {
 public:
  virtual ~TraceRecorder() = default;
  virtual void on_trace(const TraceEvent& event) = 0;
};

// Any thread that may call the inner transport may call this one. Counts may be read at any time; those of one moment
// need not add up.
class TraceTransport final : public Transport {
 public:
  // `recorder` may be null.
  TraceTransport(Transport& inner, Rank ranks, TraceRecorder* recorder = nullptr);
  ~TraceTransport() override;

  TraceCounts counts_of_peer(Rank peer) const;
  // Posting, refusal and serving only: a reply does not say what it answers, and letters have no kinds.
  TraceCounts counts_of_kind(std::uint8_t message_kind) const;
  TraceCounts total() const;

  Capabilities capabilities(Rank peer) const override { return inner_.capabilities(peer); }
  std::optional<std::uint64_t> try_post(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                        const PostOptions& options) override;
  std::size_t poll_replies(Rank peer, ReplyHandler& handler) override;
  std::size_t poll_replies_unattended(Rank peer, ReplyHandler& handler) override;
  void abandon(Rank peer) override { inner_.abandon(peer); }
  void hand_over() override { inner_.hand_over(); }
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override;
  void deliver_letters_to(LetterHandler& handler) override { inner_.deliver_letters_to(handler); }
  std::size_t poll_requests(RequestHandler& handler, std::size_t budget) override;
  bool has_unfinished_request() const override { return inner_.has_unfinished_request(); }
  void complete(ReplyToken token, Code code, std::span<const std::byte> reply) override;
  Transfer read(Rank peer, std::uint64_t remote_address, std::span<std::byte> into, std::uint64_t cookie) override;
  Transfer write(Rank peer, std::uint64_t remote_address, std::span<const std::byte> from,
                 std::uint64_t cookie) override;

 private:
  class CountingRequests;
  class CountingReplies;
  struct Counters;

  void count_post(Rank peer, std::uint8_t kind, std::uint64_t bytes, bool may_keep,
                  std::optional<std::uint64_t> ticket);
  void record(const TraceEvent& event) const {
    if (recorder_ != nullptr) recorder_->on_trace(event);
  }

  Transport& inner_;
  Rank ranks_;
  TraceRecorder* recorder_;
  std::unique_ptr<Counters[]> by_peer_;
  std::unique_ptr<Counters[]> by_kind_;
};

}  // namespace farsum
