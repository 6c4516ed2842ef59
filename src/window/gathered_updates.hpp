// The aggregated path: single elements for one target are gathered here and travel as one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "base/thread_mutex.hpp"
#include "ops/element_type.hpp"
#include "protocol/messages.hpp"
#include "protocol/operation.hpp"
#include "window/owner_messages.hpp"
#include "window/remote_locks.hpp"

namespace farsum {

// Any thread may call. What is gathered is a copy.
class GatheredUpdates {
 public:
  // So many elements at most travel together. Both references outlive it.
  GatheredUpdates(OwnerMessages& messages, RemoteLocks& locks, std::uint32_t targets, std::uint64_t limit)
      : messages_(messages), locks_(locks), of_targets_(std::make_unique<OfTarget[]>(targets)), limit_(limit) {}

  // Adds an update to those that are there. False where it is the first of its kind, or the last that there is room
  // for: run() it, which sends what was gathered.
  bool try_add(const Update& update, std::uint32_t target);
  // An accumulate of one element, checked. Sends what is full.
  Status run(const Operation& operation, std::uint32_t target);
  // Sends what was gathered for the target.
  Status send(std::uint32_t target);

 private:
  struct OfTarget {
    ThreadMutex mutex;
    ops::ElementType type FARSUM_GUARDED_BY(mutex) = ops::ElementType::byte;
    ops::Operator op FARSUM_GUARDED_BY(mutex) = ops::Operator::replace;
    std::byte alpha[wire::alpha_bytes] FARSUM_GUARDED_BY(mutex) = {};
    std::vector<std::uint64_t> offsets FARSUM_GUARDED_BY(mutex);
    std::vector<std::byte> elements FARSUM_GUARDED_BY(mutex);

    bool is_like(const Operation& operation) const FARSUM_REQUIRES(mutex);
    void add(std::uint64_t offset, const std::byte* element, std::uint64_t bytes) FARSUM_REQUIRES(mutex);
  };

  OwnerMessages& messages_;
  RemoteLocks& locks_;
  std::unique_ptr<OfTarget[]> of_targets_;
  std::uint64_t limit_;
};

}  // namespace farsum
