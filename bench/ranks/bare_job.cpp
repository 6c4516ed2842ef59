#include "bare_job.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "common/daxpy.hpp"
#include "common/end_rank.hpp"

namespace bench {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t most_bytes_of_rank = std::size_t{16} << 20;
constexpr int looks_before_yield = 1000;
constexpr int looks_where_crowded = 100;

std::byte* mapped(std::size_t bytes, int file, std::size_t offset) {
  const int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) throw std::runtime_error("no memory is to be had that processes share");
  return static_cast<std::byte*>(memory);
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

}  // namespace

BareJob::Memory BareJob::make_memory(int size, bool is_crowded) {
  if (size > BareShared::most_ranks) throw std::runtime_error("too many ranks for the bare limit");
  const std::size_t bytes = static_cast<std::size_t>(size) * most_bytes_of_rank;
  Memory memory{.shared = new (mapped(sizeof(BareShared), -1, 0)) BareShared{},
                .file = memfd_create("bare-ranks", MFD_CLOEXEC),
                .is_crowded = is_crowded};
  if (memory.file < 0 || ftruncate(memory.file, static_cast<off_t>(bytes)) != 0)
    throw std::runtime_error("no file of memory is to be had");
  memory.mapped = mapped(bytes, memory.file, 0);
  return memory;
}

void BareJob::barrier() const {
  BareShared& shared = *memory_.shared;
  const std::uint32_t turn = shared.turn.load(std::memory_order_relaxed);  // nobody ends this turn without this rank
  if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
    shared.arrived.store(0, std::memory_order_relaxed);      // ordered by the store below
    shared.turn.store(turn + 1, std::memory_order_release);  // pairs with the load below
    return;
  }
  const int looks = memory_.is_crowded ? looks_where_crowded : looks_before_yield;
  for (int look = 0; shared.turn.load(std::memory_order_acquire) == turn; ++look) {
    if (look < looks)
      pause_a_little();
    else
      sched_yield();
  }
}

template <class Value, class Fold>
Value BareJob::folded(Value BareShared::Slot::*member, Value mine, Fold&& fold) const {
  memory_.shared->slots[rank_].*member = mine;
  barrier();
  Value result = memory_.shared->slots[0].*member;
  for (int rank = 1; rank < size_; ++rank) result = fold(result, memory_.shared->slots[rank].*member);
  barrier();
  return result;
}

double BareJob::largest(double mine) const {
  return folded(&BareShared::Slot::number, mine, [](double a, double b) { return std::max(a, b); });
}

double BareJob::smallest(double mine) const {
  return folded(&BareShared::Slot::number, mine, [](double a, double b) { return std::min(a, b); });
}

std::int64_t BareJob::sum(std::int64_t mine) const {
  return folded(&BareShared::Slot::count, mine, [](std::int64_t a, std::int64_t b) { return a + b; });
}

void BareJob::fail(const std::string& what) { end_rank(what); }

BareWindow::BareWindow(const BareJob& job, const std::byte* user, std::size_t bytes)
    : job_(job), stride_(whole_pages(sizeof(BarePart) + bytes)), is_mapped_(user == nullptr) {
  const std::size_t whole = stride_ * static_cast<std::size_t>(job.size_);
  if (job.taken_ + whole > static_cast<std::size_t>(job.size_) * most_bytes_of_rank)
    throw std::runtime_error("too many windows at once for the bare limit");
  base_ = is_mapped_ ? mapped(whole, job.memory_.file, job.taken_) : job.memory_.mapped + job.taken_;
  job.taken_ += whole;
  ++job.windows_;
  new (&part(job.rank_)) BarePart{};
  job.barrier();
}

BareWindow::~BareWindow() {
  job_.barrier();
  if (is_mapped_) munmap(base_, stride_ * static_cast<std::size_t>(job_.size_));
  if (--job_.windows_ == 0) job_.taken_ = 0;
}

void BareWindow::lock(BarePart::Lock& lock) const {
  int looks = 0;
  for (std::uint32_t free = 0;
       !lock.word.compare_exchange_weak(free, owner_word(), std::memory_order_acquire, std::memory_order_relaxed);
       free = 0) {
    while (lock.word.load(std::memory_order_relaxed) != 0) {
      pause_a_little();
      if (job_.memory_.is_crowded && ++looks % looks_where_crowded == 0) sched_yield();
    }
  }
}

void BareWindow::add_doubles(int target, const double* from, std::size_t count) const {
  static const Daxpy add = best_daxpy().run;
  constexpr std::size_t piece = 2048;  // 16 KiB
  auto* to = reinterpret_cast<double*>(memory_of(target));
  const std::size_t pieces = (count + piece - 1) / piece;
  const std::size_t first = pieces * static_cast<std::size_t>(job_.rank_) / static_cast<std::size_t>(job_.size_);
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t at = (first + i) % pieces;
    BarePart::Lock& guard = part(target).sums[at % BarePart::pieces];
    lock(guard);
    const std::size_t begin = at * piece;
    add(to + begin, from + begin, std::min(count - begin, piece), 1);
    guard.word.store(0, std::memory_order_release);
  }
}

}  // namespace bench
