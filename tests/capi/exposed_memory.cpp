#include "exposed_memory.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "rank_processes.hpp"
#include "temporary_folder.hpp"

namespace farsum::test {
namespace {

constexpr std::size_t small_part_bytes = 65536;
constexpr std::size_t large_part_bytes = 1 << 20;
constexpr std::size_t shift = 4096;  // of overlapping windows

// Aligned as malloc aligns. Each test runs in processes of its own, so one is enough.
alignas(16) std::byte static_memory[large_part_bytes];

int ranks() {
  int size = 0;
  EXPECT_FINE(farsum_size(farsum_world(), &size));
  return size;
}

}  // namespace

std::vector<MemoryOf> all_kinds_of_memory() {
  std::vector<MemoryOf> kinds;
  for (int kind = 0; kind <= static_cast<int>(MemoryOf::dynamic_in_touching_regions); ++kind) {
    kinds.push_back(static_cast<MemoryOf>(kind));
  }
  return kinds;
}

std::string name_of(MemoryOf kind) {
  switch (kind) {
    case MemoryOf::allocated:
      return "allocated_memory";
    case MemoryOf::heap_small:
      return "a_small_heap_block";
    case MemoryOf::heap_large:
      return "a_large_heap_block";
    case MemoryOf::heap_kept_private:
      return "a_large_heap_block_kept_private";
    case MemoryOf::static_data:
      return "static_data";
    case MemoryOf::stack:
      return "the_stack";
    case MemoryOf::anonymous_map:
      return "an_anonymous_map";
    case MemoryOf::private_file:
      return "a_private_file_map";
    case MemoryOf::shared_file:
      return "a_shared_file_map";
    case MemoryOf::another_window:
      return "memory_of_another_window";
    case MemoryOf::overlapping_windows:
      return "overlapping_windows";
    case MemoryOf::dynamic:
      return "attached_memory";
    case MemoryOf::dynamic_in_touching_regions:
      return "touching_attached_regions";
  }
  return "unknown";
}

std::size_t part_bytes(MemoryOf kind) { return kind == MemoryOf::heap_small ? small_part_bytes : large_part_bytes; }

struct ExposedMemory::Backing {
  void* block = nullptr;
  std::size_t mapped_bytes = 0;  // 0: from malloc, or nothing
  int fd = -1;
  void* attached[2] = {};
};

std::byte* ExposedMemory::obtain(std::size_t bytes) {
  Backing& backing = *backing_;
  const auto map = [&](int flags, int fd) {
    backing.mapped_bytes = bytes;
    backing.block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    return static_cast<std::byte*>(backing.block);
  };
  const auto file = [&] {
    const TemporaryFolder folder;
    backing.fd = open((folder.path() / "memory").c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(ftruncate(backing.fd, static_cast<off_t>(bytes)), 0);
    return backing.fd;
  };
  switch (kind_) {
    case MemoryOf::static_data:
      return static_memory;
    case MemoryOf::anonymous_map:
      return map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    case MemoryOf::private_file:
      return map(MAP_PRIVATE, file());
    case MemoryOf::shared_file:
      return map(MAP_SHARED, file());
    case MemoryOf::stack:
      // Below the present frame, which grows no deeper than this while ranks run: the part is far from it.
      return static_cast<std::byte*>(__builtin_frame_address(0)) - (3 << 20);
    default:
      backing.block = std::calloc(1, bytes);
      return static_cast<std::byte*>(backing.block);
  }
}

void ExposedMemory::adopt(std::byte* memory, std::size_t bytes, std::uint64_t base, std::uint32_t promises) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  options.promises = promises;
  View view;
  EXPECT_FINE(farsum_window_adopt(farsum_world(), memory, bytes, &options, &view.window));
  view.base.assign(static_cast<std::size_t>(ranks()), base);
  views_.push_back(std::move(view));
}

ExposedMemory::ExposedMemory(MemoryOf kind) : kind_(kind), backing_(std::make_unique<Backing>()) {
  const std::size_t bytes = part_bytes(kind);
  switch (kind) {
    case MemoryOf::allocated:
    case MemoryOf::another_window: {
      View view;
      void* memory = nullptr;
      EXPECT_FINE(farsum_window_allocate(farsum_world(), bytes, nullptr, &memory, &view.window));
      mine_ = static_cast<std::byte*>(memory);
      view.base.assign(static_cast<std::size_t>(ranks()), 0);
      views_.push_back(std::move(view));
      if (kind == MemoryOf::another_window) adopt(mine_, bytes, 0);
      return;
    }
    case MemoryOf::heap_small:
    case MemoryOf::heap_large:
    case MemoryOf::static_data:
    case MemoryOf::anonymous_map:
    case MemoryOf::private_file:
    case MemoryOf::shared_file:
      mine_ = obtain(bytes);
      adopt(mine_, bytes, 0);
      return;
    case MemoryOf::stack:
      mine_ = obtain(bytes);
      // The kernel grows the stack down to where it is touched.
      for (std::size_t at = bytes; at != 0; at -= 4096) mine_[at - 4096] = std::byte{0};
      for (std::size_t at = 0; at < bytes; ++at) mine_[at] = std::byte{0};
      adopt(mine_, bytes, 0);
      return;
    case MemoryOf::heap_kept_private:
      mine_ = obtain(bytes);
      adopt(mine_, bytes, 0, FARSUM_NO_PROMOTION);
      return;
    case MemoryOf::overlapping_windows: {
      std::byte* const block = obtain(bytes + 2 * shift);
      mine_ = block + shift;
      adopt(block, bytes + shift, shift);
      adopt(mine_, bytes + shift, 0);
      return;
    }
    case MemoryOf::dynamic:
    case MemoryOf::dynamic_in_touching_regions: {
      mine_ = obtain(bytes);
      View view;
      EXPECT_FINE(farsum_window_create_dynamic(farsum_world(), nullptr, &view.window));
      // Not at a multiple of 16: elements of the larger types lie in both regions.
      const std::size_t cut = kind == MemoryOf::dynamic ? bytes : bytes / 3 + 8 - bytes / 3 % 16;
      backing_->attached[0] = mine_;
      EXPECT_FINE(farsum_window_attach(view.window, mine_, cut));
      if (cut != bytes) {
        backing_->attached[1] = mine_ + cut;
        EXPECT_FINE(farsum_window_attach(view.window, mine_ + cut, bytes - cut));
      }
      view.base.resize(static_cast<std::size_t>(ranks()));
      const auto address = reinterpret_cast<std::uint64_t>(mine_);
      EXPECT_FINE(farsum_allgather(farsum_world(), &address, view.base.data(), sizeof address));
      views_.push_back(std::move(view));
      return;
    }
  }
}

ExposedMemory::~ExposedMemory() {
  for (void* const region : backing_->attached) {
    if (region == nullptr) continue;
    EXPECT_FINE(farsum_barrier(farsum_world()));
    EXPECT_FINE(farsum_window_detach(views_.front().window, region));
  }
  // The later views may lie in memory of the first.
  while (!views_.empty()) {
    EXPECT_FINE(farsum_window_free(&views_.back().window));
    views_.pop_back();
  }
  if (backing_->mapped_bytes != 0) {
    munmap(backing_->block, backing_->mapped_bytes);
  } else {
    std::free(backing_->block);
  }
  if (backing_->fd >= 0) close(backing_->fd);
}

}  // namespace farsum::test
