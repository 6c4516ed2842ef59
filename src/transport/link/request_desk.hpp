// The requests of one origin at the target: each is handed to the engine when it has come, waits where that says so,
// and is answered once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "transport/link/fifo.hpp"
#include "transport/link/outbox.hpp"
#include "transport/link/request_intake.hpp"
#include "transport/link/target_credit.hpp"
#include "transport/link/target_report.hpp"
#include "transport/transport.hpp"

namespace farsum::link {

// Served::Kind from a handler: `again` holds back the origin's whole stream until serve_parked() brings the same
// message and room; `later` holds back nothing: complete() answers it. The message of a request that may wait stays
// where it is from its first on_request to its completion; any other's is valid until on_request returns.
class RequestDesk {
 public:
  RequestDesk(const LinkOptions& options, RequestIntake& intake, TargetCredit& credit, TargetReport& report,
              Outbox& replies)
      : peer_(options.peer),
        omission_(options.omission),
        intake_(intake),
        credit_(credit),
        report_(report),
        replies_(replies) {}

  // Takes a frame of requests, and those that came early behind it.
  Fault on_requests(const Frame& frame, RequestHandler& handler);
  // Serves what was answered `again` and what stood behind it; returns how many were finished.
  std::size_t serve_parked(RequestHandler& handler, std::size_t budget);
  // Answers a request that was answered `later`; may be called by a handler. Tickets that are not waiting are ignored.
  void complete(std::uint64_t ticket, Code code, std::span<const std::byte> reply);
  void drop_all();

  bool has_again() const { return !parked_.empty(); }
  std::uint64_t held_bytes() const;  // of what waits, with the room for its replies

 private:
  struct Parked {
    std::uint64_t ticket = 0;
    RequestRecord record{};
    std::unique_ptr<std::byte[]> bytes;  // the message
    std::unique_ptr<std::byte[]> reply;  // room for it; none before it is needed
    bool completed = false;              // by complete(), inside a handler
    Code code = Code::ok;
    std::uint32_t reply_bytes = 0;

    std::uint64_t size() const { return std::uint64_t{record.bytes} + (reply != nullptr ? record.reply_capacity : 0); }
    bool may_wait() const { return (record.flags & may_wait_flag) != 0; }
    std::span<const std::byte> message() const { return {bytes.get(), record.bytes}; }
    std::span<std::byte> room() const { return {reply.get(), record.reply_capacity}; }
    void make_room() { reply = std::make_unique<std::byte[]>(record.reply_capacity); }
  };
  // An answer, and the room that it was written to.
  struct InPlace {
    Served served;
    std::span<std::byte> room;
  };

  void accept(const Frame& frame, RequestHandler& handler);
  void accept_record(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                     RequestHandler& handler);
  InPlace serve_in_place(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
                         RequestHandler& handler);
  bool serve(Parked& parked, RequestHandler& handler);
  static void keep_room(Parked& parked, const InPlace& answer);
  Served ask(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message,
             std::span<std::byte> room, RequestHandler& handler);
  static Parked park(std::uint64_t ticket, const RequestRecord& record, std::span<const std::byte> message);
  void defer(Parked parked);
  void finish_completed();
  void reply(std::uint64_t ticket, const RequestRecord& record, Code code, std::span<const std::byte> data);
  bool joins_last_entry(std::uint64_t ticket);

  Rank peer_;
  Omission omission_;
  RequestIntake& intake_;
  TargetCredit& credit_;
  TargetReport& report_;
  Outbox& replies_;
  Fifo<Parked> parked_;  // in order; the first was answered `again`
  std::unordered_map<std::uint64_t, Parked> later_;
  std::vector<std::uint64_t> completed_;  // of later_, while a handler runs
  bool serving_ = false;
};

}  // namespace farsum::link
