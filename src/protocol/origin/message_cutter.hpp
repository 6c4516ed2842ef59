// Cuts operations into messages: by the room for a message and for its reply, each where it is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/layout.hpp"
#include "protocol/messages.hpp"
#include "protocol/origin/origin_job.hpp"
#include "transport/transport.hpp"

namespace farsum {

// Any thread may call, each with its own draft.
class MessageCutter {
 public:
  struct Options {
    // Where the owner can reach this process's memory: operands up to this ride in the message.
    std::uint64_t inline_bytes = 8192;
    bool pull = true;  // longer ones are pulled by the owner; false: they are cut into as few messages as they fit in
  };
  // The transport outlives it.
  MessageCutter(const Options& options, const Transport& transport) : options_(options), transport_(transport) {}

  // Whether that rank can take operands from where they are.
  bool can_pull(Rank rank) const;
  // Of a control message.
  std::uint64_t longest_body(Rank peer) const;
  // The next message of a job: behind the header in `draft.head`, and what follows from it in `message`, whose header
  // is the job's and whose payload_bytes are those that are left.
  void make_scatter(MessageDraft& draft, Rank rank, const OriginJob& job, OriginMessage& message) const;
  void make_operation(MessageDraft& draft, Rank rank, const OriginJob& job, OriginMessage& message) const;

 private:
  struct Room;
  Room room_for(Rank rank, bool has_operand, bool has_result) const;
  static std::uint64_t append_layout(MessageDraft& draft, const OriginJob& job, const Room& room, std::uint64_t most,
                                     OriginMessage& message);
  static std::uint64_t cut_layout(MessageDraft& draft, const OriginJob& job, const Room& room, std::uint64_t most,
                                  OriginMessage& message);

  Options options_;
  const Transport& transport_;
};

}  // namespace farsum
