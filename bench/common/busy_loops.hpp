// Processes that want a processor and do nothing with it: another job, or a compiler, beside the one that is measured.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace bench {

enum class LoopSession : std::uint8_t { own, of_parent };

// Ends with the parent, however that ends. The process number, or what fork says where there is no process to be had.
[[nodiscard]] pid_t start_busy_loop(LoopSession session);

// In a session of their own each, as another user's would be; they end with this object, and with this process.
class BusyLoops {
 public:
  explicit BusyLoops(int count);
  ~BusyLoops();
  BusyLoops(const BusyLoops&) = delete;
  BusyLoops& operator=(const BusyLoops&) = delete;

 private:
  std::vector<pid_t> loops_;
};

}  // namespace bench
