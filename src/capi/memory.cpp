// farsum_memory_allocate and farsum_memory_free: a cache of free blocks per thread over the rank's NodeMemory, so that
// a pair of the same size costs a few nanoseconds. A program of MPI calls them around every operation.
#include "capi/memory.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "capi/global.hpp"
#include "runtime/node_memory.hpp"

namespace farsum::capi {
namespace {

using Block = NodeMemory::Block;

// Free blocks that a thread keeps of a class: many short ones, few long ones. Together at most some 35 MiB.
constexpr std::uint32_t most_cached = 16;
constexpr std::uint32_t cached_of(std::uint32_t size_class) {
  const std::uint64_t bytes = NodeMemory::class_bytes(size_class);
  return bytes <= 1024 ? most_cached : bytes <= 32768 ? 8 : bytes <= (1U << 20) ? 2 : bytes <= (1U << 22) ? 1 : 0;
}
constexpr auto cached_by_class = [] {
  std::array<std::uint8_t, NodeMemory::classes> kept{};
  for (std::uint32_t size_class = 0; size_class < NodeMemory::classes; ++size_class)
    kept[size_class] = static_cast<std::uint8_t>(cached_of(size_class));
  return kept;
}();

// One thread's free blocks, of the memory of one generation.
struct Cache {
  std::uint64_t generation = 0;
  std::array<std::uint8_t, NodeMemory::classes> count{};
  std::array<std::array<Block, most_cached>, NodeMemory::classes> blocks;
};

// The memory of the live context, once something was asked of it.
struct Source {
  std::unique_ptr<NodeMemory> memory;
  std::uint64_t last_generation = 0;
  std::mutex mutex;  // making and ending it, and threads that end meanwhile
};

Source& source() {
  // Never destroyed: see global().
  static Source* const instance = new Source;
  return *instance;
}

// Beside Source, so that the hot path finds them without a guard. The generation is 0 while there is no memory, and in
// a forked child; no other number comes twice.
constinit std::atomic<std::uint64_t> live_generation{0};
constinit NodeMemory* live_memory = nullptr;

// One word: it fits where the loader keeps room for libraries that are opened late, and is found without a call.
[[gnu::tls_model("initial-exec")]] constinit thread_local Cache* own_cache = nullptr;
constinit thread_local bool cache_is_over = false;

// Gives a thread's blocks back when it ends.
struct CacheEnd {
  ~CacheEnd() {
    cache_is_over = true;
    const std::unique_ptr<Cache> cache(std::exchange(own_cache, nullptr));
    // Looked at first without the mutex: in a forked child another thread of the parent may hold it for ever.
    if (cache == nullptr || cache->generation != live_generation.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(source().mutex);
    if (cache->generation != live_generation.load(std::memory_order_relaxed)) return;
    for (std::uint32_t size_class = 0; size_class < NodeMemory::classes; ++size_class)
      live_memory->give_back(std::span(cache->blocks[size_class]).first(cache->count[size_class]));
  }
};

// The calling thread's cache for the present generation; null when there is no room for one, or the thread is ending.
Cache* cache_of_thread() {
  if (cache_is_over) return nullptr;
  if (own_cache == nullptr) {
    thread_local CacheEnd end;
    own_cache = new (std::nothrow) Cache;
    if (own_cache == nullptr) return nullptr;
  }
  const std::uint64_t generation = live_generation.load(std::memory_order_acquire);
  if (own_cache->generation != generation) {
    // What it holds was of a context that is gone.
    own_cache->count.fill(0);
    own_cache->generation = generation;
  }
  return own_cache;
}

// The memory of the live context; null when there is none.
NodeMemory* open_memory() {
  // Acquire pairs with the release below.
  if (live_generation.load(std::memory_order_acquire) != 0) return live_memory;
  if (live_context() == nullptr) return nullptr;
  Source& state = source();
  const std::lock_guard lock(state.mutex);
  if (state.memory == nullptr) {
    state.memory = live_context()->make_memory();
    live_memory = state.memory.get();
    // Release: the memory is there for whoever sees its generation.
    live_generation.store(++state.last_generation, std::memory_order_release);
  }
  return state.memory.get();
}

farsum_status hand_out(const Block& block, void** memory) {
  // Relaxed: whoever frees it learnt of it from here.
  block.live->store(1, std::memory_order_relaxed);
  *memory = block.address;
  return FARSUM_OK;
}

[[gnu::noinline]] farsum_status allocate_slowly(std::size_t bytes, void** memory) {
  return guarded("farsum_memory_allocate", [&]() -> farsum_status {
    NodeMemory* node = open_memory();
    if (node == nullptr) return no_context("farsum_memory_allocate");
    if (memory == nullptr) return fail(Code::argument, "farsum_memory_allocate: memory must not be null");
    Result<Block> block = node->allocate(bytes);
    if (!block.is_ok()) {
      const Status status = block.take_status();
      return fail(status.code(), fmt::format("farsum_memory_allocate: {}", status.text()));
    }
    const std::uint32_t size_class = NodeMemory::class_of(bytes);
    Cache* cache = cache_of_thread();
    if (cache != nullptr && size_class != NodeMemory::no_class && cache->count[size_class] == 0) {
      // The next few of that size are taken along.
      const std::uint32_t wanted = cached_by_class[size_class] / 2;
      cache->count[size_class] =
          static_cast<std::uint8_t>(node->take_ready(size_class, std::span(cache->blocks[size_class]).first(wanted)));
    }
    return hand_out(block.value(), memory);
  });
}

farsum_status allocate_aligned(std::size_t bytes, std::size_t alignment, void** memory) {
  constexpr const char* call = "farsum_memory_allocate_aligned";
  return guarded(call, [&]() -> farsum_status {
    NodeMemory* node = open_memory();
    if (node == nullptr) return no_context(call);
    if (memory == nullptr) return fail(Code::argument, fmt::format("{}: memory must not be null", call));
    Result<Block> block = node->allocate_aligned(bytes, alignment);
    if (block.is_ok()) return hand_out(block.value(), memory);
    const Status status = block.take_status();
    return fail(status.code(), fmt::format("{}: {}", call, status.text()));
  });
}

[[gnu::noinline]] farsum_status free_slowly(void* memory) {
  return guarded("farsum_memory_free", [&]() -> farsum_status {
    NodeMemory* node = open_memory();
    if (node == nullptr) return no_context("farsum_memory_free");
    if (memory == nullptr) return FARSUM_OK;
    std::uint32_t size_class = NodeMemory::no_class;
    const Block block = node->find(memory, size_class);
    // One of two threads that free a block at once is told.
    if (block.live == nullptr || block.live->exchange(0, std::memory_order_relaxed) == 0) {
      return fail(
          Code::argument,
          fmt::format("farsum_memory_free: {} is no block of farsum_memory_allocate, or was freed before", memory));
    }
    Cache* cache = size_class == NodeMemory::no_class || cached_by_class[size_class] == 0 ? nullptr : cache_of_thread();
    if (cache == nullptr) {
      node->give_back({&block, 1});
      return FARSUM_OK;
    }
    // A full class makes room for as many again.
    std::uint8_t& count = cache->count[size_class];
    if (count == cached_by_class[size_class]) {
      const std::uint32_t kept = cached_by_class[size_class] / 2;
      node->give_back(std::span(cache->blocks[size_class]).subspan(kept, count - kept));
      count = static_cast<std::uint8_t>(kept);
    }
    cache->blocks[size_class][count++] = block;
    return FARSUM_OK;
  });
}

}  // namespace

void close_memory() {
  Source& state = source();
  const std::lock_guard lock(state.mutex);
  live_generation.store(0, std::memory_order_release);
  live_memory = nullptr;
  state.memory.reset();
}

void forget_memory_in_child() { live_generation.store(0, std::memory_order_relaxed); }

}  // namespace farsum::capi

using namespace farsum;
using namespace farsum::capi;

extern "C" {

farsum_status farsum_memory_allocate(size_t bytes, void** memory) {
  Cache* cache = own_cache;
  if (cache != nullptr && memory != nullptr && cache->generation == live_generation.load(std::memory_order_acquire))
      [[likely]] {
    const std::uint32_t size_class = NodeMemory::class_of(bytes);
    if (size_class != NodeMemory::no_class && cache->count[size_class] != 0) [[likely]]
      return hand_out(cache->blocks[size_class][--cache->count[size_class]], memory);
  }
  return allocate_slowly(bytes, memory);
}

farsum_status farsum_memory_allocate_aligned(size_t bytes, size_t alignment, void** memory) {
  if (!std::has_single_bit(alignment) || alignment > FARSUM_MOST_ALIGNMENT) {
    return fail(Code::argument,
                fmt::format("farsum_memory_allocate_aligned: alignment {}; it must be a power of two up "
                            "to {}",
                            alignment, FARSUM_MOST_ALIGNMENT));
  }
  if (alignment <= NodeMemory::natural_alignment)
    return farsum_memory_allocate(NodeMemory::bytes_for(bytes, alignment), memory);
  return allocate_aligned(bytes, alignment, memory);
}

farsum_status farsum_memory_free(void* memory) {
  Cache* cache = own_cache;
  if (cache != nullptr && cache->generation == live_generation.load(std::memory_order_acquire)) [[likely]] {
    std::uint32_t size_class = NodeMemory::no_class;
    const Block block = live_memory->find(memory, size_class);
    if (block.live != nullptr && size_class != NodeMemory::no_class &&
        cache->count[size_class] < cached_by_class[size_class] && block.live->load(std::memory_order_relaxed) != 0)
        [[likely]] {
      block.live->store(0, std::memory_order_relaxed);
      cache->blocks[size_class][cache->count[size_class]++] = block;
      return FARSUM_OK;
    }
  }
  return free_slowly(memory);
}

}  // extern "C"
