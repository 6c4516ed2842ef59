// What the fuzzers feed: one function a decoder or a state machine, each with hostile bytes. They return when the bytes
// did no harm, and abort where a promise was broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace farsum::fuzz {

using Input = std::span<const std::uint8_t>;

inline void demand(bool holds) {
  if (!holds) std::abort();
}

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
void lease_reply(Input input);
std::vector<std::vector<std::uint8_t>> lease_replies();
void team_letter(Input input);
std::vector<std::vector<std::uint8_t>> team_letters();
void desk_letter(Input input);
std::vector<std::vector<std::uint8_t>> desk_letters();
void network_card(Input input);
std::vector<std::vector<std::uint8_t>> network_cards();
void ucx_seal(Input input);
std::vector<std::vector<std::uint8_t>> ucx_seals();

std::span<const Target> targets();

}  // namespace farsum::fuzz
