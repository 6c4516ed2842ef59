// By what model operations choose their paths at machines of each kind. Its files are read when a window first asks for
// that kind.
#pragma once

#include <cstdint>
#include <map>

#include "base/settings.hpp"
#include "base/thread_mutex.hpp"
#include "runtime/link_models.hpp"

namespace farsum {

// Any thread may ask. What it has answered stays while it lives.
class PathModels {
 public:
  explicit PathModels(const Settings& settings) : settings_(settings) {}

  // Of the machines with that number.
  const PathModel& at(std::uint32_t machine);

 private:
  const PathModel* known(std::uint32_t machine);

  const Settings& settings_;
  ThreadMutex mutex_;
  std::map<std::uint32_t, PathModel> models_ FARSUM_GUARDED_BY(mutex_);  // by the machine's number
};

}  // namespace farsum
