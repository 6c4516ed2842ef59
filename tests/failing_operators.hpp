// Operator new that fails when a test says so (failing_memory.hpp). For one source of a program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "failing_memory.hpp"

// Not inlined, or g++ finds that what new made is given to free.
#define FARSUM_REPLACED [[gnu::noinline]] void
FARSUM_REPLACED* operator new(std::size_t bytes) { return farsum::FailingMemory::allocate_or_throw(bytes); }
FARSUM_REPLACED* operator new[](std::size_t bytes) { return farsum::FailingMemory::allocate_or_throw(bytes); }
FARSUM_REPLACED* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return farsum::FailingMemory::allocate(bytes);
}
FARSUM_REPLACED* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return farsum::FailingMemory::allocate(bytes);
}
FARSUM_REPLACED* operator new(std::size_t bytes, std::align_val_t alignment) {
  return farsum::FailingMemory::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
FARSUM_REPLACED* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return farsum::FailingMemory::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
FARSUM_REPLACED operator delete(void* memory) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete[](void* memory) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
FARSUM_REPLACED operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#undef FARSUM_REPLACED
