#include "cost/meeting_model.hpp"

#include <bit>

namespace farsum::cost {

double flat_meeting_us(const LinkModel& link, std::uint32_t nodes) {
  if (nodes <= 1) return 0;
  return (nodes - 1) * (link.send_us + link.receive_us) + link.latency_us;
}

double dissemination_us(const LinkModel& link, std::uint32_t nodes) {
  if (nodes <= 1) return 0;
  return std::bit_width(nodes - 1) * (link.send_us + link.receive_us + link.latency_us);
}

bool meet_at_once(std::uint32_t nodes) {
  const LinkModel& link = defaults(LinkClass::tcp);
  return nodes <= most_at_once && flat_meeting_us(link, nodes) <= dissemination_us(link, nodes);
}

std::uint32_t meeting_degree(std::uint32_t nodes) { return meet_at_once(nodes) ? nodes : 2; }

}  // namespace farsum::cost
