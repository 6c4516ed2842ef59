// What a simulated machine is like. The defaults are the figures measured for processes of one node; tests vary them by
// seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/sim/sim_random.hpp"

namespace farsum {

struct SimOptions {
  // The time between posting and being seen by the other side, for requests and for replies.
  SimRange message_latency{200, 3'000};
  // One message in so many takes `long_delay_factor` times as long, which is what reorders peers for real; 0: none
  // does.
  std::uint64_t long_delay_one_in = 40;
  std::uint64_t long_delay_factor = 20;

  // A sleeping agent's time from the first request to its first turn, and the factor for an owner that computes.
  SimRange wake_up{5'300, 14'000};
  std::uint64_t busy_factor = 3;
  // What one request costs the agent, how many it serves before it looks around, and its pause when all of them must
  // wait.
  SimRange service{100, 400};
  std::size_t turn_budget = 8;
  SimRange again_pause{500, 4'000};
  // The time from a reply's arrival to the turn of the rank that waits for it.
  SimRange origin_wake{50, 2'000};

  // Room between one sender and one receiver. Small on purpose: back-pressure is the common case in a simulated world.
  std::size_t pair_messages = 16;
  std::size_t pair_bytes = 64 * 1024;
  std::size_t max_message_bytes = 16 * 1024;
  std::size_t max_reply_bytes = 16 * 1024;
  std::size_t pair_letters = 32;  // on their way
  std::size_t max_letter_bytes = 4096;

  bool late_replies = true;
  bool transfers = true;
  // OriginEngine keeps small operations back, to send fewer messages. Each still travels on its own here.
  bool keeps = false;
  // The time from asking for a transfer to its copy, and from there to being told.
  SimRange transfer_latency{500, 5'000};
  // Its bytes take so much besides.
  std::uint64_t transfer_ns_per_kib = 0;
  // Copies in two halves at two instants, so that a race nothing protects against shows.
  bool torn_transfers = false;

  // A card's way there and back, and the gap between its read and its write of one word.
  SimRange card_latency{300, 1'500};
  SimRange card_gap{20, 400};

  // The time from a death to the moment when others learn of it.
  SimRange death_notice{10'000, 1'000'000};

  // Keeps every event for trace(); the hash is always kept.
  bool record_trace = false;
};

}  // namespace farsum
