// The heap of a node segment in a file of its own, whose books lie in this process's memory.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/shm/extent_meetings.hpp"
#include "transport/shm/heap_lock.hpp"
#include "transport/shm/node_heap.hpp"

namespace farsum::test {

// A process that was, and is no more.
inline pid_t ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// A heap's lock over words of this process, of two ranks.
class WithHeapLock : public testing::Test {
 protected:
  static constexpr std::uint32_t mine = 1, others = 2;

  std::vector<RankBlock> ranks_ = std::vector<RankBlock>(2);
  StripeLock word_{};
  std::atomic<std::uint32_t> broken_by_{0};
  HeapLock lock_{word_, broken_by_, ranks_};
};

// Of two ranks, the first of which runs here.
class HeapAlone {
 public:
  static constexpr std::uint32_t first_rank = 1;  // rank + 1, as locks name them
  static constexpr std::uint32_t second_rank = 2;

  explicit HeapAlone(std::uint64_t bytes) : free_(64), file_(file_of(bytes), bytes), map_(map_of(file_)) {
    free_[0] = {0, bytes};
    kept_.set_most_bytes(bytes);
  }

  NodeHeap& heap() { return heap_; }
  HeapLock& lock() { return lock_; }
  ExtentMeetings& meetings() { return meetings_; }
  SegmentMap& map() { return *map_; }
  std::byte* at(std::uint64_t offset) { return map_->begin() + offset; }
  // The second rank dies while it holds the heap's lock.
  void die_inside() {
    // Relaxed: nobody else is here.
    ranks_[1].pid.store(ended_process(), std::memory_order_relaxed);
    EXPECT_TRUE(word_.try_acquire(second_rank));
  }

 private:
  static int file_of(std::uint64_t bytes) {
    const int fd = memfd_create("heap", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
    return fd;
  }
  static std::unique_ptr<SegmentMap> map_of(const SegmentFile& file) {
    auto made = SegmentMap::make(file.fd(), file.bytes());
    EXPECT_TRUE(made.is_ok());
    return std::move(made.value());
  }

  std::vector<RankBlock> ranks_ = std::vector<RankBlock>(2);
  StripeLock word_{};
  std::atomic<std::uint32_t> broken_by_{0};
  std::atomic<std::uint64_t> allocated_bytes_{0};
  std::uint32_t free_count_ = 1;
  std::vector<HeapExtent> free_;
  KeptExtents kept_{};
  std::vector<PendingExtent> pending_ = std::vector<PendingExtent>(2);
  SegmentFile file_;
  std::unique_ptr<SegmentMap> map_;
  HeapLock lock_{word_, broken_by_, ranks_};
  NodeHeap heap_{lock_, {allocated_bytes_, FreeExtents(free_count_, free_), kept_}, file_, *map_};
  ExtentMeetings meetings_{lock_, pending_, heap_};
};

}  // namespace farsum::test
