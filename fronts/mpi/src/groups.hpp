// The engine's groups of the ranks of communicators.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  GroupLease(farsum_group group, std::unique_lock<std::mutex> held, std::shared_ptr<OwnGroup> own = {})
      : own_(std::move(own)), group_(group), held_(std::move(held)) {}

  explicit operator bool() const { return held_.owns_lock(); }
  farsum_group group() const { return group_; }
  Refusal refusal() const { return refusal_; }
  // What a window over the group has to keep; null: nothing.
  std::shared_ptr<OwnGroup> own() const { return own_; }
  // The group is others' from here on.
  void end() {
    held_ = {};
    own_ = {};
  }

 private:
  std::shared_ptr<OwnGroup> own_;  // outlives the lock, which is its
  farsum_group group_{};
  Refusal refusal_ = Refusal::none;
  std::unique_lock<std::mutex> held_;
};

// The first lists of ranks keep their groups until the engine ends, so that a further communicator of the same ranks is
// known. Only the first `most_kept` lists are kept, so that memory stays bounded in a long run: once a rank has as
// many, the communicators of its other lists get a group each, which goes with them and their windows. Lists whose
// ranks cannot reach each other have no groups and are not kept.
//
// Prepared and cleared by the thread that starts or stops the engine; any may ask meanwhile.
class Groups {
 public:
  static constexpr std::size_t most_kept = 128;

  enum class Reach : std::uint8_t { all_nodes, this_node };

  Groups(const ContextRanks& ranks, const CommunicatorBindings& bindings, Introductions& introductions)
      : ranks_(ranks), bindings_(bindings), introductions_(introductions) {}

  // Makes room for communicators of so many ranks. Throws std::bad_alloc.
  void prepare(int ranks) { looked_up_.resize(static_cast<std::size_t>(ranks)); }
  void clear() {
    lists_.clear();
    kept_ = 0;
  }

  // Collective over the communicator, while the engine runs; held on all ranks or on none. Of a communicator that has
  // had one it asks no rank and allocates nothing.
  GroupLease lease(MPI_Comm comm, Reach reach);

 private:
  // What is known of one list of ranks.
  struct List {
    std::atomic<Acquaintance> acquaintance{Acquaintance::unknown};
    GroupInstances instances;
    // These two are guarded by mutex_. All ranks of the list have agreed to keep it; else it goes with the last thread
    // that asks for it.
    bool is_kept = false;
    int asking = 0;
  };
  struct ByRanks {
    using is_transparent = void;
    bool operator()(std::span<const int> one, std::span<const int> other) const {
      return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
    }
  };
  using Lists = std::map<std::vector<int>, List, ByRanks>;

  // The ranks of a communicator in the context, as long as a thread asks for their group.
  struct Found {
    Lists::value_type* list = nullptr;  // their entry; nullptr: there is no memory for it
    bool in_context = false;            // all of them
    bool on_this_node = true;           // all of them
    bool is_kept = false;               // their list
    bool has_room = false;              // the list is kept or may be, as far as this rank goes
  };
  // Lets go of what was found.
  class Asking {
   public:
    Asking(Groups& groups, MPI_Comm comm) : groups_(groups), found_(groups.find(comm)) {}
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    ~Asking() { groups_.let_go(found_); }
    const Found& operator*() const { return found_; }

   private:
    Groups& groups_;
    const Found found_;
  };
  // What this rank brings to the agreement.
  struct Means {
    bool has_room = false;  // for the list
    bool is_bound = false;  // the communicator can remember its group
  };
  // How all ranks get their group.
  struct Agreement {
    bool is_reached = false;
    bool no_memory = false;  // of some rank
    bool is_kept = true;     // all ranks keep the list; else the communicator gets a group of this number
    bool are_bound = false;  // all ranks
    std::uint64_t number = 0;
  };

  Found find(MPI_Comm comm);
  void let_go(const Found& found);
  void keep(List& list);
  template <class Have>
  Agreement agree(MPI_Comm comm, const Means& means, std::size_t& count, Have&& have);
  GroupLease choose(MPI_Comm comm, const Found& found);
  std::optional<GroupLease::Refusal> introduce(MPI_Comm comm, const Found& found);
  bool make(std::span<const int> ranks, std::size_t index, farsum_group* group) const;

  const ContextRanks& ranks_;
  const CommunicatorBindings& bindings_;
  Introductions& introductions_;
  // Numbers of groups, for lists that begin with this rank; unique in the job's life, whatever engine runs.
  std::atomic<std::uint64_t> next_number_{0};
  std::mutex mutex_;            // guards what follows
  std::vector<int> looked_up_;  // room for as many ranks as the context has
  Lists lists_;                 // entries stay where they are
  std::size_t kept_ = 0;        // of them
};

}  // namespace farsum::mpi
