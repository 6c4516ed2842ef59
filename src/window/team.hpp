// What a window needs of a group of ranks: to meet. src/collectives implements it.
#pragma once

#include "base/status.hpp"

namespace farsum {

class Team {
 public:
  virtual ~Team() = default;
  // Returns once every member has called.
  virtual Status barrier(const char* doing) = 0;
};

}  // namespace farsum
