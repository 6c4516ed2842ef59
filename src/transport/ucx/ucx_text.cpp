#include "transport/ucx/ucx_text.hpp"

namespace farsum {
namespace {

// Room in a segment for what UCX puts before a message.
constexpr std::size_t tcp_piece_bytes = 57344;
constexpr std::size_t least_piece_bytes = 8000;

template <class Each>
void for_each_line(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    each(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string_view after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  return at == std::string_view::npos ? std::string_view() : line.substr(at + mark.size());
}

std::string_view first_word(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return text.substr(0, text.find(' '));
}

// "tcp/eth0" or, for a lane, "tcp/eth0.0".
UcxResource resource_in(std::string_view word, bool numbered) {
  const std::size_t slash = word.find('/');
  if (slash == std::string_view::npos) return {};
  std::string_view device = word.substr(slash + 1);
  if (numbered) device = device.substr(0, device.rfind('.'));
  return {std::string(word.substr(0, slash)), std::string(device)};
}

UcxResource resource_of_lane(std::string_view line) {
  const std::string_view word = first_word(after(line, "]:"));
  const std::size_t colon = word.find(':');
  return colon != std::string_view::npos ? resource_in(word.substr(colon + 1), true) : UcxResource();
}

template <class Serves>
UcxResource lane_in(std::string_view text, Serves serves) {
  UcxResource found;
  for_each_line(text, [&](std::string_view line) {
    if (line.find("lane[") == std::string_view::npos || !found.transport.empty()) return;
    // "lane[0]:  1:tcp/eth0.0 md[0] -> md[0]/tcp/sysdev[255] rma_bw#0 am am_bw#0": what the lane serves comes last.
    std::string_view uses = after(line, "->");
    bool is_it = false;
    for (std::string_view word = first_word(uses); !word.empty(); word = first_word(uses)) {
      if (serves(word)) is_it = true;
      uses.remove_prefix(static_cast<std::size_t>(word.data() - uses.data()) + word.size());
    }
    if (!is_it) return;
    found = resource_of_lane(line);
  });
  return found;
}

}  // namespace

std::vector<UcxResource> resources_in(std::string_view text) {
  std::vector<UcxResource> found;
  for_each_line(text, [&](std::string_view line) {
    if (line.find("resource ") == std::string_view::npos) return;
    UcxResource resource = resource_in(first_word(after(line, " -- ")), false);
    if (!resource.transport.empty()) found.push_back(std::move(resource));
  });
  return found;
}

UcxResource message_lane_in(std::string_view text) {
  return lane_in(text, [](std::string_view use) { return use == "am"; });
}

std::vector<UcxResource> lanes_in(std::string_view text) {
  std::vector<UcxResource> found;
  for_each_line(text, [&](std::string_view line) {
    if (line.find("lane[") != std::string_view::npos) found.push_back(resource_of_lane(line));
  });
  return found;
}

UcxResource update_lane_in(std::string_view text) {
  return lane_in(text, [](std::string_view use) { return use.starts_with("amo#"); });
}

std::size_t piece_bytes_of(std::string_view transport) {
  return transport == "tcp" ? tcp_piece_bytes : least_piece_bytes;
}

}  // namespace farsum
