// The atomics policy of the model checker, and mutants of it that show that each check can fail.
#pragma once

#include <cstdint>
#include <cstring>

#include "explorer.hpp"
#include "os/futex.hpp"

namespace farsum::model {

enum class Mutation : std::uint8_t {
  none,
  // Release stores and read-modify-writes order nothing before them.
  release_is_relaxed,
  // A read-modify-write overtakes the thread's earlier stores: as if a fence were missing.
  modify_is_no_barrier,
  // An exchange is a load and a plain store: as if it had been written so.
  exchange_is_a_store,
  // A compare-exchange is a load and a plain store.
  compare_exchange_is_torn,
  // Nobody is woken.
  wake_is_lost,
  // A futex that sleeps without looking at its word.
  wait_does_not_compare,
  // A barrier in all processes is none.
  process_barrier_is_lost,
};

template <class T, Mutation M>
class ModelAtomic {
 public:
  T load(std::memory_order order) const {
    Explorer* explorer = Explorer::active();
    return explorer == nullptr ? value_ : static_cast<T>(explorer->load(&value_, sizeof(T), order));
  }

  void store(T value, std::memory_order order) {
    if (Explorer* explorer = Explorer::active()) {
      explorer->store(&value_, sizeof(T), value, weakened(order));
    } else {
      value_ = value;
    }
  }

  T exchange(T value, std::memory_order order) {
    if (M == Mutation::exchange_is_a_store) {
      const T old = load(order);
      store(value, std::memory_order_release);
      return old;
    }
    return modify(order, [value](T) { return value; });
  }

  T fetch_add(T value, std::memory_order order) {
    return modify(order, [value](T old) { return static_cast<T>(old + value); });
  }
  T fetch_sub(T value, std::memory_order order) {
    return modify(order, [value](T old) { return static_cast<T>(old - value); });
  }
  T fetch_or(T value, std::memory_order order) {
    return modify(order, [value](T old) { return static_cast<T>(old | value); });
  }
  T fetch_and(T value, std::memory_order order) {
    return modify(order, [value](T old) { return static_cast<T>(old & value); });
  }

  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    if (M == Mutation::compare_exchange_is_torn) {
      if (load(success) != expected) {
        return false;
      }
      store(desired, success);
      return true;
    }
    const T wanted = expected;
    expected = modify_if(success, failure, [&](T old, T& value) {
      value = desired;
      return old == wanted;
    });
    return expected == wanted;
  }

  T& raw() { return value_; }

 private:
  static std::memory_order weakened(std::memory_order order) {
    return M == Mutation::release_is_relaxed ? std::memory_order_relaxed : order;
  }

  template <class F>
  T modify(std::memory_order order, F&& f) {
    return modify_if(order, order, [&](T old, T& value) {
      value = f(old);
      return true;
    });
  }

  template <class F>
  T modify_if(std::memory_order order, std::memory_order failure, F&& f) {
    Explorer* explorer = Explorer::active();
    if (explorer == nullptr) {
      T value = value_;
      const T old = value_;
      if (f(old, value)) {
        value_ = value;
      }
      return old;
    }
    const std::memory_order used = M == Mutation::release_is_relaxed ? std::memory_order_acquire : order;
    const auto widened = [&f](std::uint64_t old, std::uint64_t& value) {
      T narrow = static_cast<T>(value);
      const bool writes = f(static_cast<T>(old), narrow);
      value = narrow;
      return writes;
    };
    return static_cast<T>(
        explorer->modify(&value_, sizeof(T), used, failure, M != Mutation::modify_is_no_barrier, widened));
  }

  T value_;
};

// No step of its own, for the lock that protects it keeps the others away; but each write is a place to be killed at,
// and an access that the lock does not order is a race.
template <class T>
class ModelGuarded {
 public:
  operator T() const {
    if (Explorer* explorer = Explorer::active()) {
      explorer->plain_read(&value_, sizeof(T));
    }
    return value_;
  }
  ModelGuarded& operator=(T value) {
    if (Explorer* explorer = Explorer::active()) {
      explorer->kill_point();
      explorer->plain_write(&value_, sizeof(T));
    }
    value_ = value;
    return *this;
  }
  ModelGuarded& operator=(const ModelGuarded& other) { return *this = static_cast<T>(other); }

 private:
  T value_;
};

// Spins is how often a lock looks before it sleeps; each look is the same, so none is as good as many and has fewer
// states.
template <Mutation M = Mutation::none, int Spins = 0>
struct ModelAtomics {
  template <class T>
  using Atomic = ModelAtomic<T, M>;
  template <class T>
  using Guarded = ModelGuarded<T>;

  static constexpr int spin_limit = Spins;

  static WaitResult wait(Atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) {
    return Explorer::current->wait(&word, expected, timeout_ns != 0, M != Mutation::wait_does_not_compare);
  }
  static int wake(Atomic<std::uint32_t>& word, int count) {
    Explorer* explorer = Explorer::active();
    return M == Mutation::wake_is_lost || explorer == nullptr ? 0 : explorer->wake(&word, count);
  }

  static void pause() {
    if (Explorer* explorer = Explorer::active()) {
      explorer->pause();
    }
  }
  static void yield() { pause(); }
  static void sleep(std::uint64_t) { pause(); }
  // Time stands still.
  static std::uint64_t now_ns() { return 1; }
  static void compiler_barrier() {}
  static void process_barrier() {
    Explorer* explorer = Explorer::active();
    if (M != Mutation::process_barrier_is_lost && explorer != nullptr) explorer->barrier_everywhere();
  }

  static void reads(const void* address, std::size_t bytes) {
    if (Explorer* explorer = Explorer::active()) {
      explorer->plain_read(address, bytes);
    }
  }
  static void writes(const void* address, std::size_t bytes) {
    if (Explorer* explorer = Explorer::active()) {
      explorer->plain_write(address, bytes);
    }
  }
};

}  // namespace farsum::model
