#include "runtime/team_exchange.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace farsum {
namespace {

// A sender is at most one round ahead of a receiver, who may not have come for the round before yet.
constexpr std::ptrdiff_t most_waiting_of_a_sender = 2;

}  // namespace

Status TeamExchange::send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                          const char* doing) {
  wire::MessageHeader header;
  header.kind = wire::MessageKind::team;
  header.window = team;
  header.offset = round;
  do {
    const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), engine_.longest_body(to)));
    bytes = bytes.subspan(part.size());
    header.bytes = part.size();
    header.flags = bytes.empty() ? 0 : wire::flag_more;
    if (Status status = send_part(to, header, part, doing); !status.is_ok()) return status;
  } while (!bytes.empty());
  return {};
}

Status TeamExchange::send_part(Rank to, const wire::MessageHeader& header, std::span<const std::byte> bytes,
                               const char* doing) {
  // It tries again and again, not when there is room: what may wait for others is kept back for other reasons, too.
  bool is_sent = false;
  const auto send = [&] {
    try {
      engine_.progress(to);
      is_sent = is_sent || engine_.submit_control(to, header, bytes, outstanding_, nullptr);
    } catch (const std::bad_alloc&) {
      // The others wait for the letter, which goes once there is memory for it.
    }
    return is_sent || was_refused();
  };
  Status status = waiter_.wait(waiter_.own_events(), send, doing);
  return status.is_ok() && was_refused() ? refusal(doing) : std::move(status);
}

// A receiver's death is no refusal: whoever waits for that rank is told of it.
bool TeamExchange::was_refused() const {
  const Code answer = outstanding_.failure.load(std::memory_order_relaxed);
  return answer != Code::ok && answer != Code::peer_failed;
}

Status TeamExchange::refusal(const char* doing) const {
  return {outstanding_.failure.load(std::memory_order_relaxed),
          fmt::format("{}: a rank of another host has refused what this one told it, and waits for it", doing)};
}

bool TeamExchange::take(const Key& key, std::vector<std::byte>& bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find(key);
  if (found == arrived_.end() || !found->second.is_whole) return false;
  bytes = std::move(found->second.bytes);
  arrived_.erase(found);
  return true;
}

Status TeamExchange::receive(Rank from, std::uint64_t team, std::uint64_t round, std::vector<std::byte>& bytes,
                             const char* doing) {
  const Key key{team, from, round};
  bool has_come = false;
  const auto arrived = [&] {
    if (has_come) return true;
    // What was sent to it may still be kept here for want of room, or of memory.
    try {
      engine_.progress(from);
    } catch (const std::bad_alloc&) {
    }
    has_come = take(key, bytes);
    return has_come || was_refused();
  };
  Status status = waiter_.wait(waiter_.own_events(), arrived, doing);
  return status.is_ok() && !has_come ? refusal(doing) : std::move(status);
}

Code TeamExchange::on_team_message(Rank from, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                                   bool is_last) {
  if (bytes.size() > TeamPost::most_bytes) return Code::argument;
  const Key key{team, from, round};
  {
    const std::lock_guard lock(mutex_);
    auto found = arrived_.find(key);
    if (found == arrived_.end()) {
      const auto first = arrived_.lower_bound({team, from, 0});
      const auto last = arrived_.upper_bound({team, from, ~std::uint64_t{0}});
      if (std::distance(first, last) >= most_waiting_of_a_sender) return Code::argument;
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
