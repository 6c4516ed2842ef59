// The state of the front in this process: the engine's context and who is in it, the windows, and the private
// communicator.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backing.hpp"
#include "copies_notice.hpp"
#include "datatypes.hpp"
#include "engine_life.hpp"
#include "farsum.h"
#include "library.hpp"
#include "notices.hpp"
#include "progress.hpp"
#include "requests.hpp"
#include "sessions.hpp"
#include "window.hpp"

namespace farsum::mpi {

class Front {
 public:
  Front();

  // The one of this process. Made when the front is loaded, never destroyed: calls may come until the process ends.
  static Front& get() { return *the_one; }

  // Joins the engine, collectively over the ranks of `comm`, unless it runs for all of them. False: it runs for some of
  // them only.
  bool begin_together(MPI_Comm comm);
  void stop_engine();
  // In a program of sessions, which has no Finalize and may free its communicators: after a window of `ranks` ranks was
  // freed, stops the engine if that was the last window of all ranks of the context. Collective over the window's
  // ranks. With several threads, of which one may be making another, it goes on until the last session's end.
  void end_if_unused(int ranks);
  bool threads_multiple() const { return threads_multiple_; }
  int context_size() const { return context_size_; }
  // Of the context's ranks, those that share this rank's memory.
  int node_size() const { return node_size_; }
  // The same on all of these ranks, for they have agreed on it when the engine began.
  bool node_is_crowded() const { return node_is_crowded_; }
  // Whether what goes to this rank of the group goes over the network.
  bool is_on_other_node(MPI_Group group, int rank) const;
  // Bytes of every rank of the context, in its order; false where that failed. Not for several threads at once.
  bool gather(const void* mine, void* all, std::size_t bytes) const;

  // The engine's group of a communicator's ranks, for one collective call of the engine's at a time: threads that make
  // windows over equal lists of ranks at once get different ones.
  class GroupLease {
   public:
    farsum_group group{};
    bool no_memory = false;      // some rank has none left for the group; all ranks are told so
    bool has_strangers = false;  // some ranks are outside the engine's context
    explicit operator bool() const { return held_.owns_lock(); }
    // The group is others' from here on.
    void end() { held_ = {}; }

   private:
    friend class Front;
    std::unique_lock<std::mutex> held_;
  };
  enum class Reach : std::uint8_t { all_nodes, this_node };
  // Not held where some of the ranks are outside the engine's context (a spawned process), cannot be reached over the
  // network (which has been said then), or are not on this node where only these are wanted. Collective over the
  // communicator; on all ranks or on none. Of a communicator that has had one it asks no rank and allocates nothing,
  // but in a program of sessions, whose ranks tell each other at each call whether the engine runs.
  GroupLease engine_group(MPI_Comm comm, Reach reach = Reach::all_nodes);

  // A duplicate of COMM_SELF (for sessions a communicator of this process alone): backing windows, probes, requests.
  MPI_Comm self() const { return self_; }

  Progress progress;
  WindowTable windows;
  Datatypes datatypes;
  Requests requests;
  BackingWindows backing;
  Notices notices;
  CopiesNotice copies_notice;
  EngineLife life;
  Sessions sessions{life};
  // Held while a backing window is taken or given back together with its entry in the table: handles are used again at
  // once. Recursive, for a delete callback may free another window.
  std::recursive_mutex backing_mutex;

  bool has_begun = false;  // guarded by the mutex of the preloaded file, under which it starts the front
  // The calls by which a rank hears of others tell the engine. Written where has_begun is.
  bool calls_are_heard = false;
  std::atomic<std::uint64_t> windows_made{0};

 private:
  static Front* const the_one;

  void start_engine(MPI_Comm comm, EngineLife::Claim& claim);
  // What `comm` holds beside this node.
  struct Job {
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0;
    int size = 0;
    int node_size = 0;
    bool has_other_nodes() const { return node_size < size; }
  };
  bool look_at_job(MPI_Comm comm, Job& job);
  farsum_init_options options_for(const Job& job);
  struct Abilities {
    bool has_all = false;   // what it needs for the engine
    bool may_copy = false;  // from and to others of its node, as far as the kernel goes
  };
  // What every rank has, where `mine` are this one's.
  static Abilities of_all_ranks(MPI_Comm comm, const Job& job, const Abilities& mine);
  void take_up(MPI_Comm comm, const Job& job);
  bool share_secret(MPI_Comm comm, const Job& job, farsum_init_options& options);
  void find_who_is_here(const Job& job);
  void make_self(MPI_Comm comm);
  void drop_self();
  const char* what_is_missing(const Job& job);

  // The engine's groups of one list of ranks, made in order, so that the n-th is the same on all of them.
  struct GroupInstance {
    farsum_group group{};
    bool made = false;  // guarded, as `group`, by `making`
    std::mutex in_use;
    // On the rank that chooses, with several threads: a communicator has it for its life.
    std::atomic<bool> is_taken{false};
  };
  // What a communicator's first window has found out, for its later ones: an attribute of the communicator. The ranks
  // have all of them the instance, or none has it.
  struct Binding {
    std::uint64_t engine_run = 0;
    GroupInstance* instance = nullptr;  // null: not yet
    bool on_this_node = false;
    bool takes_instance = false;
  };
  // Whether the ranks of a list know each other's ways over the network.
  enum class Acquaintance : std::uint8_t { unknown, made, refused };
  struct Groups {
    std::atomic<Acquaintance> acquaintance{Acquaintance::unknown};
    std::mutex making;                                      // held while ranks meet to make one
    std::mutex listing;                                     // held for moments
    std::vector<std::unique_ptr<GroupInstance>> instances;  // guarded by `listing`
  };
  struct ByRanks {
    using is_transparent = void;
    bool operator()(std::span<const int> one, std::span<const int> other) const {
      return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
    }
  };
  using GroupsByRanks = std::map<std::vector<int>, Groups, ByRanks>;

  // The ranks of a communicator in the context.
  struct Found {
    GroupsByRanks::value_type* groups = nullptr;  // their entry; nullptr: there is no memory for it
    bool in_context = false;                      // all of them
    bool on_this_node = true;                     // all of them
  };
  Found find_groups(MPI_Comm comm);
  bool are_acquainted(MPI_Comm comm, GroupsByRanks::value_type* groups, GroupLease& lease);
  bool make_acquaintance(MPI_Comm comm, std::vector<unsigned char>& cards);
  void say_unreachable(const char* why, Notices::Voice voice);
  Binding* binding_of(MPI_Comm comm) const;
  Binding* bind(MPI_Comm comm);
  static int unbind(MPI_Comm comm, int keyval, void* binding, void* nothing);
  void agree_on_instance(MPI_Comm comm, const Found& found, GroupLease& lease);
  static GroupInstance* take_unused(GroupsByRanks::value_type& groups, std::size_t& count);
  static std::size_t grow(GroupsByRanks::value_type& groups, std::size_t count);
  static bool add_instance(GroupsByRanks::value_type& groups);
  GroupInstance* make_instance(GroupsByRanks::value_type& groups, std::size_t index);
  bool make_group(const std::vector<int>& ranks, std::size_t index, farsum_group* group) const;

  MPI_Comm self_ = MPI_COMM_NULL;
  MPI_Group context_ = MPI_GROUP_NULL;  // the ranks of the engine's context, in its order
  int context_size_ = 0;
  int node_size_ = 0;
  bool node_is_crowded_ = false;
  MPI_Comm job_ = MPI_COMM_NULL;  // the context's ranks where they are on several nodes
  std::vector<bool> is_here_;     // by rank of the context, where they are on several nodes
  bool threads_multiple_ = false;
  int bindings_ = MPI_KEYVAL_INVALID;
  // Bindings of earlier ones are void. Atomic for communicators that are freed beside the engine's end: relaxed.
  std::atomic<std::uint64_t> engine_run_{0};

  std::vector<int> everyone_;   // the context's ranks: 0, 1, 2, ...
  std::mutex groups_mutex_;     // guards what follows
  std::vector<int> looked_up_;  // room for as many
  GroupsByRanks groups_;        // entries stay where they are
};

// What the library is told of a window that is not the front's. The handle of one that was freed may be that of a
// backing window that waits for the next: then it is none.
inline MPI_Win for_library(MPI_Win win) {
  Front& front = Front::get();
  if (!front.backing.some_wait()) return win;
  const std::lock_guard lock(front.backing_mutex);
  return front.backing.is_waiting(win) ? MPI_WIN_NULL : win;
}

}  // namespace farsum::mpi
