// The links by which a rank asks others, by rank, and which of them have something to do: those with a deadline, and
// those that hold back what is to travel together. One thread at a time calls. It knows no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "base/units.hpp"
#include "transport/link/full_frames.hpp"
#include "transport/link/reply_care.hpp"
#include "transport/link/sender.hpp"

namespace farsum {

// A link to a peer. It is among the busy ones while it has a deadline: the others cost nothing.
struct AskingLink {
  AskingLink(const link::SenderOptions& options, link::Wire& wire) : peer(options.peer), link(options, wire) {}
  Rank peer;
  link::LinkSender link;
  bool is_busy = false;
  bool is_holding = false;             // it is among the holding ones, as long as it may hold something back
  bool is_lost = false;                // and this was noted
  bool has_undelivered = false;        // replies since it was last polled, or room for what found none
  bool has_short_undelivered = false;  // and some in a short frame
};

class AskingLinks {
 public:
  explicit AskingLinks(std::uint32_t ranks) : links_(ranks) {}

  // The wire must outlive this. The link uses buffers that all of them share.
  AskingLink& add(link::SenderOptions options, link::Wire& wire);
  AskingLink* find(Rank peer) const { return peer < links_.size() ? links_[peer].get() : nullptr; }
  // By rank; null where there is none.
  std::span<const std::unique_ptr<AskingLink>> all() const { return links_; }

  // To be called after whatever may have given a link something to do, or ended it. True once for each that has failed.
  bool note(AskingLink& asking) noexcept;
  // Has those that are due at `now_ns` looked at; whether there were any.
  bool look_at_due(std::uint64_t now_ns, FunctionRef<void(AskingLink&)> look);
  // Has those that may hold something back send it.
  void send_held(FunctionRef<void(AskingLink&)> send);
  // Those without a deadline are busy no more.
  void drop_idle();

  // Of the links that were busy when drop_idle() was last called, or have been since. Nobody looks for what only says
  // that letters were received.
  link::ReplyCare::UnderWay under_way() const;
  bool has_letters_to_send() const;
  std::uint64_t next_deadline_ns() const;  // LinkSender::never where nothing is due

  // Kept for each link.
  static constexpr std::uint64_t bytes_of_link() { return sizeof(std::unique_ptr<AskingLink>) + sizeof(AskingLink); }

 private:
  link::FullFrames full_frames_;
  std::vector<std::unique_ptr<AskingLink>> links_;
  std::vector<AskingLink*> busy_;
  std::vector<AskingLink*> holding_;
};

}  // namespace farsum
