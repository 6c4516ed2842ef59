#include "transport/rdma/ucx_exposed.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transport/rdma/ucx_key.hpp"
#include "transport/rdma/ucx_trial.hpp"

namespace farsum {

Result<std::vector<std::byte>> UcxExposed::key_of(const UcxMemory& memory) const {
  UcxKey key{reinterpret_cast<std::uintptr_t>(memory.bytes().data()), memory.bytes().size(), {}};
  if (key.bytes != 0) {
    auto packed = memory.key();
    if (!packed.is_ok()) return packed.take_status();
    key.packed = std::move(packed.value());
  }
  std::vector<std::byte> whole = sealed_key(key);
  if (whole.size() > Rdma::most_key_bytes) {
    return Status(Code::unsupported, fmt::format("UCX: a key to memory over {} has {} bytes, and {} are the most",
                                                 card_.context->description(), whole.size(), Rdma::most_key_bytes));
  }
  return whole;
}

Result<UcxMemory> UcxExposed::map(std::byte* memory, std::uint64_t bytes) const {
  auto mapped = UcxMemory::map(*card_.context, memory, bytes);
  if (!mapped.is_ok() || owners_ != UcxOwners::idle) return mapped;
  // The memory is only read: the program may be writing to its own.
  auto tried = try_reading(*card_.context, mapped.value());
  if (tried.is_ok()) return mapped;
  return Status(Code::unsupported,
                fmt::format("{} does not reach {} bytes of {} by itself: {}", card_.description, bytes,
                            memory == nullptr ? "its own memory" : "the program's memory", tried.take_status().text()));
}

Result<CardMemory> UcxExposed::expose(std::byte* memory, std::uint64_t bytes) {
  Exposed exposed;
  if (bytes != 0) {
    auto mapped = map(memory, bytes);
    if (!mapped.is_ok()) return mapped.take_status();
    exposed.memory = std::move(mapped.value());
    memory = exposed.memory.bytes().data();
  }
  auto key = key_of(exposed.memory);
  if (!key.is_ok()) return key.take_status();
  exposed.told = {memory, bytes, std::move(key.value())};
  const MutexGuard lock(mutex_);
  exposed_.push_back(std::move(exposed));
  return exposed_.back().told;
}

void UcxExposed::conceal(const CardMemory& memory) {
  const MutexGuard lock(mutex_);
  const auto found = std::find_if(exposed_.begin(), exposed_.end(), [&memory](const Exposed& exposed) {
    return exposed.told.memory == memory.memory && exposed.told.key == memory.key;
  });
  if (found != exposed_.end()) exposed_.erase(found);
}

}  // namespace farsum
