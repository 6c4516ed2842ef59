#include "runtime/network_card.hpp"

#include <cstring>

#include "core/wire.hpp"
#include "transport/link/wire.hpp"

namespace farsum {

NetworkCard versioned_card() {
  NetworkCard card;
  card.link_version = link::wire_version;
  card.message_version = wire::version;
  return card;
}

std::string why_unreachable(const NetworkCard& card, std::uint32_t ranks) {
  const NetworkCard own = versioned_card();
  // Of another layout nothing else can be read.
  if (card.layout != own.layout) return "it runs another version of Farsum";
  if (card.code != Code::ok) {
    const auto* const text = reinterpret_cast<const char*>(card.address.data());
    const std::string why(text, strnlen(text, card.address.size()));
    return why.empty() ? "it does not say why" : why;
  }
  if (card.link_version != own.link_version || card.message_version != own.message_version)
    return "it runs another version of Farsum";
  if (card.rank >= ranks || card.address_bytes > card.address.size()) return "its card makes no sense";
  return {};
}

}  // namespace farsum
