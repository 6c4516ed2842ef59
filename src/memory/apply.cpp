#include "memory/apply.hpp"

#include <algorithm>
#include <utility>

#include "ops/atomics.hpp"
#include "ops/long_moves.hpp"

namespace farsum {

Reduction make_reduction(const ops::KernelSet& kernels, ops::ElementType type, ops::Operator op, const void* alpha,
                         std::uint64_t bytes) {
  Reduction reduction{type, op, alpha, kernels.bulk(type, op), kernels.fetch(type, op), kernels.move_rows};
  if (bytes >= ops::long_move_bytes) [[unlikely]] {
    if (const auto bulk = ops::long_bulk(type, op); bulk != nullptr) reduction.bulk = bulk;
    if (const auto fetch = ops::long_fetch(type, op); fetch != nullptr) reduction.fetch = fetch;
  }
  return reduction;
}

namespace {

void apply_by_atomics(std::byte* memory, std::uint64_t offset, const std::byte* operand, std::byte* result,
                      std::uint64_t bytes, const Reduction& reduction) {
  const std::uint64_t size = reduction.element_bytes();
  for (std::uint64_t done = 0; done < bytes; done += size) {
    ops::atomic_apply(memory + offset + done, operand == nullptr ? nullptr : operand + done,
                      result == nullptr ? nullptr : result + done, reduction.type, reduction.op, reduction.alpha);
  }
}

}  // namespace

Applied apply_reduction(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory, std::uint64_t offset,
                        const std::byte* operand, std::byte* result, std::uint64_t bytes, const Reduction& reduction,
                        std::uint64_t& progress) {
  if (domain.atomics_only) {
    apply_by_atomics(memory, offset, operand, result, bytes, reduction);
    progress = bytes;
    return Applied::done;
  }
  const std::uint64_t size = reduction.element_bytes();
  while (progress < bytes) {
    const std::uint64_t at = offset + progress;
    const std::uint64_t run = domain.run_bytes(at, bytes - progress, size);
    const Applied taken = take_first_stripes(domain, at, run, bytes - progress, agent);
    if (taken != Applied::done) return taken;
    const std::byte* from = operand == nullptr ? nullptr : operand + progress;
    if (result == nullptr) {
      reduction.bulk(memory + at, from, run / size, reduction.alpha);
    } else {
      reduction.fetch(memory + at, from, result + progress, run / size, reduction.alpha);
    }
    release_stripes(domain, at, run);
    progress += run;
  }
  return Applied::done;
}

namespace {

// A row costs so much besides its bytes, and so much may be done under one lock; both in bytes moved.
constexpr std::uint64_t work_of_a_row = 64;
constexpr std::uint64_t most_work = stripe_bytes + work_of_a_row;

}  // namespace

// Rows are named by number, not by a copy that moves on: copies of structs stall where what was just stored by words is
// loaded by vectors.
Applied RowReducer::apply(const Rows& rows) {
  for (std::uint64_t first = 0; first != rows.rows;) {
    const std::uint64_t offset = rows.offset_of(first);
    std::uint64_t count = 1;
    Applied applied = Applied::done;
    if (domain_.atomics_only || rows.row_bytes > domain_.bytes_left_in_stripe(offset)) [[unlikely]] {
      applied = apply_across_stripes(offset, rows.operand_of(first), rows.result_of(first), rows.row_bytes);
    } else {
      count = rows_of_one_stripe(rows, offset, rows.rows - first);
      applied = hold(offset, count * (rows.row_bytes + work_of_a_row), [&] { revoke_ahead(rows, first); });
      if (applied == Applied::done) compute(rows, first, count);
    }
    if (applied != Applied::done) {
      refused_at_ = offset;
      return applied;
    }
    first += count;
  }
  return Applied::done;
}

namespace {

// What another rank's cache has is on its way for as long as some twenty updates take.
constexpr std::size_t pieces_asked_for_ahead = 24;

}  // namespace

// The lines of a coming piece and, where it is another stripe's than the one before, of its lock. Always inline: g++ 12
// takes a function that only prefetches for one without effect, and leaves out calls of it.
template <class List>
[[gnu::always_inline]] inline void RowReducer::ask_for(const List& list, std::size_t piece) const {
  const std::uint64_t offset = list.offset_of(piece);
  __builtin_prefetch(memory_ + offset, 1);
  if (piece == 0 || domain_.stripe_of(offset) != domain_.stripe_of(list.offset_of(piece - 1)))
    __builtin_prefetch(&domain_.lock_of(offset), 1);
}

// Misses overlap, where one update after the other would wait for each.
template <class List>
Applied RowReducer::apply_list(const List& list) {
  const std::uint64_t element_bytes = reduction_.element_bytes();
  const std::byte* operand = list.operand;
  std::byte* result = list.result;
  const std::size_t size = list.size();
  for (std::size_t i = 0; i < std::min(size, pieces_asked_for_ahead); ++i) ask_for(list, i);
  for (std::size_t i = 0; i < size; ++i) {
    if (i + pieces_asked_for_ahead < size) ask_for(list, i + pieces_asked_for_ahead);
    const std::uint64_t offset = list.offset_of(i);
    const std::uint64_t bytes = list.bytes_of(i);
    if (bytes == 0) continue;
    Applied applied = Applied::done;
    if (domain_.atomics_only || bytes > domain_.bytes_left_in_stripe(offset)) [[unlikely]] {
      applied = apply_across_stripes(offset, operand, result, bytes);
    } else {
      applied = hold(offset, bytes + work_of_a_row, [&] { revoke_ahead(list, i); });
      const std::uint64_t elements = bytes == element_bytes ? 1 : bytes / element_bytes;
      if (applied == Applied::done && result == nullptr)
        reduction_.bulk(memory_ + offset, operand, elements, reduction_.alpha);
      else if (applied == Applied::done)
        reduction_.fetch(memory_ + offset, operand, result, elements, reduction_.alpha);
    }
    if (applied != Applied::done) {
      refused_at_ = offset;
      refused_piece_ = i;
      return applied;
    }
    if (operand != nullptr) operand += bytes;
    if (result != nullptr) result += bytes;
  }
  return Applied::done;
}

template Applied RowReducer::apply_list(const PieceList& list);
template Applied RowReducer::apply_list(const ElementList& list);

// Applies one row or piece.
Applied RowReducer::apply_across_stripes(std::uint64_t offset, const std::byte* operand, std::byte* result,
                                         std::uint64_t bytes) {
  let_go();
  std::uint64_t progress = 0;
  return apply_reduction(domain_, agent_, memory_, offset, operand, result, bytes, reduction_, progress);
}

// Counts those of the `left` rows from `offset` on that lie in its stripe, as the first does, and are not too much work
// for one lock.
std::uint64_t RowReducer::rows_of_one_stripe(const Rows& rows, std::uint64_t offset, std::uint64_t left) const {
  if (left == 1) return 1;
  const std::uint64_t most = std::max<std::uint64_t>(1, most_work / (rows.row_bytes + work_of_a_row));
  std::uint64_t fitting = most;
  const std::uint64_t bytes = domain_.bytes_left_in_stripe(offset);
  if (rows.stride > 0) fitting = 1 + (bytes - rows.row_bytes) / static_cast<std::uint64_t>(rows.stride);
  if (rows.stride < 0) fitting = 1 + (stripe_bytes - bytes) / (0 - static_cast<std::uint64_t>(rows.stride));
  return std::min({left, fitting, most});
}

// Takes the stripe of the offset unless it is held already and may be kept.
template <class RevokeAhead>
Applied RowReducer::hold(std::uint64_t offset, std::uint64_t work, RevokeAhead&& revoke_ahead) {
  const std::uint64_t stripe = domain_.stripe_of(offset);
  if (held_ != nullptr && stripe == held_stripe_ && work <= work_left_) {
    work_left_ -= work;
    return Applied::done;
  }
  let_go();
  StripeLock& lock = domain_.lock_of(offset);
  if (!lock.try_acquire(agent_.id)) {
    if (lock.is_lock_free()) [[unlikely]]
      revoke_ahead();
    const Applied taken = take_stripe(lock, agent_);
    if (taken != Applied::done) return taken;
  }
  held_ = &lock;
  held_stripe_ = stripe;
  work_left_ = most_work - std::min(work, most_work);
  return Applied::done;
}

// Revokes the stripes of the rows from `row` on, as far as they are lock-free and go together.
[[gnu::noinline]] void RowReducer::revoke_ahead(const Rows& rows, std::uint64_t row) const {
  const auto distance = static_cast<std::uint64_t>(rows.stride < 0 ? -rows.stride : rows.stride);
  const std::uint64_t left = rows.rows - row;
  // A step of so many rows passes over no stripe.
  const std::uint64_t step = distance == 0 ? left : std::max<std::uint64_t>(1, stripe_bytes / distance);
  const std::uint64_t count = std::min<std::uint64_t>((left - 1) / step + 1, most_revoked_together);
  const auto stripe_at = [&](std::uint32_t i) -> StripeLock& {
    return domain_.lock_of(rows.offset_of(row + i * step));
  };
  revoke_stripes<SystemAtomics>(static_cast<std::uint32_t>(count), stripe_at, agent_.id, permits_of(agent_));
}

// Does the same for the pieces from `piece` on.
template <class List>
[[gnu::noinline]] void RowReducer::revoke_ahead(const List& list, std::size_t piece) const {
  constexpr std::size_t most_looked_at = 4096;  // takes about as long as the revocation
  const auto stripe_at = [&](std::uint32_t i) -> StripeLock& { return domain_.lock_of(list.offset_of(piece + i)); };
  revoke_stripes<SystemAtomics>(static_cast<std::uint32_t>(std::min(list.size() - piece, most_looked_at)), stripe_at,
                                agent_.id, permits_of(agent_));
}

void RowReducer::let_go() {
  if (held_ != nullptr) held_->release();
  held_ = nullptr;
}

void RowReducer::compute(const Rows& rows, std::uint64_t first, std::uint64_t count) const {
  std::byte* target = memory_ + rows.offset_of(first);
  const std::byte* operand = rows.operand_of(first);
  std::byte* result = rows.result_of(first);
  const bool is_short = rows.row_bytes < ops::long_row_bytes;
  if (is_short && reduction_.op == ops::Operator::replace && result == nullptr) {
    reduction_.move_rows(target, rows.stride, operand, rows.operand_stride, rows.row_bytes, count);
    return;
  }
  if (is_short && reduction_.op == ops::Operator::no_op && result != nullptr) {
    reduction_.move_rows(result, rows.result_stride, target, rows.stride, rows.row_bytes, count);
    return;
  }
  const std::uint64_t elements = rows.row_bytes / reduction_.element_bytes();
  for (std::uint64_t row = first; row != first + count; ++row) {
    if (result == nullptr) {
      reduction_.bulk(memory_ + rows.offset_of(row), rows.operand_of(row), elements, reduction_.alpha);
    } else {
      reduction_.fetch(memory_ + rows.offset_of(row), rows.operand_of(row), rows.result_of(row), elements,
                       reduction_.alpha);
    }
  }
}

Applied apply_compare_and_swap(const AtomicDomain& domain, const LockAgent& agent, std::byte* memory,
                               std::uint64_t offset, const std::byte* expected, const std::byte* desired,
                               std::byte* result, ops::ElementType type) {
  if (domain.atomics_only) {
    ops::atomic_compare_and_swap(memory + offset, expected, desired, result, type);
    return Applied::done;
  }
  const std::uint64_t size = ops::size_of(type);
  const Applied taken = take_stripes(domain, offset, size, agent);
  if (taken != Applied::done) return taken;
  ops::plain_compare_and_swap(memory + offset, expected, desired, result, type);
  release_stripes(domain, offset, size);
  return Applied::done;
}

}  // namespace farsum
