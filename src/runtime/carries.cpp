#include "runtime/carries.hpp"

#include <cstddef>
#include <iterator>
#include <utility>

#include "os/uncancelled.hpp"

namespace farsum {

Carries::Entry Carries::add(CarriedTurns& turns) {
  const MutexGuard lock(mutex_);
  idle_.emplace_back(turns);
  return std::prev(idle_.end());
}

void Carries::remove(Entry entry) {
  // A thread that waits for a condition may be cancelled there, and then the process would stop.
  const os::Uncancelled uncancelled;
  MutexLock lock(mutex_);
  while (current_ == &*entry) lock.wait(turn_has_ended_);
  // Relaxed: no walk follows.
  under_way_.fetch_sub(entry->under_way.load(std::memory_order_relaxed), std::memory_order_relaxed);
  (entry->is_active ? active_ : idle_).erase(entry);
}

// It is counted before its rank comes to it and walks. Release and acquire: who files a letter and then finds nothing
// counted comes before this, so that the walk finds the letter.
void Carries::count_under_way(Entry entry, int more) {
  under_way_.fetch_add(more, std::memory_order_acq_rel);
  if (entry->under_way.fetch_add(more, std::memory_order_relaxed) != 0) return;
  const MutexGuard lock(mutex_);
  if (std::exchange(entry->is_active, true)) return;
  active_.splice(active_.end(), idle_, entry);
}

CarriedTurns::Turn Carries::take_turns() noexcept {
  CarriedTurns::Turn turn;
  // A change, as a mere look might come too late: see count_under_way().
  if (under_way_.fetch_add(0, std::memory_order_acq_rel) == 0 || !turning_.try_claim()) return turn;
  do {
    turn = take_round();
  } while (!turning_.release());
  return turn;
}

// Each once, from the front to the end of the list. One group folds in a round, the next in the following.
CarriedTurns::Turn Carries::take_round() noexcept {
  CarriedTurns::Turn all;
  MutexLock lock(mutex_);
  for (std::size_t left = active_.size(); left > 0 && !active_.empty(); --left) {
    const Entry entry = active_.begin();
    // Relaxed: who counts the first call comes to the mutex behind this.
    if (entry->under_way.load(std::memory_order_relaxed) == 0) {
      entry->is_active = false;
      idle_.splice(idle_.end(), active_, entry);
      continue;
    }
    active_.splice(active_.end(), active_, entry);
    current_ = &*entry;
    lock.unlock();
    const CarriedTurns::Turn turn =
        entry->turns.take_turn(all.is_unfinished ? CarriedTurns::Folding::left : CarriedTurns::Folding::done);
    all.is_unfinished |= turn.is_unfinished;
    all.is_refused |= turn.is_refused;
    lock.lock();
    current_ = nullptr;
    turn_has_ended_.notify_all();
  }
  if (!active_.empty()) active_.splice(active_.end(), active_, active_.begin());
  return all;
}

}  // namespace farsum
