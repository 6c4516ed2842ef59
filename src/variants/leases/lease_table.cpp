#include "variants/leases/lease_table.hpp"

#include <bit>
#include <cstring>

namespace farsum {
namespace {

constexpr std::uint64_t word_bits = 64;

std::uint64_t bits_below(std::uint64_t count) { return count >= word_bits ? ~0ull : (1ull << count) - 1; }

}  // namespace

PendingElements::PendingElements(std::uint64_t count)
    : words_((count + word_bits - 1) / word_bits, ~0ull), size_(count), pending_(count) {
  if (count % word_bits != 0) words_.back() = bits_below(count % word_bits);
}

PendingElements::PendingElements(std::uint64_t count, std::span<const std::byte> words)
    : words_((count + word_bits - 1) / word_bits), size_(count) {
  if (count == 0) return;
  std::memcpy(words_.data(), words.data(), bytes_for(count));
  if (count % word_bits != 0) words_.back() &= bits_below(count % word_bits);
  for (const std::uint64_t word : words_) pending_ += static_cast<std::uint64_t>(std::popcount(word));
}

std::uint64_t PendingElements::count_in(std::uint64_t first, std::uint64_t count) const {
  std::uint64_t pending = 0;
  while (count != 0) {
    const std::uint64_t here = std::min(count, word_bits - first % word_bits);
    pending +=
        static_cast<std::uint64_t>(std::popcount(words_[first / word_bits] >> first % word_bits & bits_below(here)));
    first += here;
    count -= here;
  }
  return pending;
}

void PendingElements::finish(std::uint64_t element) {
  words_[element / word_bits] &= ~(1ull << element % word_bits);
  --pending_;
}

std::uint64_t LeaseTable::cost_of(std::uint64_t bytes, std::uint64_t elements) {
  return sizeof(Leases::value_type) + bytes + PendingElements::bytes_for(elements);
}

bool LeaseTable::make_room(std::uint64_t bytes, std::uint64_t now_ns) {
  if (bytes > options_.pool_bytes) return false;
  // The oldest first.
  for (auto at = leases_.begin(); at != leases_.end() && used_bytes_ > options_.pool_bytes - bytes;) {
    if (now_ns - at->second.at_ns < options_.revocable_after_ns) return false;
    at = at->second.lease.is_in_work ? std::next(at) : erase(at);
  }
  return used_bytes_ <= options_.pool_bytes - bytes;
}

std::uint64_t LeaseTable::grant(Rank holder, Lease lease, std::uint64_t now_ns) {
  const std::uint64_t cost =
      cost_of(lease.copy.size(), lease.pending.size()) + lease.layout.view().pieces().size() * sizeof(ops::Piece);
  used_bytes_ += cost;
  leases_.emplace(Key{++last_id_, holder}, Granted{std::move(lease), cost, now_ns});
  return last_id_;
}

Lease* LeaseTable::find(Rank holder, std::uint64_t id) {
  const auto found = leases_.find({id, holder});
  return found == leases_.end() ? nullptr : &found->second.lease;
}

void LeaseTable::end(Rank holder, std::uint64_t id) {
  if (const auto found = leases_.find({id, holder}); found != leases_.end()) erase(found);
}

void LeaseTable::forget(Rank dead) {
  for (auto at = leases_.begin(); at != leases_.end();) at = at->first.second == dead ? erase(at) : std::next(at);
}

LeaseTable::Leases::iterator LeaseTable::erase(Leases::iterator at) {
  used_bytes_ -= at->second.cost;
  return leases_.erase(at);
}

}  // namespace farsum
