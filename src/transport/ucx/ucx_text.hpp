// Reads what UCX prints about a context and an endpoint. UCX 1.11 has no calls that tell transports and devices, and
// the lines read here are the same from 1.13 to 1.20; a line of another form is passed over.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace farsum {

// A transport over a device, such as tcp over eth0.
struct UcxResource {
  std::string transport;
  std::string device;
  bool operator==(const UcxResource&) const = default;
};

// The resources that the text of ucp_context_print_info names.
std::vector<UcxResource> resources_in(std::string_view text);

// The transport that carries an endpoint's active messages, from the text of ucp_ep_print_info; empty where that does
// not say.
UcxResource message_lane_in(std::string_view text);
// The one that carries its atomics.
UcxResource update_lane_in(std::string_view text);
std::vector<UcxResource> lanes_in(std::string_view text);

// The longest message that goes over a transport in one fragment, so that it is neither copied together nor split.
std::size_t piece_bytes_of(std::string_view transport);

inline constexpr std::size_t tcp_segment_bytes = 65536;
inline constexpr std::size_t memory_segment_bytes = 8256;

}  // namespace farsum
