#include "cases.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace lab {
namespace {

// Fills window and buffer with what differs by rank and place.
class PairKernel : public Kernel {
 public:
  PairKernel(const Bench& bench, std::size_t bytes) : bench_(bench), bytes_(bytes) {}

  void prepare() override {
    for (std::size_t i = 0; i < doubles_in_all(); ++i) {
      window()[i] = window_value(bench_.rank, i);
      buffer()[i] = buffer_value(bench_.rank, i);
    }
  }

 protected:
  static double window_value(int rank, std::size_t i) { return 1000.0 * (rank + 1) + static_cast<double>(i % 997); }
  static double buffer_value(int rank, std::size_t i) { return 500000.0 * (rank + 1) + static_cast<double>(i % 991); }

  [[nodiscard]] const Bench& bench() const { return bench_; }
  [[nodiscard]] bool is_origin() const { return bench_.rank == origin_rank; }
  [[nodiscard]] bool is_owner() const { return bench_.rank == owner_rank; }
  [[nodiscard]] MPI_Win win() const { return bench_.win; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] int byte_count() const { return static_cast<int>(bytes_); }
  [[nodiscard]] int doubles() const { return static_cast<int>(bytes_ / sizeof(double)); }
  [[nodiscard]] double* window() const { return static_cast<double*>(bench_.window_memory); }
  [[nodiscard]] double* buffer() const { return reinterpret_cast<double*>(bench_.buffer); }
  [[nodiscard]] std::size_t doubles_in_all() const { return bench_.bytes / sizeof(double); }
  void flush() const { MPI_Win_flush(owner_rank, win()); }

  // The owner's window holds the first doubles of the origin's buffer and beyond them its own.
  [[nodiscard]] bool window_has_buffer(std::size_t count) const {
    for (std::size_t i = 0; i < doubles_in_all(); ++i) {
      const double expected = i < count ? buffer_value(origin_rank, i) : window_value(owner_rank, i);
      if (window()[i] != expected) {
        return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool window_is_untouched() const { return window_has_buffer(0); }

 private:
  Bench bench_;
  std::size_t bytes_;
};

class Put : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Put(buffer(), doubles(), MPI_DOUBLE, owner_rank, 0, doubles(), MPI_DOUBLE, win());
      flush();
    }
  }
  bool check(long) override { return is_origin() || window_has_buffer(static_cast<std::size_t>(doubles())); }
};

class Get : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Get(buffer(), doubles(), MPI_DOUBLE, owner_rank, 0, doubles(), MPI_DOUBLE, win());
      flush();
    }
  }
  bool check(long) override {
    if (is_owner()) {
      return window_is_untouched();
    }
    for (std::size_t i = 0; i < doubles_in_all(); ++i) {
      const bool fetched = i < static_cast<std::size_t>(doubles());
      if (buffer()[i] != (fetched ? window_value(owner_rank, i) : buffer_value(origin_rank, i))) {
        return false;
      }
    }
    return true;
  }
};

class AccumulateSum : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void prepare() override {
    PairKernel::prepare();
    std::fill_n(buffer(), doubles(), 1.0);
  }
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Accumulate(buffer(), doubles(), MPI_DOUBLE, owner_rank, 0, doubles(), MPI_DOUBLE, MPI_SUM, win());
      flush();
    }
  }
  bool check(long operations) override {
    for (std::size_t i = 0; is_owner() && i < doubles_in_all(); ++i) {
      const bool added = i < static_cast<std::size_t>(doubles());
      if (window()[i] != window_value(owner_rank, i) + (added ? static_cast<double>(operations) : 0)) {
        return false;
      }
    }
    return true;
  }
};

// One 64-bit word at the window's start.
class WordKernel : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void prepare() override {
    PairKernel::prepare();
    *word() = 0;
    expected_ = 0;
    wrong_ = false;
  }
  bool check(long operations) override {
    return is_owner() ? *word() == operations && window()[1] == window_value(owner_rank, 1) : !wrong_;
  }

 protected:
  // The origin's answers count up from 0 for as long as nobody resets the word.
  void expect_next(std::int64_t answer) { wrong_ = wrong_ || answer != expected_++; }
  [[nodiscard]] std::int64_t expected() const { return expected_; }

 private:
  [[nodiscard]] std::int64_t* word() const { return static_cast<std::int64_t*>(bench().window_memory); }

  std::int64_t expected_ = 0;
  bool wrong_ = false;
};

class FetchAndOp : public WordKernel {
 public:
  using WordKernel::WordKernel;
  void run(long operations) override {
    const std::int64_t one = 1;
    for (long i = 0; i < operations; ++i) {
      std::int64_t answer = -1;
      MPI_Fetch_and_op(&one, &answer, MPI_INT64_T, owner_rank, 0, MPI_SUM, win());
      flush();
      expect_next(answer);
    }
  }
};

class CompareAndSwap : public WordKernel {
 public:
  using WordKernel::WordKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      const std::int64_t before = expected();
      const std::int64_t after = before + 1;
      std::int64_t answer = -1;
      MPI_Compare_and_swap(&after, &before, &answer, MPI_INT64_T, owner_rank, 0, win());
      flush();
      expect_next(answer);
    }
  }
};

// Calls that move nothing leave everything as it is.
class EmptyKernel : public PairKernel {
 public:
  using PairKernel::PairKernel;
  bool check(long) override { return is_origin() || window_is_untouched(); }
};

class FlushClean : public EmptyKernel {
 public:
  using EmptyKernel::EmptyKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      flush();
    }
  }
};

class LockUnlockEmpty : public EmptyKernel {
 public:
  using EmptyKernel::EmptyKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner_rank, 0, win());
      MPI_Win_unlock(owner_rank, win());
    }
  }
};

class FenceEmpty : public EmptyKernel {
 public:
  using EmptyKernel::EmptyKernel;
  void run(long operations) override {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win());
    for (long i = 1; i <= operations; ++i) {
      MPI_Win_fence(i == operations ? MPI_MODE_NOSUCCEED : 0, win());
    }
  }
};

// NWChem's ARMCI-MPI looks after all its windows at a fence, and most are clean.
class FlushAllCleanWindows : public EmptyKernel {
 public:
  FlushAllCleanWindows(const Bench& bench, std::size_t bytes) : EmptyKernel(bench, bytes) {
    constexpr std::size_t small_bytes = 4096;
    for (std::unique_ptr<Window>& window : windows_) {
      window = std::make_unique<Window>(bench.memory, small_bytes, 1, bench.pair);
      MPI_Win_lock_all(MPI_MODE_NOCHECK, window->win());
    }
  }
  FlushAllCleanWindows(const FlushAllCleanWindows&) = delete;
  FlushAllCleanWindows& operator=(const FlushAllCleanWindows&) = delete;
  ~FlushAllCleanWindows() override {
    for (std::unique_ptr<Window>& window : windows_) {
      MPI_Win_unlock_all(window->win());
      window.reset();
    }
  }
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      for (const std::unique_ptr<Window>& window : windows_) {
        MPI_Win_flush_all(window->win());
      }
    }
  }

 private:
  static constexpr std::size_t window_count = 500;
  std::array<std::unique_ptr<Window>, window_count> windows_;
};

// Puts in epochs of their own.
class EpochPut : public Put {
 public:
  using Put::Put;

 protected:
  void put() const { MPI_Put(buffer(), doubles(), MPI_DOUBLE, owner_rank, 0, doubles(), MPI_DOUBLE, win()); }
};

class LockPutUnlock : public EpochPut {
 public:
  using EpochPut::EpochPut;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Win_lock(MPI_LOCK_SHARED, owner_rank, 0, win());
      put();
      MPI_Win_unlock(owner_rank, win());
    }
  }
};

class FencePut : public EpochPut {
 public:
  using EpochPut::EpochPut;
  void run(long operations) override {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win());
    for (long i = 1; i <= operations; ++i) {
      if (is_origin()) {
        put();
      }
      MPI_Win_fence(i == operations ? MPI_MODE_NOSUCCEED : 0, win());
    }
  }
};

class PostStartCompleteWait : public EpochPut {
 public:
  PostStartCompleteWait(const Bench& bench, std::size_t bytes) : EpochPut(bench, bytes) {
    MPI_Group pair = MPI_GROUP_NULL;
    MPI_Comm_group(bench.pair, &pair);
    const int other = bench.rank == origin_rank ? owner_rank : origin_rank;
    MPI_Group_incl(pair, 1, &other, &other_);
    MPI_Group_free(&pair);
  }
  PostStartCompleteWait(const PostStartCompleteWait&) = delete;
  PostStartCompleteWait& operator=(const PostStartCompleteWait&) = delete;
  ~PostStartCompleteWait() override { MPI_Group_free(&other_); }

  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      if (is_origin()) {
        MPI_Win_start(other_, 0, win());
        put();
        MPI_Win_complete(win());
      } else {
        MPI_Win_post(other_, 0, win());
        MPI_Win_wait(win());
      }
    }
  }

 private:
  MPI_Group other_ = MPI_GROUP_NULL;
};

// NWChem's transfers, as ARMCI-MPI makes them: a put is an accumulate of bytes with REPLACE, a get a get_accumulate
// with NO_OP.
class ArmciPut : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Accumulate(buffer(), byte_count(), MPI_BYTE, owner_rank, 0, byte_count(), MPI_BYTE, MPI_REPLACE, win());
      MPI_Win_flush_local(owner_rank, win());
    }
  }
  bool check(long) override { return is_origin() || window_has_buffer(static_cast<std::size_t>(doubles())); }
};

class ArmciGet : public Get {
 public:
  using Get::Get;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Get_accumulate(nullptr, 0, MPI_BYTE, buffer(), byte_count(), MPI_BYTE, owner_rank, 0, byte_count(), MPI_BYTE,
                         MPI_NO_OP, win());
      MPI_Win_flush_local(owner_rank, win());
    }
  }
};

// A patch of 64 x 64 doubles: in the window of rows of 256 doubles, in the buffer of rows of 128.
class Patch : public PairKernel {
 public:
  using PairKernel::PairKernel;

 protected:
  static constexpr std::size_t side = 64;
  static constexpr std::size_t window_row = 256;
  static constexpr std::size_t buffer_row = 128;

  // Of bytes, or of whole doubles where they are to be summed.
  static MPI_Datatype make_type(std::size_t row_doubles, MPI_Datatype element = MPI_BYTE) {
    const std::size_t each = element == MPI_BYTE ? sizeof(double) : 1;
    const std::array<int, 2> sizes{static_cast<int>(side), static_cast<int>(row_doubles * each)};
    const std::array<int, 2> part{static_cast<int>(side), static_cast<int>(side * each)};
    constexpr std::array<int, 2> starts{0, 0};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(2, sizes.data(), part.data(), starts.data(), MPI_ORDER_C, element, &type);
    MPI_Type_commit(&type);
    return type;
  }

  // Whether each element of the window is `inside(its index, its index in the buffer)` in the patch and `outside(its
  // index)` around it.
  template <class Inside, class Outside>
  [[nodiscard]] bool window_is(Inside inside, Outside outside) const {
    return is_as_told(window(), window_row, buffer_row, inside, outside);
  }
  // The same of the buffer.
  template <class Inside, class Outside>
  [[nodiscard]] bool buffer_is(Inside inside, Outside outside) const {
    return is_as_told(buffer(), buffer_row, window_row, inside, outside);
  }

 private:
  template <class Inside, class Outside>
  [[nodiscard]] bool is_as_told(const double* array, std::size_t row_doubles, std::size_t other_row, Inside inside,
                                Outside outside) const {
    for (std::size_t i = 0; i < doubles_in_all(); ++i) {
      const std::size_t row = i / row_doubles;
      const std::size_t column = i % row_doubles;
      const bool in_patch = row < side && column < side;
      if (array[i] != (in_patch ? inside(i, row * other_row + column) : outside(i))) {
        return false;
      }
    }
    return true;
  }
};

class ArmciPutPatch : public Patch {
 public:
  using Patch::Patch;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Datatype from = make_type(buffer_row);
      MPI_Datatype to = make_type(window_row);
      MPI_Accumulate(buffer(), 1, from, owner_rank, 0, 1, to, MPI_REPLACE, win());
      MPI_Win_flush_local(owner_rank, win());
      MPI_Type_free(&from);
      MPI_Type_free(&to);
    }
  }
  bool check(long) override {
    return is_origin() || window_is([](std::size_t, std::size_t from) { return buffer_value(origin_rank, from); },
                                    [](std::size_t i) { return window_value(owner_rank, i); });
  }
};

class ArmciGetPatch : public Patch {
 public:
  using Patch::Patch;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Datatype to = make_type(buffer_row);
      MPI_Datatype from = make_type(window_row);
      MPI_Get_accumulate(nullptr, 0, MPI_BYTE, buffer(), 1, to, owner_rank, 0, 1, from, MPI_NO_OP, win());
      MPI_Win_flush_local(owner_rank, win());
      MPI_Type_free(&to);
      MPI_Type_free(&from);
    }
  }
  bool check(long) override {
    if (is_owner()) {
      return window_is_untouched();
    }
    return buffer_is([](std::size_t, std::size_t from) { return window_value(owner_rank, from); },
                     [](std::size_t i) { return buffer_value(origin_rank, i); });
  }
};

class ArmciAccumulatePatch : public Patch {
 public:
  using Patch::Patch;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Datatype from = make_type(buffer_row, MPI_DOUBLE);
      MPI_Datatype to = make_type(window_row, MPI_DOUBLE);
      MPI_Accumulate(buffer(), 1, from, owner_rank, 0, 1, to, MPI_SUM, win());
      MPI_Win_flush_local(owner_rank, win());
      MPI_Type_free(&from);
      MPI_Type_free(&to);
    }
  }
  bool check(long operations) override {
    const auto summed = [operations](std::size_t i, std::size_t from) {
      return window_value(owner_rank, i) + static_cast<double>(operations) * buffer_value(origin_rank, from);
    };
    return is_origin() || window_is(summed, [](std::size_t i) { return window_value(owner_rank, i); });
  }
};

// What the hardware and the library's types leave no room below: the bytes moved by a bare loop into the caller's own
// part, with no one-sided call.
class BareContiguous : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      move(window(), buffer(), bytes());
    }
  }
  bool check(long) override {
    return is_owner() ? window_is_untouched() : std::memcmp(window(), buffer(), bytes()) == 0;
  }

 protected:
  // As it stands in the program, however often.
  static void move(double* to, const double* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
    asm volatile("" : : "r"(to) : "memory");
  }
};

// The same of a patch, its types made and freed as ARMCI-MPI does.
class BarePatch : public Patch {
 public:
  using Patch::Patch;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      MPI_Datatype from = make_type(buffer_row);
      MPI_Datatype to = make_type(window_row);
      for (std::size_t row = 0; row < side; ++row) {
        std::memcpy(window() + row * window_row, buffer() + row * buffer_row, row_bytes_);
      }
      asm volatile("" : : "r"(window()) : "memory");
      MPI_Type_free(&from);
      MPI_Type_free(&to);
    }
  }
  bool check(long) override {
    if (is_owner()) {
      return window_is_untouched();
    }
    return window_is([](std::size_t, std::size_t from) { return buffer_value(origin_rank, from); },
                     [](std::size_t i) { return window_value(origin_rank, i); });
  }

 private:
  // Read anew for each row, so that the loop calls the library's memcpy as any program with sizes of its own does.
  volatile std::size_t row_bytes_ = side * sizeof(double);
};

class AllocFree : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      volatile char* memory = nullptr;
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes()), MPI_INFO_NULL, static_cast<void*>(&memory));
      memory[0] = 1;
      memory[bytes() - 1] = 1;
      MPI_Free_mem(const_cast<char*>(memory));
    }
  }
  // Two blocks at once must be two blocks, wholly.
  bool check(long) override {
    std::array<unsigned char*, 2> blocks{};
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes()), MPI_INFO_NULL, static_cast<void*>(&blocks[i]));
      std::fill_n(blocks[i], bytes(), static_cast<unsigned char>(i + 1));
    }
    bool right = true;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      right = right && std::all_of(blocks[i], blocks[i] + bytes(), [i](unsigned char byte) { return byte == i + 1; });
      MPI_Free_mem(blocks[i]);
    }
    return right;
  }
};

// Makes and frees windows; in the check an own put must arrive through one.
template <MemoryKind kind>
class MakeWindow : public PairKernel {
 public:
  using PairKernel::PairKernel;
  void run(long operations) override {
    for (long i = 0; i < operations; ++i) {
      double* memory = nullptr;
      MPI_Win window = make(memory);
      MPI_Win_free(&window);
    }
  }
  bool check(long) override {
    double* memory = nullptr;
    MPI_Win window = make(memory);
    const double mark = bench().rank + 0.5;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    MPI_Put(&mark, 1, MPI_DOUBLE, 1 - bench().rank, 0, 1, MPI_DOUBLE, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    const bool right = memory[0] == (1 - bench().rank) + 0.5;
    MPI_Win_free(&window);
    return right;
  }

 private:
  MPI_Win make(double*& memory) const {
    MPI_Win window = MPI_WIN_NULL;
    const auto size = static_cast<MPI_Aint>(bytes());
    if constexpr (kind == MemoryKind::allocate) {
      MPI_Win_allocate(size, 1, MPI_INFO_NULL, bench().pair, static_cast<void*>(&memory), &window);
    } else {
      memory = buffer();
      MPI_Win_create(memory, size, 1, MPI_INFO_NULL, bench().pair, &window);
    }
    return window;
  }
};

template <typename T>
std::unique_ptr<Kernel> make(const Bench& bench, std::size_t bytes) {
  return std::make_unique<T>(bench, bytes);
}

template <typename T>
Case one(const char* name, std::size_t bytes, Epoch epoch, Callers callers) {
  return {.name = name, .bytes = bytes, .epoch = epoch, .callers = callers, .make = make<T>};
}

}  // namespace

const std::vector<Case>& all_cases() {
  constexpr std::size_t word = 8;
  constexpr std::size_t page = 4096;
  constexpr std::size_t large = std::size_t{1} << 20U;
  constexpr std::size_t patch = 64 * 64 * sizeof(double);
  constexpr auto all = Epoch::lock_all;
  constexpr auto none = Epoch::none;
  static const std::vector<Case> cases{
      one<Put>("put-8", word, all, Callers::origin),
      one<Get>("get-8", word, all, Callers::origin),
      one<Put>("put-4KiB", page, all, Callers::origin),
      one<Get>("get-4KiB", page, all, Callers::origin),
      one<Put>("put-1MiB", large, all, Callers::origin),
      one<Get>("get-1MiB", large, all, Callers::origin),
      one<AccumulateSum>("accumulate-1", word, all, Callers::origin),
      one<AccumulateSum>("accumulate-512", page, all, Callers::origin),
      one<AccumulateSum>("accumulate-131072", large, all, Callers::origin),
      one<FetchAndOp>("fetch-and-op", word, all, Callers::origin),
      one<CompareAndSwap>("compare-and-swap", word, all, Callers::origin),
      one<LockUnlockEmpty>("lock-unlock", 0, none, Callers::origin),
      one<LockPutUnlock>("lock-put-unlock", word, none, Callers::origin),
      one<FenceEmpty>("fence", 0, none, Callers::both),
      one<FencePut>("fence-put", word, none, Callers::both),
      one<PostStartCompleteWait>("pscw", word, none, Callers::both),
      one<FlushClean>("flush-clean", 0, all, Callers::origin),
      one<ArmciPut>("nwchem-put-contiguous", patch, all, Callers::origin),
      one<ArmciGet>("nwchem-get-contiguous", patch, all, Callers::origin),
      one<ArmciPutPatch>("nwchem-put-patch", patch, all, Callers::origin),
      one<ArmciGetPatch>("nwchem-get-patch", patch, all, Callers::origin),
      one<AccumulateSum>("nwchem-acc-contiguous", patch, all, Callers::origin),
      one<ArmciAccumulatePatch>("nwchem-acc-patch", patch, all, Callers::origin),
      one<BareContiguous>("bare-contiguous", patch, all, Callers::origin),
      one<BarePatch>("bare-patch", patch, all, Callers::origin),
      one<FlushAllCleanWindows>("flush-all-500-clean-windows", 0, none, Callers::origin),
      one<AllocFree>("alloc-free-64", 64, none, Callers::origin_locally),
      one<AllocFree>("alloc-free-4KiB", page, none, Callers::origin_locally),
      one<AllocFree>("alloc-free-1MiB", large, none, Callers::origin_locally),
      one<MakeWindow<MemoryKind::allocate>>("win-allocate-free", large, none, Callers::both),
      one<MakeWindow<MemoryKind::create>>("win-create-free", large, none, Callers::both)};
  return cases;
}

}  // namespace lab
