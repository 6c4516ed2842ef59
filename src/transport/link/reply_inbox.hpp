// The replies of a link at its origin: each is taken in once, and handed out once, in the order in which they came.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.hpp"
#include "base/status.hpp"
#include "transport/link/early_frames.hpp"
#include "transport/link/fifo.hpp"
#include "transport/link/link.hpp"
#include "transport/link/open_requests.hpp"
#include "transport/link/outbox.hpp"

namespace farsum::link {

using TakeReply = FunctionRef<void(std::uint64_t ticket, Code code, std::span<const std::byte> data)>;

class ReplyInbox {
 public:
  // `sent` holds the requests' frames. The counters are the half's.
  ReplyInbox(const LinkOptions& options, OpenRequests& requests, const Outbox& sent, LinkCounters& counters)
      : omission_(options.omission), requests_(requests), sent_(sent), counters_(counters) {}

  Fault on_replies(const Frame& frame);
  void forget_early() { early_.clear(); }

  // So many answers need no memory.
  void make_room(std::uint64_t answers = 1) { inbox_.make_room(answers); }
  void answer(std::uint64_t ticket, Code code);  // a request that counts as answered
  void answer_all(Code code);                    // those that are not; they need room

  // As LinkSender::take_replies.
  std::size_t take_replies(TakeReply take);
  bool is_empty() const { return inbox_.empty(); }

  std::uint64_t next() const { return next_; }            // all replies of smaller numbers are here
  std::uint64_t untold_bytes() const { return untold_; }  // that came since a frame last told of them
  void note_told() { untold_ = 0; }

 private:
  // One entry of the target's, or an answer from this side.
  struct Reply {
    std::uint64_t ticket = 0;
    std::uint32_t count = 1;
    Code code = Code::ok;
    std::unique_ptr<std::byte[]> kept;
    std::span<const std::byte> data;
  };

  bool are_due(const Frame& frame) const;
  void take_entries(const Frame& frame);
  void keep(const ReplyEntry& entry, std::span<const std::byte> data);
  bool hand_out(Reply& reply, TakeReply take);

  Omission omission_;
  OpenRequests& requests_;
  const Outbox& sent_;
  LinkCounters& counters_;
  Fifo<Reply> inbox_;
  EarlyFrames early_;
  std::uint64_t next_ = 0;
  std::uint64_t untold_ = 0;
};

}  // namespace farsum::link
