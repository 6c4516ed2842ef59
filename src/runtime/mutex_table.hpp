// Mutexes are made and freed by all ranks of a group: as windows without memory.
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "runtime/mutexes.hpp"
#include "runtime/windows.hpp"

namespace farsum {

class MutexTable {
 public:
  explicit MutexTable(Windows& windows) : windows_(windows) {}

  // `count` at this rank. `lacks_memory`: the caller has found none; then no rank gets them.
  Result<Mutexes*> create(Group& group, std::uint32_t count, bool lacks_memory = false);
  // pending on all ranks while one of them holds or waits for a mutex.
  Status free(Mutexes* mutexes);

 private:
  Windows& windows_;
};

}  // namespace farsum
