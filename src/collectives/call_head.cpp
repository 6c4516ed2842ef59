#include "collectives/call_head.hpp"

#include <cstring>

#include <fmt/format.h>

namespace farsum {

OtherCall other_call_in(std::span<const std::byte> letter, const CallHead& mine, Rank sender) {
  using What = OtherCall::What;
  if (letter.empty() && mine.call == CallHead::Call::barrier) return {};
  CallHead head;
  if (letter.size() < sizeof head) return {What::another_call, sender};
  std::memcpy(&head, letter.data(), sizeof head);
  if (head.call != mine.call) return {What::another_call, sender};
  if (head.bytes != mine.bytes) return {What::another_length, sender, head.bytes};
  return head.other;
}

Status differs(const char* doing, const OtherCall& other, std::uint64_t bytes) {
  switch (other.what) {
    case OtherCall::What::none:
      return {};
    case OtherCall::What::another_length:
      return {Code::argument,
              fmt::format("{}: rank {} of the job sent {} bytes where {} belong; do all ranks make the same call with "
                          "the same length?",
                          doing, other.rank, other.bytes, bytes)};
    case OtherCall::What::another_call:
      break;
  }
  return {Code::argument, fmt::format("{}: rank {} of the job made another call meanwhile; do all ranks make the same "
                                      "calls in the same order?",
                                      doing, other.rank)};
}

}  // namespace farsum
