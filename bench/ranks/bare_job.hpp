// The hardware's limit: the same calls by bare instructions of processes that share memory, with nothing but what the
// call must do. A spin lock, a locked addition, memcpy, a barrier in one counter. No answer is told of a rank that has
// ended.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

// What the processes of a job share from before they are made. Written by all of them, a line for each kind.
struct BareShared {
  static constexpr int most_ranks = 256;

  alignas(128) std::atomic<std::uint32_t> arrived;
  alignas(128) std::atomic<std::uint32_t> turn;
  struct alignas(64) Slot {
    double number;
    std::int64_t count;
  };
  Slot slots[most_ranks];  // each written by its rank, read by all after a barrier
};

class BareWindow;

inline void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// One process's side. The memory of windows lies in a file of memory, cut anew once no window lives.
class BareJob {
 public:
  using Window = BareWindow;

  struct Memory {
    BareShared* shared = nullptr;
    int file = -1;
    std::byte* mapped = nullptr;  // the file, whole
    bool is_crowded = false;      // more ranks than processors
  };

  BareJob(const Memory& memory, int rank, int size) : memory_(memory), rank_(rank), size_(size) {}

  // The memory of a job of so many ranks, to be made before they are.
  static Memory make_memory(int size, bool is_crowded);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  void barrier() const;
  [[nodiscard]] double largest(double mine) const;
  [[nodiscard]] double smallest(double mine) const;
  [[nodiscard]] std::int64_t sum(std::int64_t mine) const;
  [[nodiscard]] bool all_agree(bool mine) const { return sum(mine ? 1 : 0) == size_; }
  [[noreturn]] static void fail(const std::string& what);

 private:
  friend class BareWindow;

  template <class Value, class Fold>
  Value folded(Value BareShared::Slot::*member, Value mine, Fold&& fold) const;

  const Memory memory_;
  const int rank_;
  const int size_;
  // Of this process, the same on all.
  mutable std::size_t taken_ = 0;
  mutable int windows_ = 0;
};

// What one part of a window needs besides its bytes. Each group in lines of its own.
struct BarePart {
  static constexpr std::size_t pieces = 64;

  struct alignas(64) Lock {
    std::atomic<std::uint32_t> word;
  };
  Lock exclusive;     // written by whoever takes it
  Lock readers;       // written by those that hold it shared
  Lock holds_all;     // written by the part's rank
  Lock sums[pieces];  // written by who sums into a piece
};

class BareWindow {
 public:
  // Memory of the program's is reached by no bare process: its window lies in what is mapped already, for the ranks
  // need tell each other nothing but where.
  BareWindow(const BareJob& job, const std::byte* user, std::size_t bytes);
  BareWindow(const BareWindow&) = delete;
  BareWindow& operator=(const BareWindow&) = delete;
  ~BareWindow();

  void lock_exclusive(int target) const { lock(part(target).exclusive); }
  void lock_shared(int target) const { part(target).readers.word.fetch_add(1, std::memory_order_seq_cst); }
  // The rank holds one of the two.
  void unlock(int target) const {
    if (part(target).exclusive.word.load(std::memory_order_relaxed) == owner_word())
      part(target).exclusive.word.store(0, std::memory_order_release);
    else
      part(target).readers.word.fetch_sub(1, std::memory_order_seq_cst);
  }
  void lock_all() const { part(job_.rank_).holds_all.word.store(1, std::memory_order_seq_cst); }
  void unlock_all() const { part(job_.rank_).holds_all.word.store(0, std::memory_order_release); }
  // All others see what was stored before this rank goes on.
  void flush(int) const { std::atomic_thread_fence(std::memory_order_seq_cst); }
  void flush_all() const { std::atomic_thread_fence(std::memory_order_seq_cst); }
  void fence() const { job_.barrier(); }
  void last_fence() const { job_.barrier(); }

  void put(int target, std::size_t offset, const void* from, std::size_t bytes) const {
    __builtin_memcpy(memory_of(target) + offset, from, bytes);
  }
  void get(int target, std::size_t offset, void* to, std::size_t bytes) const {
    __builtin_memcpy(to, memory_of(target) + offset, bytes);
  }
  [[nodiscard]] std::int64_t fetch_add(int target, std::size_t offset, std::int64_t value) const {
    return word(target, offset).fetch_add(value, std::memory_order_seq_cst);
  }
  void add_one(int target, std::size_t offset) const { word(target, offset).fetch_add(1, std::memory_order_relaxed); }
  // Piece by piece under a spin lock each, beginning at another piece on each rank.
  void add_doubles(int target, const double* from, std::size_t count) const;

 private:
  [[nodiscard]] std::uint32_t owner_word() const { return static_cast<std::uint32_t>(job_.rank_) + 1; }
  void lock(BarePart::Lock& lock) const;
  [[nodiscard]] BarePart& part(int rank) const {
    return *reinterpret_cast<BarePart*>(base_ + static_cast<std::size_t>(rank) * stride_);
  }
  [[nodiscard]] std::byte* memory_of(int rank) const {
    return base_ + static_cast<std::size_t>(rank) * stride_ + sizeof(BarePart);
  }
  [[nodiscard]] std::atomic_ref<std::int64_t> word(int target, std::size_t offset) const {
    return std::atomic_ref(*reinterpret_cast<std::int64_t*>(memory_of(target) + offset));
  }

  const BareJob& job_;
  std::size_t stride_;
  bool is_mapped_;  // by this window
  std::byte* base_ = nullptr;
};

}  // namespace bench
