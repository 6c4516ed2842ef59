// What the first window of a communicator has found out, for its later ones: an attribute of the communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "group_instances.hpp"
#include "library.hpp"

namespace farsum::mpi {

// All ranks of the communicator have the instance, or none has it; `is_unreachable` is the same on all of them.
struct Binding {
  const EngineRun engine_run;
  GroupInstance* instance = nullptr;   // null: not yet
  std::shared_ptr<OwnGroup> own = {};  // the same, where no list has it; else null
  bool on_this_node = false;
  bool takes_instance = false;
  bool is_unreachable = false;  // some ranks could not be introduced to each other: there is no instance
};

// Opened and closed by the thread that starts or stops the engine; any may ask meanwhile. Must outlive the
// communicators.
class CommunicatorBindings {
 public:
  CommunicatorBindings() = default;
  CommunicatorBindings(const CommunicatorBindings&) = delete;
  CommunicatorBindings& operator=(const CommunicatorBindings&) = delete;

  // False: the library makes no key. Without it nothing is bound.
  [[nodiscard]] bool open();
  void close();
  // What communicators remember means nothing from here on.
  void forget() { runs_ended_.fetch_add(1, std::memory_order_relaxed); }
  // The engine's present run; outlived by this.
  EngineRun engine_run() const { return EngineRun(runs_ended_); }

  // nullptr: it has none.
  Binding* find(MPI_Comm comm) const;
  // An earlier one that has no instance, or a new one; nullptr: there is no memory for it.
  Binding* bind(MPI_Comm comm) const;

 private:
  static int unbind(MPI_Comm comm, int keyval, void* binding, void*);

  int keyval_ = MPI_KEYVAL_INVALID;
  std::atomic<std::uint64_t> runs_ended_{0};  // of the engine
};

}  // namespace farsum::mpi
