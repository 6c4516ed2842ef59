#include "datatypes.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "library.hpp"

namespace farsum::mpi {
namespace {

// Numbers and handles in a type's description above which reading it again costs more than keeping it ever does.
constexpr std::size_t always_cached_work = 256;
constexpr std::uint32_t most_skips = 64;

}  // namespace

bool Datatypes::open() {
  if (keyval_ != MPI_KEYVAL_INVALID) return true;
  if (!basics_.fill()) return false;
  return library().Type_create_keyval(MPI_TYPE_NULL_COPY_FN, &Datatypes::attribute_deleted, &keyval_, this) ==
         MPI_SUCCESS;
}

void Datatypes::close() {
  if (keyval_ != MPI_KEYVAL_INVALID) library().Type_free_keyval(&keyval_);
  keyval_ = MPI_KEYVAL_INVALID;
}

std::size_t Datatypes::cached() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size() - free_entries_.size();
}

const FlatType* Datatypes::flat_uncached(MPI_Datatype type, std::optional<FlatType>& scratch, FlattenResult& result) {
  result = FlattenResult::ok;
  if (const FlatType* known = find_cached(type)) return known;
  std::size_t work = 0;
  result = flatten(basics_, type, scratch.emplace(), &work);
  if (result != FlattenResult::ok) return nullptr;
  return worth_keeping(type, work) ? keep(type, *scratch) : &*scratch;
}

const FlatType* Datatypes::find_cached(MPI_Datatype type) {
  Slot& slot = slots_[place(type)];
  // Relaxed: whoever misses an entry that is just being made finds it again in keep, under the lock.
  if (slot.entry.load(std::memory_order_relaxed) == nullptr) return nullptr;
  const std::scoped_lock lock(mutex_);
  for (Entry* entry = slot.first; entry != nullptr; entry = entry->next) {
    if (entry->key.load(std::memory_order_relaxed) != handle_key(type)) continue;  // relaxed: written under the lock
    slot.entry.store(entry, std::memory_order_release);  // pairs with the acquire load in flat
    return entry->use();
  }
  return nullptr;
}

// Types that are made, used once and freed are cheaper to flatten than to keep, and a program that does so does it
// again at the same handle. So a place whose entries went unused is left alone for a while, longer each time.
bool Datatypes::worth_keeping(MPI_Datatype type, std::size_t work) {
  if (keyval_ == MPI_KEYVAL_INVALID || basics_.find(type) != nullptr) return false;
  if (work > always_cached_work) return true;
  Slot& slot = slots_[place(type)];
  // Relaxed: an update lost between threads only changes how soon a type is kept.
  const std::uint32_t left = slot.skips_left.load(std::memory_order_relaxed);
  if (left == 0) return true;
  slot.skips_left.store(left - 1, std::memory_order_relaxed);
  return false;
}

const FlatType* Datatypes::keep(MPI_Datatype type, FlatType& flat) {
  const std::scoped_lock keeping(keeping_);
  if (const FlatType* known = find_cached(type)) return known;
  Entry* entry = take_entry();
  if (entry == nullptr) return &flat;
  // Not under mutex_: the library takes a lock of its own, under which it may be calling attribute_deleted.
  if (library().Type_set_attr(type, keyval_, entry) != MPI_SUCCESS) {
    const std::scoped_lock lock(mutex_);
    free_entries_.push_back(entry);
    return &flat;
  }
  entry->flat = std::move(flat);
  publish(type, entry);
  return &entry->flat;
}

// An entry that nobody knows yet; null if there is no memory for one.
Datatypes::Entry* Datatypes::take_entry() {
  const std::scoped_lock lock(mutex_);
  if (free_entries_.empty()) {
    try {
      free_entries_.reserve(entries_.size() + 1);
      entries_.push_back(std::make_unique<Entry>());
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return entries_.back().get();
  }
  Entry* entry = free_entries_.back();
  free_entries_.pop_back();
  return entry;
}

void Datatypes::publish(MPI_Datatype type, Entry* entry) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[place(type)];
  entry->place = place(type);
  entry->used.store(false, std::memory_order_relaxed);  // relaxed: a hint
  entry->next = std::exchange(slot.first, entry);
  // Pairs with the acquire loads in flat: who sees the key sees the flattened type.
  entry->key.store(handle_key(type), std::memory_order_release);
  slot.entry.store(entry, std::memory_order_release);
}

// The type goes: so does what was kept of it, before its handle can be another's.
void Datatypes::forget(Entry* entry) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[entry->place];
  // Relaxed: who uses the next type with this handle has heard of it from the thread that freed this one.
  entry->key.store(no_key, std::memory_order_relaxed);
  Entry** link = &slot.first;
  while (*link != nullptr && *link != entry) link = &(*link)->next;
  if (*link == entry) *link = entry->next;
  slot.entry.store(slot.first, std::memory_order_release);  // pairs with the acquire load in flat
  slot.skips = entry->used.load(std::memory_order_relaxed) ? 0 : std::min(most_skips, slot.skips * 2 + 1);
  slot.skips_left.store(slot.skips, std::memory_order_relaxed);  // relaxed: a hint
  entry->flat = FlatType{};
  free_entries_.push_back(entry);
}

int Datatypes::attribute_deleted(MPI_Datatype, int, void* value, void* self) {
  static_cast<Datatypes*>(self)->forget(static_cast<Entry*>(value));
  return MPI_SUCCESS;
}

}  // namespace farsum::mpi
