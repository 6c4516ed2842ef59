// What the fuzzers feed: one function a decoder or a state machine, each with hostile bytes. They return when the bytes
// did no harm, and abort where a promise was broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace farsum::fuzz {

using Input = std::span<const std::uint8_t>;

struct Target {
  const char* name;
  void (*run)(Input input);
  std::vector<std::vector<std::uint8_t>> (*corpus)();  // honest inputs to begin with
};

void link_frame(Input input);
void link_sender(Input input);
void link_receiver(Input input);
void owner_message(Input input);
std::vector<std::vector<std::uint8_t>> owner_messages();

std::span<const Target> targets();

}  // namespace farsum::fuzz
