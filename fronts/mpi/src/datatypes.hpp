// Every datatype that a call may name, flattened, with a cache whose entries belong to the types: a type attribute's
// delete callback removes them, because libraries reuse handles at once.
//
// Any thread may look up, several at a time, types that no other thread is freeing (which MPI forbids anyway).
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "basic_types.hpp"
#include "flat_type.hpp"

namespace farsum::mpi {

class Datatypes {
 public:
  Datatypes() = default;
  Datatypes(const Datatypes&) = delete;
  Datatypes& operator=(const Datatypes&) = delete;

  // After MPI is initialised: fills the tables, makes the attribute's key. False if the library refuses.
  [[nodiscard]] bool open();
  // Before MPI is finalised. Types that still live keep their entries until they go; this object must outlive them.
  void close();

  [[nodiscard]] const BasicType* basic(MPI_Datatype type) const { return basics_.find(type); }
  [[nodiscard]] const BasicOp* op(MPI_Op handle) const { return basics_.find_op(handle); }
  [[nodiscard]] const BasicTypes& basics() const { return basics_; }

  // The flattened type: a cached one, or `scratch` made. Null with `result` set if it cannot be had. Valid until the
  // type is freed or `scratch` goes.
  [[nodiscard]] const FlatType* flat(MPI_Datatype type, std::optional<FlatType>& scratch, FlattenResult& result) {
    // Pairs with the release stores in keep and find_cached.
    Entry* entry = slots_[place(type)].entry.load(std::memory_order_acquire);
    if (entry != nullptr && entry->key.load(std::memory_order_acquire) == handle_key(type)) [[likely]] {
      return entry->use();
    }
    return flat_uncached(type, scratch, result);
  }

  // Types cached at this moment.
  [[nodiscard]] std::size_t cached() const;

 private:
  static constexpr std::uint64_t no_key = ~std::uint64_t{0};
  static constexpr unsigned slot_bits = 10;

  // Entries are never given back to the system, so that a reader may look at the key of one that is being reused: `key`
  // equals the handle of a live type only while the entry is that type's.
  struct Entry {
    // Relaxed: `used` is a hint for forget, and no other data hangs on it.
    const FlatType* use() {
      if (!used.load(std::memory_order_relaxed)) used.store(true, std::memory_order_relaxed);
      return &flat;
    }

    std::atomic<std::uint64_t> key{no_key};
    std::atomic<bool> used{false};  // since it was kept
    std::size_t place = 0;
    Entry* next = nullptr;  // in the chain of its place
    FlatType flat;
  };

  // Handles that hash to the same place share it; `entry` is the one last found there, null if the chain is empty.
  struct Slot {
    std::atomic<Entry*> entry{nullptr};
    Entry* first = nullptr;
    std::atomic<std::uint32_t> skips_left{0};  // types that will not be kept
    std::uint32_t skips = 0;                   // as many as the next unused entry adds
  };

  [[nodiscard]] static std::size_t place(MPI_Datatype type) {
    return static_cast<std::size_t>((handle_key(type) * 0x9e3779b97f4a7c15) >> (64 - slot_bits));
  }

  const FlatType* flat_uncached(MPI_Datatype type, std::optional<FlatType>& scratch, FlattenResult& result);
  const FlatType* find_cached(MPI_Datatype type);
  bool worth_keeping(MPI_Datatype type, std::size_t work);
  const FlatType* keep(MPI_Datatype type, FlatType& flat);
  Entry* take_entry();
  void publish(MPI_Datatype type, Entry* entry);
  void forget(Entry* entry);
  static int attribute_deleted(MPI_Datatype type, int keyval, void* value, void* self);

  BasicTypes basics_;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::array<Slot, std::size_t{1} << slot_bits> slots_{};
  // Held while a type gets its attribute, so that two threads do not give it two. Never taken in the delete callback,
  // which the library may call under a lock of its own.
  std::mutex keeping_;
  mutable std::mutex mutex_;                     // guards what follows, chains, and every write of entries
  std::vector<std::unique_ptr<Entry>> entries_;  // all ever made
  std::vector<Entry*> free_entries_;             // with room for all
};

}  // namespace farsum::mpi
