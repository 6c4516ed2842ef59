#include "ways.hpp"

#include <algorithm>
#include <vector>

namespace gups {

namespace {

using apps::require;
using Batch = std::span<const std::uint64_t>;

std::uint64_t modify(farsum_op op, std::uint64_t word, std::uint64_t random) {
  return op == FARSUM_BXOR ? word ^ random : word + random;
}

// Paper 4, figure 1a. The second epoch is needed because the first one's end is what delivers the word; between the two
// another rank may update it, and that update is lost.
void get_modify_put(farsum_window window, Location at, farsum_op op, std::uint64_t random) {
  std::uint64_t word = 0;
  require(farsum_lock(window, at.rank, FARSUM_LOCK_SHARED));
  require(farsum_get(window, at.rank, at.offset, &word, sizeof word));
  require(farsum_unlock(window, at.rank));
  word = modify(op, word, random);
  require(farsum_lock(window, at.rank, FARSUM_LOCK_SHARED));
  require(farsum_put(window, at.rank, at.offset, &word, sizeof word));
  require(farsum_unlock(window, at.rank));
}

void update_by_gmp(const Options& options, const Table& table, Updates& updates) {
  updates.for_each_batch(
      1, [&](Batch batch) { get_modify_put(table.window(), table.locate(batch.front()), options.op, batch.front()); });
}

void update_by_gmp_under_mutex(const Options& options, const Table& table, Updates& updates) {
  farsum_mutex mutexes{};
  require(farsum_mutex_create(farsum_world(), 1, &mutexes));
  updates.for_each_batch(1, [&](Batch batch) {
    const Location at = table.locate(batch.front());
    require(farsum_mutex_lock(mutexes, at.rank, 0));
    get_modify_put(table.window(), at, options.op, batch.front());
    require(farsum_mutex_unlock(mutexes, at.rank, 0));
  });
  require(farsum_mutex_free(&mutexes));
}

// Paper 4, figure 1b.
void accumulate_in_an_epoch_each(const Options& options, const Table& table, Updates& updates) {
  const farsum_window window = table.window();
  updates.for_each_batch(1, [&](Batch batch) {
    const Location at = table.locate(batch.front());
    require(farsum_lock(window, at.rank, FARSUM_LOCK_SHARED));
    require(farsum_accumulate(window, at.rank, at.offset, batch.data(), 1, FARSUM_UINT64, options.op));
    require(farsum_unlock(window, at.rank));
  });
}

// Also the aggregated, the direct and the card way: how an accumulate is carried out is the window's matter.
void accumulate_in_one_epoch(const Options& options, const Table& table, Updates& updates) {
  const farsum_window window = table.window();
  require(farsum_lock_all(window));
  updates.for_each_batch(options.batch, [&](Batch batch) {
    for (const std::uint64_t& random : batch) {
      const Location at = table.locate(random);
      require(farsum_accumulate(window, at.rank, at.offset, &random, 1, FARSUM_UINT64, options.op));
    }
    require(farsum_flush(window, FARSUM_ALL_RANKS));
  });
  require(farsum_unlock_all(window));
}

// The updates of a batch, sorted by target: for each the offsets and the operands, in order.
class Sorter {
 public:
  Sorter(int ranks, std::uint64_t batch) : offsets_(ranks), operands_(ranks) {
    for (auto& list : offsets_) list.reserve(batch);
    for (auto& list : operands_) list.reserve(batch);
  }

  void sort(const Table& table, Batch batch) {
    for (auto& list : offsets_) list.clear();
    for (auto& list : operands_) list.clear();
    for (const std::uint64_t random : batch) {
      const Location at = table.locate(random);
      offsets_[static_cast<std::size_t>(at.rank)].push_back(static_cast<std::int64_t>(at.offset));
      operands_[static_cast<std::size_t>(at.rank)].push_back(random);
    }
  }

  [[nodiscard]] std::size_t ranks() const { return offsets_.size(); }
  [[nodiscard]] const std::vector<std::int64_t>& offsets(std::size_t rank) const { return offsets_[rank]; }
  [[nodiscard]] const std::vector<std::uint64_t>& operands(std::size_t rank) const { return operands_[rank]; }

 private:
  std::vector<std::vector<std::int64_t>> offsets_;
  std::vector<std::vector<std::uint64_t>> operands_;
};

void accumulate_list(farsum_window window, int target, const std::vector<std::int64_t>& offsets,
                     const std::vector<std::uint64_t>& operands, farsum_op op) {
  farsum_layout scattered{};
  scattered.kind = FARSUM_INDEXED;
  scattered.bytes = sizeof(std::uint64_t);
  scattered.pieces = offsets.size();
  scattered.offsets = offsets.data();

  farsum_operation operation{};
  operation.struct_bytes = sizeof operation;
  operation.kind = FARSUM_ACCUMULATE;
  operation.target = target;
  operation.type = FARSUM_UINT64;
  operation.op = op;
  operation.count = operands.size();
  operation.origin = operands.data();
  operation.target_layout = &scattered;
  require(farsum_operate(window, &operation, nullptr));
}

void accumulate_in_batches(const apps::Job& job, const Options& options, const Table& table, Updates& updates) {
  const farsum_window window = table.window();
  Sorter sorter(job.size(), options.batch);
  require(farsum_lock_all(window));
  updates.for_each_batch(options.batch, [&](Batch batch) {
    sorter.sort(table, batch);
    for (std::size_t rank = 0; rank < sorter.ranks(); ++rank) {
      if (sorter.offsets(rank).empty()) continue;
      accumulate_list(window, static_cast<int>(rank), sorter.offsets(rank), sorter.operands(rank), options.op);
    }
    require(farsum_flush(window, FARSUM_ALL_RANKS));
  });
  require(farsum_unlock_all(window));
}

}  // namespace

farsum_window_options window_options(Way way, const Options& options, int ranks) {
  farsum_window_options window{};
  window.struct_bytes = sizeof window;
  window.name = "gups table";
  // CPU atomics are what these two ways are about. With another path forced the promise would only send everything to
  // the owner.
  const bool may_be_direct = options.path.empty() || options.path == "auto" || options.path == "direct";
  if (way == Way::direct || (way == Way::batched && may_be_direct)) window.promises = FARSUM_SINGLE_ELEMENT;
  if (way == Way::card) window.promises = FARSUM_NETWORK_ONLY;
  if (way == Way::aggregated) {
    // Half an even share: the first messages are then under way while the rest of the batch is generated.
    const auto share = static_cast<std::uint32_t>(options.batch / 2 / static_cast<std::uint64_t>(ranks));
    window.aggregate_limit = options.aggregate != 0 ? options.aggregate : std::max(share, 1u);
  }
  return window;
}

void update(Way way, const apps::Job& job, const Options& options, Table& table, Updates& updates) {
  switch (way) {
    case Way::gmp:
      return update_by_gmp(options, table, updates);
    case Way::gmp_mutex:
      return update_by_gmp_under_mutex(options, table, updates);
    case Way::accumulate:
      if (options.epochs == Epochs::per_update) return accumulate_in_an_epoch_each(options, table, updates);
      return accumulate_in_one_epoch(options, table, updates);
    case Way::aggregated:
    case Way::direct:
    case Way::card:
      return accumulate_in_one_epoch(options, table, updates);
    case Way::batched:
      return accumulate_in_batches(job, options, table, updates);
  }
}

bool update_with_bare_atomics(const Options& options, const Table& table, Updates& updates) {
  const std::vector<std::uint64_t*> parts = table.mapped_parts();
  if (parts.empty()) return false;
  updates.for_each_batch(options.batch, [&](Batch batch) {
    for (const std::uint64_t random : batch) {
      const Location at = table.locate(random);
      std::uint64_t* word = parts[static_cast<std::size_t>(at.rank)] + at.offset / sizeof(std::uint64_t);
      // Relaxed is enough: nothing is published by an update, and the barrier before verification orders all of them.
      if (options.op == FARSUM_BXOR) {
        __atomic_fetch_xor(word, random, __ATOMIC_RELAXED);
      } else {
        __atomic_fetch_add(word, random, __ATOMIC_RELAXED);
      }
    }
  });
  return true;
}

}  // namespace gups
