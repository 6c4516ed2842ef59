#include "transport/ucx/asking_links.hpp"

#include <algorithm>

namespace farsum {

AskingLink& AskingLinks::add(link::SenderOptions options, link::Wire& wire) {
  options.full_frames = &full_frames_;
  std::unique_ptr<AskingLink>& made = links_[options.peer];
  made = std::make_unique<AskingLink>(options, wire);
  return *made;
}

bool AskingLinks::note(AskingLink& asking) noexcept {
  if (!asking.is_busy && asking.link.next_deadline_ns() != link::LinkSender::never) {
    asking.is_busy = true;
    busy_.push_back(&asking);
  }
  if (!asking.is_holding && asking.link.holds_back()) {
    asking.is_holding = true;
    holding_.push_back(&asking);
  }
  if (asking.is_lost || asking.link.state() != link::LinkState::failed) return false;
  asking.is_lost = true;
  return true;
}

bool AskingLinks::look_at_due(std::uint64_t now_ns, FunctionRef<void(AskingLink&)> look) {
  bool any = false;
  // Looking at one may make others busy.
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    if (now_ns < busy_[i]->link.next_deadline_ns()) continue;
    look(*busy_[i]);
    any = true;
  }
  return any;
}

void AskingLinks::send_held(FunctionRef<void(AskingLink&)> send) {
  for (AskingLink* asking : holding_) {
    asking->is_holding = false;
    send(*asking);
  }
  holding_.clear();
}

void AskingLinks::drop_idle() {
  for (std::size_t i = 0; i < busy_.size();) {
    if (busy_[i]->link.next_deadline_ns() != link::LinkSender::never) {
      ++i;
      continue;
    }
    busy_[i]->is_busy = false;
    busy_[i] = busy_.back();
    busy_.pop_back();
  }
}

link::ReplyCare::UnderWay AskingLinks::under_way() const {
  const bool is_any = std::any_of(busy_.begin(), busy_.end(),
                                  [](const AskingLink* asking) { return !asking->link.waits_for_receipts_only(); });
  return is_any ? link::ReplyCare::UnderWay::something : link::ReplyCare::UnderWay::nothing;
}

bool AskingLinks::has_letters_to_send() const {
  return std::any_of(busy_.begin(), busy_.end(),
                     [](const AskingLink* asking) { return asking->link.has_letters_to_send(); });
}

std::uint64_t AskingLinks::next_deadline_ns() const {
  std::uint64_t next = link::LinkSender::never;
  for (const AskingLink* asking : busy_) next = std::min(next, asking->link.next_deadline_ns());
  return next;
}

}  // namespace farsum
