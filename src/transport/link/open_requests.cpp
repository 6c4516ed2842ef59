#include "transport/link/open_requests.hpp"

namespace farsum::link {

std::uint64_t OpenRequests::add(const Request& request) {
  requests_.push_back(request);
  if (!request.answered) {
    ++unanswered_;
    reply_room_ += reply_charge(request.reply_capacity);
    if (request.may_wait) may_wait_charge_ += request.charge;
  }
  return requests_.end() - 1;
}

bool OpenRequests::await(std::uint64_t ticket, std::uint32_t count, std::uint64_t bytes) const {
  if (!requests_.holds(ticket) || !requests_.holds(ticket + count - 1)) return false;
  for (std::uint64_t at = ticket; at != ticket + count; ++at) {
    if (requests_[at].answered || bytes > requests_[at].reply_capacity) return false;
  }
  return true;
}

void OpenRequests::note_answered(std::uint64_t ticket) {
  Request& request = requests_[ticket];
  request.answered = true;
  --unanswered_;
  reply_room_ -= reply_charge(request.reply_capacity);
  if (request.may_wait) may_wait_charge_ -= request.charge;
}

void OpenRequests::drop_taken() {
  while (!requests_.empty() && requests_.front().taken) requests_.pop_front();
}

}  // namespace farsum::link
