// The requests of an origin by ticket, from when they are posted until their replies were handed out.
#pragma once

#include <cstdint>
#include <span>

#include "transport/link/fifo.hpp"
#include "transport/link/wire.hpp"

namespace farsum::link {

class OpenRequests {
 public:
  struct Request {
    std::uint64_t charge = 0;
    std::uint64_t frame = 0;  // that holds it
    std::uint32_t reply_capacity = 0;
    bool answered = false, taken = false;
    bool may_wait = false, borrowed = false;
    std::span<std::byte> reply_into = {};
  };

  void make_room() { requests_.make_room(); }  // the next needs no memory
  std::uint64_t add(const Request& request);   // returns its ticket
  // Whether each of these requests waits for a reply, and has room for so many bytes.
  bool await(std::uint64_t ticket, std::uint32_t count, std::uint64_t bytes) const;
  bool is_answered(std::uint64_t ticket) const { return requests_[ticket].answered; }
  void note_answered(std::uint64_t ticket);
  void note_taken(std::uint64_t ticket) { requests_[ticket].taken = true; }
  void drop_taken();  // those in front

  const Request& operator[](std::uint64_t ticket) const { return requests_[ticket]; }
  std::uint64_t begin() const { return requests_.begin(); }
  std::uint64_t end() const { return requests_.end(); }
  std::uint64_t unanswered() const { return unanswered_; }
  std::uint64_t reply_room() const { return reply_room_; }            // reply charges of the unanswered
  std::uint64_t may_wait_charge() const { return may_wait_charge_; }  // charges of the unanswered that may wait

 private:
  Fifo<Request> requests_;
  std::uint64_t unanswered_ = 0;
  std::uint64_t reply_room_ = 0;
  std::uint64_t may_wait_charge_ = 0;
};

}  // namespace farsum::link
