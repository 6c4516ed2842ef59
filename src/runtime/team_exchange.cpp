#include "runtime/team_exchange.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace farsum {
// It is tried again and again, not when there is room: what may wait for others is kept back for other reasons, too.
bool TeamExchange::try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                            std::size_t& sent) {
  wire::MessageHeader header;
  header.kind = wire::MessageKind::team;
  header.window = team;
  header.offset = round;
  make_progress(to);
  try {
    do {
      const std::span<const std::byte> part =
          bytes.subspan(sent, std::min<std::size_t>(bytes.size() - sent, engine_.longest_body(to)));
      header.bytes = part.size();
      header.flags = sent + part.size() == bytes.size() ? 0 : wire::flag_more;
      if (!engine_.submit_control(to, header, part, outstanding_, nullptr)) return false;
      sent += part.size();
    } while (sent < bytes.size());
  } catch (const std::bad_alloc&) {
    // The others wait for the letter, which goes once there is memory for it.
    return false;
  }
  return true;
}

void TeamExchange::make_progress(Rank rank) {
  try {
    engine_.progress(rank);
  } catch (const std::bad_alloc&) {
    // What was sent to it and is kept here goes once there is memory for it.
  }
}

bool TeamExchange::take(Rank from, std::uint64_t team, std::uint64_t round,
                        FunctionRef<void(std::span<const std::byte>)> use) {
  // What was sent to it may still be kept here for want of room, or of memory.
  make_progress(from);
  std::vector<std::byte> bytes;
  {
    const MutexGuard lock(mutex_);
    // Rounds only grow: for what is left of earlier ones nobody waits any more.
    arrived_.erase(arrived_.lower_bound({team, from, 0}), arrived_.lower_bound({team, from, round}));
    const auto found = arrived_.find({team, from, round});
    if (found == arrived_.end() || !found->second.is_whole) return false;
    bytes = std::move(found->second.bytes);
    arrived_.erase(found);
  }
  use(bytes);
  return true;
}

// A receiver's death is no refusal: whoever waits for that rank is told of it.
bool TeamExchange::has_failed() const {
  const Code answer = outstanding_.failure.load(std::memory_order_relaxed);
  return answer != Code::ok && answer != Code::peer_failed;
}

Status TeamExchange::failure(const char* doing) const {
  return {outstanding_.failure.load(std::memory_order_relaxed),
          fmt::format("{}: a rank of another host has refused what this one told it, and waits for it", doing)};
}

Code TeamExchange::on_team_message(Rank from, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                                   bool is_last) {
  if (bytes.size() > TeamPost::most_bytes) return Code::argument;
  const Key key{team, from, round};
  {
    const MutexGuard lock(mutex_);
    auto found = arrived_.find(key);
    if (found == arrived_.end()) {
      const auto first = arrived_.lower_bound({team, from, 0});
      const auto last = arrived_.upper_bound({team, from, ~std::uint64_t{0}});
      if (static_cast<std::size_t>(std::distance(first, last)) >= TeamPost::most_waiting_of_a_sender)
        return Code::argument;
      found = arrived_.try_emplace(key).first;
    }
    Letter& letter = found->second;
    if (letter.is_whole || bytes.size() > TeamPost::most_bytes - letter.bytes.size()) return Code::argument;
    letter.bytes.insert(letter.bytes.end(), bytes.begin(), bytes.end());
    letter.is_whole = is_last;
    if (!is_last) return Code::ok;
  }
  waiter_.own_events().notify_all();
  return Code::ok;
}

}  // namespace farsum
