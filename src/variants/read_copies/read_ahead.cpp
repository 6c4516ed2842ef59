#include "variants/read_copies/read_ahead.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

#include "ops/element_type.hpp"
#include "protocol/packed_sides.hpp"

namespace farsum {
namespace {

// Answers after which a block is worth fetching as soon as it is read anew.
constexpr std::uint32_t few_answers = 4;
constexpr std::uint64_t most_atomic_bytes = 8;

// Calls fn(index of the block, offset in it, offset of the result, bytes) for all that an operation reads, until it
// returns false.
template <class Fn>
bool for_each_stretch(const Operation& operation, Fn&& fn) {
  bool goes_on = true;
  ops::for_each_pair(operation.target_layout, operation.result_layout, operation.bytes, 1, ops::no_piece_limit,
                     [&](std::int64_t target_offset, std::int64_t result_offset, std::uint64_t bytes) {
                       std::uint64_t from = operation.offset + static_cast<std::uint64_t>(target_offset);
                       while (bytes != 0 && goes_on) {
                         const std::uint64_t within = from % ReadAhead::block_bytes;
                         const std::uint64_t stretch = std::min(bytes, ReadAhead::block_bytes - within);
                         goes_on = fn(from / ReadAhead::block_bytes, within, result_offset, stretch);
                         from += stretch;
                         result_offset += static_cast<std::int64_t>(stretch);
                         bytes -= stretch;
                       }
                       return goes_on;
                     });
  return goes_on;
}

// Whether all elements of the target lie at multiples of their size.
bool is_at_multiples(const Operation& operation, std::uint64_t size) {
  const auto is_multiple = [size](std::int64_t at) { return static_cast<std::uint64_t>(at) % size == 0; };
  const ops::LayoutView& layout = operation.target_layout;
  const std::span<const ops::Piece> pieces = layout.pieces();
  return operation.offset % size == 0 && std::all_of(layout.strides().begin(), layout.strides().end(), is_multiple) &&
         std::all_of(pieces.begin(), pieces.end(), [&](const ops::Piece& piece) { return is_multiple(piece.offset); });
}

bool is_atomic_read(const Operation& operation) { return operation.kind == OperationKind::get_accumulate; }

}  // namespace

ReadAhead::ReadAhead(const Options& options, const std::vector<std::uint64_t>& part_bytes)
    : options_(options), parts_(std::make_unique<Part[]>(part_bytes.size())), size_(part_bytes.size()) {
  for (std::size_t target = 0; target < size_; ++target) parts_[target].bytes = part_bytes[target];
  options_.copies->join(*this);
}

ReadAhead::~ReadAhead() {
  options_.copies->leave(*this);
  for (std::size_t target = 0; target < size_; ++target) {
    for (auto& [index, block] : parts_[target].blocks) let_go(block);
  }
}

bool ReadAhead::is_read(const Operation& operation) const {
  if (operation.bytes > most_read_bytes || operation.notify) return false;
  if (operation.kind == OperationKind::get) return true;
  if (operation.kind != OperationKind::get_accumulate || tells_of_others(operation) || options_.only_gets) return false;
  const std::uint64_t size = ops::size_of(operation.type);
  return size <= most_atomic_bytes && is_at_multiples(operation, size);
}

bool ReadAhead::answer(std::uint32_t target, const Operation& operation) {
  Part& part = parts_[target];
  // Relaxed: whoever does not see the blocks asks the target.
  if (!part.has_blocks.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(part.mutex);
  const Moment moment = this->moment();
  const bool atomic = is_atomic_read(operation);
  // Two looks, for a result is written only where all of it can be.
  std::uint64_t last = ~std::uint64_t{0};
  Block* block = nullptr;
  const auto find = [&](std::uint64_t index) {
    if (index != last) block = find_valid(part, index, moment, atomic);
    last = index;
    return block != nullptr;
  };
  if (!for_each_stretch(operation,
                        [&](std::uint64_t index, std::uint64_t, std::int64_t, std::uint64_t) { return find(index); }))
    return false;
  for_each_stretch(operation,
                   [&](std::uint64_t index, std::uint64_t within, std::int64_t result_offset, std::uint64_t bytes) {
                     if (!find(index)) return false;
                     std::memcpy(operation.result + result_offset, block->bytes.get() + within, bytes);
                     return true;
                   });
  if (block != nullptr) ++block->answers;
  options_.copies->answered.fetch_add(1, std::memory_order_relaxed);  // statistics
  return true;
}

void ReadAhead::sent(std::uint32_t target, const Operation& operation) noexcept {
  Part& part = parts_[target];
  if (is_full() || knows_too_many()) [[unlikely]]
    options_.copies->reclaim(options_.hearing->times());
  const std::lock_guard lock(part.mutex);
  const Moment moment = this->moment();
  try {
    std::uint64_t last = ~std::uint64_t{0};
    for_each_stretch(operation, [&](std::uint64_t index, std::uint64_t, std::int64_t, std::uint64_t) {
      if (index != last) touch(part, index, moment, is_atomic_read(operation));
      last = index;
      return true;
    });
  } catch (const std::bad_alloc&) {
    // What was not noted is asked of its target.
  }
}

// It comes behind all reads of the round, so that none of them can have found what is newer.
std::size_t ReadAhead::end_round(std::uint32_t target, Fetch fetch) noexcept {
  Part& part = parts_[target];
  if (!part.has_blocks.load(std::memory_order_relaxed)) return 0;  // Relaxed: see answer()
  const std::lock_guard lock(part.mutex);
  ++part.round;
  if (part.wanted.empty()) return 0;
  std::size_t started = 0;
  const Moment moment = this->moment();
  for (const std::uint64_t index : part.wanted) {
    const auto found = part.blocks.find(index);
    if (found == part.blocks.end()) continue;
    Block& block = found->second;
    block.is_wanted = false;
    if (block.touched_heard == moment.heard && !block.is_fetched) start(part, index, block, moment, fetch);
    if (block.is_fetched) ++started;
  }
  part.wanted.clear();
  return started;
}

void ReadAhead::changed(std::uint32_t target, std::uint64_t low, std::uint64_t high) {
  Part& part = parts_[target];
  // Relaxed: blocks that were fetched before the change was sent are seen, for both passed the lock of the engine's
  // peer.
  if (low >= high || !part.has_blocks.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(part.mutex);
  const std::uint64_t first = low / block_bytes;
  const std::uint64_t last = (high - 1) / block_bytes;
  const auto spoil = [](Block& block) {
    block.is_valid = false;
    block.is_spoiled = true;
  };
  if (last - first >= part.blocks.size()) {
    for (auto& [index, block] : part.blocks) {
      if (index >= first && index <= last) spoil(block);
    }
    return;
  }
  for (std::uint64_t index = first; index <= last; ++index) {
    if (const auto found = part.blocks.find(index); found != part.blocks.end()) spoil(found->second);
  }
}

ReadAhead::Block* ReadAhead::find_valid(Part& part, std::uint64_t index, const Moment& moment, bool atomic) {
  const auto found = part.blocks.find(index);
  if (found == part.blocks.end()) return nullptr;
  Block& block = found->second;
  finish_fetch(block);
  return is_valid(block, moment, atomic) ? &block : nullptr;
}

bool ReadAhead::is_valid(const Block& block, const Moment& moment, bool atomic) const {
  return block.is_valid && block.moment.heard == moment.heard && moment.ns - block.moment.ns < options_.age_ns &&
         (block.is_atomic || !atomic);
}

void ReadAhead::touch(Part& part, std::uint64_t index, const Moment& moment, bool atomic) {
  auto found = part.blocks.find(index);
  if (found == part.blocks.end()) {
    if (knows_too_many()) return;
    found = part.blocks.try_emplace(index).first;
    options_.copies->known.fetch_add(1, std::memory_order_relaxed);  // a bound
  }
  Block& block = found->second;
  part.has_blocks.store(true, std::memory_order_relaxed);  // see answer() and changed()
  finish_fetch(block);
  // What was sent may find newer contents than the copy, or the one that is on its way: it answers nothing any more,
  // lest they seem to go back.
  block.is_valid = false;
  block.is_spoiled = true;
  if (block.is_refused || block.is_fetched) return;
  const bool was_useful = block.answers >= few_answers;
  const bool again = block.touched_heard == moment.heard && block.touched_round != part.round;
  block.touched_heard = moment.heard;
  block.touched_round = part.round;
  if (block.is_wanted) {
    block.is_atomic = block.is_atomic || atomic;
  } else if (again || was_useful) {
    part.wanted.push_back(index);
    block.is_wanted = true;
    block.is_atomic = atomic;
  }
}

void ReadAhead::start(Part& part, std::uint64_t index, Block& block, const Moment& moment, Fetch fetch) {
  if (block.bytes == nullptr) {
    if (is_full()) return;
    block.bytes.reset(new (std::nothrow) std::byte[block_bytes]);
    if (block.bytes == nullptr) return;
    options_.copies->blocks.fetch_add(1, std::memory_order_relaxed);  // a bound
  }
  Operation whole;
  whole.kind = block.is_atomic ? OperationKind::get_accumulate : OperationKind::get;
  whole.op = ops::Operator::no_op;
  whole.offset = index * block_bytes;
  whole.bytes = std::min(block_bytes, part.bytes - whole.offset);
  whole.target_layout = whole.operand_layout = whole.result_layout = ops::LayoutView::contiguous(whole.bytes);
  whole.result = block.bytes.get();
  block.is_spoiled = false;
  block.moment = moment;
  block.answers = 0;
  // Relaxed: nobody looks before it is sent.
  block.told.done.store(false, std::memory_order_relaxed);
  block.told.code.store(Code::ok, std::memory_order_relaxed);
  // Relaxed, in both cases: one that was counted keeps the block until it is told, whatever became of it.
  const std::uint64_t before = part.fetches.count.load(std::memory_order_relaxed);
  try {
    block.is_fetched = fetch(whole, part.fetches, block.told);
  } catch (const std::bad_alloc&) {
    block.is_fetched = part.fetches.count.load(std::memory_order_relaxed) != before;
  }
  if (block.is_fetched) options_.copies->fetched.fetch_add(1, std::memory_order_relaxed);  // statistics
}

void ReadAhead::finish_fetch(Block& block) {
  // Acquire pairs with the release in OriginEngine::finish_job.
  if (!block.is_fetched || !block.told.done.load(std::memory_order_acquire)) return;
  block.is_fetched = false;
  block.is_refused = block.told.code.load(std::memory_order_relaxed) != Code::ok;  // Relaxed: it comes before `done`.
  block.is_valid = !block.is_refused && !block.is_spoiled;
}

// Relaxed: bounds and statistics.
void ReadAhead::let_go(const Block& block) {
  if (block.bytes != nullptr) options_.copies->blocks.fetch_sub(1, std::memory_order_relaxed);
  options_.copies->known.fetch_sub(1, std::memory_order_relaxed);
}

void ReadAhead::drop_older_than(std::uint64_t heard) {
  for (std::size_t target = 0; target < size_; ++target) {
    Part& part = parts_[target];
    const std::unique_lock lock(part.mutex, std::try_to_lock);
    for (auto at = part.blocks.begin(); lock.owns_lock() && at != part.blocks.end();) {
      Block& block = at->second;
      finish_fetch(block);
      const bool is_old = block.touched_heard != heard && block.moment.heard != heard;
      if (!is_old || block.is_fetched || block.is_wanted) {
        ++at;
        continue;
      }
      let_go(block);
      at = part.blocks.erase(at);
    }
  }
}

void ReadCopies::join(ReadAhead& copies) {
  const std::lock_guard lock(mutex_);
  all_.push_back(&copies);
  are_used_.store(true, std::memory_order_relaxed);
}

void ReadCopies::leave(ReadAhead& copies) {
  const std::lock_guard lock(mutex_);
  all_.erase(std::find(all_.begin(), all_.end(), &copies));
}

void ReadCopies::reclaim(std::uint64_t heard) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || reclaimed_ == heard) return;
  reclaimed_ = heard;
  for (ReadAhead* const copies : all_) copies->drop_older_than(heard);
}

}  // namespace farsum
