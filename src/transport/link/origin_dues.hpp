// What is due on a link at its origin: whether the link is needed, and for what.
#pragma once

#include "transport/link/letter_box.hpp"
#include "transport/link/link_state.hpp"
#include "transport/link/open_requests.hpp"
#include "transport/link/origin_credit.hpp"
#include "transport/link/outbox.hpp"

namespace farsum::link {

class OriginDues {
 public:
  OriginDues(const OpenRequests& requests, const Outbox& sent, const LetterBox& letters, const OriginCredit& credit)
      : requests_(requests), sent_(sent), letters_(letters), credit_(credit) {}

  bool has_unanswered() const { return requests_.unanswered() != 0; }
  bool has_unreceived() const { return sent_.holds_frames(); }
  // Requests are held for later posts to join, and nothing else is unanswered or not received: no need of a link.
  bool holds_all_back() const { return holds_all_requests_back() && letters_.is_empty(); }
  bool needs_link(LinkState state) const {
    return owes_requests() || !letters_.is_empty() || credit_.is_short() || state == LinkState::connecting ||
           state == LinkState::closing;
  }
  // There are letters only, most of which nobody answers: that the peer is silent says nothing of it until it is asked.
  bool is_receipts_only(LinkState state) const {
    return !letters_.is_empty() && !owes_requests() && !credit_.is_short() && state < LinkState::closing;
  }

 private:
  bool holds_all_requests_back() const {
    return sent_.holds_back() && sent_.frames_out() == 0 && requests_.unanswered() == sent_.gathered_records();
  }
  bool owes_requests() const { return (has_unanswered() || has_unreceived()) && !holds_all_requests_back(); }

  const OpenRequests& requests_;
  const Outbox& sent_;
  const LetterBox& letters_;
  const OriginCredit& credit_;
};

}  // namespace farsum::link
