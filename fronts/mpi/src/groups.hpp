// The engine's groups of the ranks of communicators.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "acquaintance.hpp"
#include "communicator_bindings.hpp"
#include "context_ranks.hpp"
#include "farsum.h"
#include "group_instances.hpp"
#include "library.hpp"

namespace farsum::mpi {

// The engine's group of a communicator's ranks, for one collective call of the engine's at a time: threads that make
// windows over equal lists of ranks at once get different ones. Not held where some of the ranks are outside the
// engine's context (a spawned process), cannot be reached over the network (which has been said then), or are not on
// this node where only these are wanted.
class GroupLease {
 public:
  enum class Refusal : std::uint8_t {
    none,           // it is held, or is not, without a reason to tell
    has_strangers,  // some ranks are outside the engine's context
    no_memory,      // some rank has none left for the group; all ranks are told so
  };

  GroupLease() = default;
  explicit GroupLease(Refusal refusal) : refusal_(refusal) {}
  GroupLease(farsum_group group, std::unique_lock<std::mutex> held) : group_(group), held_(std::move(held)) {}

  explicit operator bool() const { return held_.owns_lock(); }
  farsum_group group() const { return group_; }
  Refusal refusal() const { return refusal_; }
  // The group is others' from here on.
  void end() { held_ = {}; }

 private:
  farsum_group group_{};
  Refusal refusal_ = Refusal::none;
  std::unique_lock<std::mutex> held_;
};

// Prepared and cleared by the thread that starts or stops the engine; any may ask meanwhile.
class Groups {
 public:
  enum class Reach : std::uint8_t { all_nodes, this_node };

  Groups(const ContextRanks& ranks, const CommunicatorBindings& bindings, Introductions& introductions)
      : ranks_(ranks), bindings_(bindings), introductions_(introductions) {}

  // Makes room for communicators of so many ranks. Throws std::bad_alloc.
  void prepare(int ranks) { looked_up_.resize(static_cast<std::size_t>(ranks)); }
  void clear() { lists_.clear(); }

  // Collective over the communicator, while the engine runs; held on all ranks or on none. Of a communicator that has
  // had one it asks no rank and allocates nothing.
  GroupLease lease(MPI_Comm comm, Reach reach);

 private:
  // What is known of one list of ranks.
  struct List {
    std::atomic<Acquaintance> acquaintance{Acquaintance::unknown};
    GroupInstances instances;
  };
  struct ByRanks {
    using is_transparent = void;
    bool operator()(std::span<const int> one, std::span<const int> other) const {
      return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
    }
  };
  using Lists = std::map<std::vector<int>, List, ByRanks>;

  // The ranks of a communicator in the context.
  struct Found {
    Lists::value_type* list = nullptr;  // their entry; nullptr: there is no memory for it
    bool in_context = false;            // all of them
    bool on_this_node = true;           // all of them
  };
  Found find(MPI_Comm comm);
  GroupLease choose(MPI_Comm comm, const Found& found);
  bool make(std::span<const int> ranks, std::size_t index, farsum_group* group) const;

  const ContextRanks& ranks_;
  const CommunicatorBindings& bindings_;
  Introductions& introductions_;
  std::mutex mutex_;            // guards what follows
  std::vector<int> looked_up_;  // room for as many ranks as the context has
  Lists lists_;                 // entries stay where they are
};

}  // namespace farsum::mpi
