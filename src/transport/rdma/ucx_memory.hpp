// Memory that UCX lets the cards of others reach, its own or the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"

struct ucp_mem;

namespace farsum {

class UcxContext;

class UcxMemory {
 public:
  // Null: zeroed memory of UCX's making, every page of it there. The context must outlive it. Any thread may call.
  static Result<UcxMemory> map(UcxContext& context, std::byte* memory, std::uint64_t bytes);
  UcxMemory() = default;
  UcxMemory(UcxMemory&& other) noexcept;
  UcxMemory& operator=(UcxMemory&& other) noexcept;
  ~UcxMemory();

  std::span<std::byte> bytes() const { return bytes_; }
  // What another worker of UCX needs to reach it.
  Result<std::vector<std::byte>> key() const;

 private:
  UcxContext* context_ = nullptr;
  ucp_mem* handle_ = nullptr;
  std::span<std::byte> bytes_;
};

}  // namespace farsum
