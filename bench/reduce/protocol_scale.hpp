// How many ranks of the protocol's own code are simulated in one process, how fast and in how much memory: the walks,
// letters, slots and credit of collectives that nobody waits for, over the simulated network.
#pragma once

#include <cstdint>
#include <string>

#include "effort.hpp"

namespace bench {

struct ProtocolScale {
  std::uint32_t ranks = 0;
  std::uint64_t calls = 0;
  std::uint64_t events = 0;
  double virtual_us = 0;  // of a call
  Effort effort = {};
  bool is_right = false;
};

// Allreduces of one 64-bit floating-point number one after the other among so many nodes of a rank each. Whether each
// rank's answer is right is looked at each time.
ProtocolScale measure_protocol_scale(std::uint32_t ranks, std::uint64_t calls);
std::string text_of(const ProtocolScale& scale);
std::string lines_of(const ProtocolScale& scale);

}  // namespace bench
