#include "collectives/teardown.hpp"

namespace farsum {
namespace {

// A word of a block: the round, and below it the code.
constexpr unsigned code_bits = 8;
constexpr std::uint64_t code_mask = (1u << code_bits) - 1;
// The word of a rank that has gone: it came to every round, and is ready.
constexpr std::uint64_t gone = ~std::uint64_t{0} & ~code_mask;

}  // namespace

// ---- circles ----

void TeardownCircle::wait_for(Rank rank, const std::atomic<std::uint64_t>& word, std::uint64_t least) {
  // Acquire pairs with the release in take_out: from then on only the thread that waits here touches what follows.
  if (out_.load(std::memory_order_acquire)) return stop();
  const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&word) - words_.segment);
  if (waits_.load(std::memory_order_relaxed) && current_.rank == rank && current_.offset == offset &&
      current_.least == least)
    return;
  current_ = {rank, offset, least};
  awaited_by_(me_).publish(++serial_, current_);
  waits_.store(true, std::memory_order_relaxed);
  seen_.clear();
  seen_at_ = std::chrono::steady_clock::now();
}

void TeardownCircle::stop() {
  if (waits_.exchange(false, std::memory_order_relaxed)) awaited_by_(me_).withdraw();
}

bool TeardownCircle::is_closed() {
  if (out_.load(std::memory_order_acquire) || !waits_.load(std::memory_order_relaxed)) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - seen_at_ < patience_) return false;
  std::vector<std::uint64_t> circle = look();
  if (!circle.empty() && circle == seen_) return true;
  seen_ = std::move(circle);
  seen_at_ = now;
  return false;
}

// The waits of a circle that begins and ends at this rank; empty when there is none.
std::vector<std::uint64_t> TeardownCircle::look() const {
  std::vector<std::uint64_t> waits;
  Rank rank = me_;
  do {
    AwaitedRank::Wait wait;
    const AwaitedRank& awaited = awaited_by_(rank);
    const std::uint64_t ticket = awaited.read(wait);
    if (ticket == 0 || waits.size() == ranks_) return {};
    // Pairs with the store in agree. The word is there as long as the wait stands.
    const std::optional<std::uint64_t> word = words_.read(wait.offset);
    const bool has_come = !word || *word >> code_bits >= wait.least;
    if (has_come || !awaited.stands(ticket)) return {};
    waits.push_back(ticket);
    rank = wait.rank;
  } while (rank != me_);
  return waits;
}

// ---- teardown ----

std::atomic<std::uint64_t>& Teardown::said(std::uint32_t rank, std::uint64_t round) const {
  auto* words =
      reinterpret_cast<std::atomic<std::uint64_t>*>(reinterpret_cast<std::byte*>(&block_) + sizeof(TeardownBlock));
  // Two, because a rank may come to the next round before this one's words were read everywhere; not to the one after.
  return words[2 * std::uint64_t{rank} + (round & 1)];
}

Status Teardown::agree(Code mine, TeardownCircle& circle, const char* doing, Answer& answer) {
  const auto size = static_cast<std::uint32_t>(ranks_.size());
  ++round_;
  // seq_cst here and in the loads below: of two ranks that come last at once one sees both, and wakes the others.
  said(my_rank_, round_).store(round_ << code_bits | static_cast<std::uint64_t>(mine), std::memory_order_seq_cst);
  std::uint32_t missing = 0;
  const auto all_came = [&] {
    while (missing < size && said(missing, round_).load(std::memory_order_seq_cst) >> code_bits >= round_) ++missing;
    return missing == size;
  };
  if (all_came()) {
    block_.events.notify_all();
  } else {
    const auto in_a_circle = [&] {
      circle.wait_for(ranks_[missing], said(missing, round_), round_);
      return circle.is_closed();
    };
    Status status = waiter_.wait(
        block_.events, [&] { return all_came() || in_a_circle(); }, doing);
    circle.stop();
    if (!status.is_ok()) return status;
  }
  answer = {};
  answer.all_came = missing == size;
  for (std::uint32_t rank = 0; rank < size && answer.code == Code::ok; ++rank) {
    const std::uint64_t word = said(rank, round_).load(std::memory_order_acquire);
    if (word >> code_bits < round_) continue;
    answer.code = static_cast<Code>(word & code_mask);
    answer.some_left = answer.some_left || word == gone;
    answer.rank = rank;
  }
  if (answer.code != Code::ok || answer.all_came) return {};
  for (std::uint64_t parity = 0; parity < 2; ++parity) {
    // Release: this rank's operations come before; pairs with the loads above.
    said(my_rank_, parity).store(gone, std::memory_order_release);
  }
  return {};
}

// Release pairs with the acquire load in all_ended_access.
void Teardown::end_access() { block_.ended_access.fetch_add(1, std::memory_order_release); }

bool Teardown::all_ended_access() const { return block_.ended_access.load(std::memory_order_acquire) == ranks_.size(); }

// Acquire and release: the last to depart comes after everything the others did with the block.
bool Teardown::depart() { return block_.departed.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_.size(); }

}  // namespace farsum
