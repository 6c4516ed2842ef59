// What launcher and guardian tell each other over a pair of sequenced-packet sockets. One packet is one message; the
// end of the stream means that the other one is gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "cli/unique_fd.hpp"

namespace farsum::cli {

// Launcher to guardian.
struct Command {
  enum class Kind : std::int32_t { signal_job, kill_all };
  Kind kind;
  std::int32_t signal;
};

// Guardian to launcher.
struct Event {
  // rank_started carries the read ends of the rank's stdout and stderr; `value` is unused.
  // rank_exited: `value` is the wait status. start_failed: `value` is an errno.
  enum class Kind : std::int32_t { rank_started, rank_exited, start_failed };
  Kind kind;
  std::int32_t rank;
  std::int32_t pid;
  std::int32_t value;
};

struct ReceivedEvent {
  Event event;
  UniqueFd out;
  UniqueFd err;
};

enum class Received { message, nothing_now, closed };

// Both ends are close-on-exec; empty when the system refuses.
[[nodiscard]] std::optional<std::pair<UniqueFd, UniqueFd>> make_channel();

// Never blocks: a guardian that does not read is dealt with by the launcher's deadlines.
void send_command(int channel, const Command& command);
[[nodiscard]] Received receive_command(int channel, Command& command);

// Blocks until the launcher has room. False when the launcher is gone.
[[nodiscard]] bool send_event(int channel, const Event& event);
[[nodiscard]] bool send_started(int channel, const Event& event, int out, int err);
[[nodiscard]] Received receive_event(int channel, ReceivedEvent& received);

}  // namespace farsum::cli
