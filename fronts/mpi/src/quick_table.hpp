// A look-up of a few handles that never collides: the multiplier of its hash is searched for when the table is filled,
// so that finding costs one multiplication, one load and one comparison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace farsum::mpi {

// A handle as a number: MPICH's are integers, Open MPI's and the standard ABI's are pointers.
template <typename Handle>
inline std::uint64_t handle_key(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uintptr_t>(handle);
  } else {
    return static_cast<std::uint32_t>(handle);
  }
}

// Filled once, then read by any thread. Value has a member `handle`.
template <typename Value, unsigned bits>
class QuickTable {
 public:
  // Keeps a copy of each value; handles are all different. False if no multiplier was found, which a table with room
  // for the square of its number of handles divided by ten does not meet.
  [[nodiscard]] bool fill(std::span<const Value> values) {
    std::uint64_t seed = 0x9e3779b97f4a7c15;
    for (int attempt = 0; attempt < 100000; ++attempt) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      multiplier_ = seed | 1;
      if (try_fill(values)) return true;
    }
    return false;
  }

  [[nodiscard]] const Value* find(decltype(Value::handle) handle) const {
    const std::uint64_t key = handle_key(handle);
    const Slot& slot = slots_[place(key)];
    return slot.key == key ? &slot.value : nullptr;
  }

 private:
  static constexpr std::uint64_t no_key = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = no_key;
    Value value{};
  };

  [[nodiscard]] std::size_t place(std::uint64_t key) const {
    return static_cast<std::size_t>((key * multiplier_) >> (64 - bits));
  }

  bool try_fill(std::span<const Value> values) {
    slots_.fill(Slot{});
    for (const Value& value : values) {
      const std::uint64_t key = handle_key(value.handle);
      Slot& slot = slots_[place(key)];
      if (slot.key != no_key) return false;
      slot = Slot{key, value};
    }
    return true;
  }

  std::uint64_t multiplier_ = 1;
  std::array<Slot, std::size_t{1} << bits> slots_{};
};

}  // namespace farsum::mpi
