// What the first rank of a job says once, where the kernel keeps some rank from copying from and to others of its node.
#pragma once

#include <atomic>

namespace farsum::mpi {

class CopiesNotice {
 public:
  struct Facts {
    bool is_first_rank = false;
    bool all_may_copy = false;
  };
  // By the thread that begins the engine, on each rank. An engine that begins anew is no new reason to speak.
  void decide(const Facts& facts);
  // For windows over memory of the program's own, by any thread.
  void say_if_refused();

 private:
  bool is_decided_ = false;
  std::atomic<bool> is_due_{false};
};

}  // namespace farsum::mpi
