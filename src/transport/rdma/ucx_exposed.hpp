// What a rank exposes to the cards of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "transport/rdma.hpp"
#include "transport/rdma/ucx_card.hpp"
#include "transport/rdma/ucx_memory.hpp"

namespace farsum {

// Any thread may call. The card must outlive it.
class UcxExposed {
 public:
  UcxExposed(const UcxCard& card, UcxOwners owners) : card_(card), owners_(owners) {}
  UcxExposed(const UcxExposed&) = delete;
  UcxExposed& operator=(const UcxExposed&) = delete;

  // As Rdma's.
  Result<CardMemory> expose(std::byte* memory, std::uint64_t bytes);
  void conceal(const CardMemory& memory);

 private:
  struct Exposed {
    CardMemory told;
    UcxMemory memory;
  };
  Result<UcxMemory> map(std::byte* memory, std::uint64_t bytes) const;
  Result<std::vector<std::byte>> key_of(const UcxMemory& memory) const;

  const UcxCard& card_;
  const UcxOwners owners_;
  ThreadMutex mutex_;  // orders what is exposed; UCX sees to its own
  std::vector<Exposed> exposed_ FARSUM_GUARDED_BY(mutex_);
};

}  // namespace farsum
