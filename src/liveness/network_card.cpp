// Cards come from other hosts as they are: whatever a card says is looked at before it is used.
#include "liveness/network_card.hpp"

#include <cstring>

#include <fmt/format.h>

#include "protocol/messages.hpp"
#include "transport/link/wire.hpp"

namespace farsum {

NetworkCard versioned_card() {
  NetworkCard card;
  card.link_version = link::wire_version;
  card.message_version = wire::version;
  return card;
}

bool has_own_layout(const NetworkCard& card) { return card.layout == NetworkCard().layout; }

namespace {

// What is there up to the first zero, if any.
template <class Characters>
std::string text_in(const Characters& characters) {
  const auto* const text = reinterpret_cast<const char*>(characters.data());
  return {text, strnlen(text, characters.size())};
}

}  // namespace

std::string why_unreachable(const NetworkCard& card, std::uint32_t ranks) {
  if (!has_own_layout(card)) return "it runs another version of Farsum";
  const NetworkCard own = versioned_card();
  if (card.code != Code::ok) {
    const std::string why = text_in(card.address);
    return why.empty() ? "it does not say why" : why;
  }
  if (card.link_version != own.link_version || card.message_version != own.message_version)
    return "it runs another version of Farsum";
  if (card.rank >= ranks || card.address_bytes > card.address.size()) return "its card makes no sense";
  return {};
}

std::string refusal_of(const NetworkCard& card, std::uint32_t ranks) {
  const std::string why = why_unreachable(card, ranks);
  if (why.empty()) return {};
  const std::string who = has_own_layout(card)
                              ? fmt::format("rank {} of the job on host {}", card.rank, text_in(card.node.host))
                              : "a rank of the job on another host";
  return fmt::format("{} cannot be reached: {}", who, why);
}

}  // namespace farsum
