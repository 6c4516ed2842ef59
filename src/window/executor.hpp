// What carries out the operations of a window in a way of its own, beside the paths that every window has: the window
// asks it, and whoever makes the window brings it (variants/cards, variants/leases).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "base/units.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"
#include "protocol/operation.hpp"
#include "protocol/origin/hearing.hpp"
#include "window/completion.hpp"
#include "window/notifications.hpp"
#include "window/owner_messages.hpp"
#include "window/owner_path.hpp"
#include "window/path_counters.hpp"
#include "window/region_tables.hpp"
#include "window/remote_locks.hpp"
#include "window/target_state.hpp"
#include "window/window_texts.hpp"

namespace farsum {

// One operation, checked; `region` is where its bytes begin, null for a notification alone.
struct ExecutorCall {
  const Operation& operation;
  std::uint32_t target;
  const Region* region = nullptr;
  Completion completion = Completion::implicit;
  RequestState* request = nullptr;
};

// Any thread may call. Targets are ranks of the group; `call` names what the program called.
class Executor {
 public:
  virtual ~Executor() = default;
  // Refuses what it cannot do, before anything is started.
  virtual Status check(const Operation&, std::uint32_t, const Region&) const { return {}; }
  // Ends as the call's completion says; what is not complete on return is what settle() waits for.
  virtual Status run(const ExecutorCall& call) = 0;
  // Until what was started at the target has taken effect there; what failed is told by the next
  // OwnerMessages::take_failure.
  virtual void settle(std::uint32_t, const char*) {}
  // The same at all targets: all are asked before one is waited for.
  virtual void settle_all(const char*) {}
  // Until nothing that was started at the target needs the program's buffers.
  virtual Status await_buffers(std::uint32_t, const char*) { return {}; }
};

// What an executor may use of its window. All of it outlives the executor.
struct ExecutorServices {
  WindowId window = 0;
  std::uint32_t promises = 0;
  std::span<const Rank> ranks;  // of the job, by rank of the group
  const ops::KernelSet& kernels;
  TargetView* views;
  OrderMarks& order;
  OwnerMessages& messages;
  RemoteLocks& locks;
  OwnerPath& owner;
  Waiter& waiter;
  Hearing* hearing;  // may be null
  PathCounters& counters;
  Notifications& notifications;
  const WindowTexts& texts;
};

// Makes one for a window. Empty: the window has none.
using MakeExecutor = std::function<std::unique_ptr<Executor>(const ExecutorServices&)>;

}  // namespace farsum
