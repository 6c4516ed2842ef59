// The network of paper 1 (Quadrics Elan-3) as the model's parameters. From the paper: the wake-ups, the 300 bytes of a
// queue message, a link of 400 MB/s. Assumed: 5 us one way, that computing costs nothing beside 2.5 ns a byte, and that
// the owner's thread, which blocks for its message, also blocks for the operand that it fetches.
#pragma once

#include "cost/model.hpp"

namespace farsum::cost {

inline LinkModel paper_network(double wake_up_us) {
  LinkModel model;
  model.latency_us = 5;
  model.wake_up_us = wake_up_us;
  model.per_byte_us = 1.0 / 400;
  model.back_per_byte_us = 1.0 / 400;
  model.inline_bytes = 300;
  model.pull_per_byte_us = 1.0 / 400;
  model.pull_round_trips = 1;
  model.pull_wake_ups = 1;
  // Lock, get, put and unlock by the network card: no wake-up.
  model.caller_round_trips = 4;
  return model;
}

}  // namespace farsum::cost
