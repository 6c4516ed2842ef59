// The state of the front in this process: the engine's context and who is in it, the windows, and the private
// communicator.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "datatypes.hpp"
#include "farsum.h"
#include "library.hpp"
#include "progress.hpp"
#include "requests.hpp"
#include "window.hpp"

namespace farsum::mpi {

class Front {
 public:
  Front();

  // The one of this process. Made when the front is loaded, never destroyed: calls may come until the process ends.
  static Front& get() { return *the_one; }

  // Joins the engine, collectively over the ranks of `comm` that share this node.
  void start_engine(MPI_Comm comm);
  void stop_engine();
  // In a program of sessions, which has no Finalize and may free its communicators: after a window of `ranks` ranks was
  // freed, stops the engine if that was the last window of all ranks of the context. Collective over the window's
  // ranks. With several threads, of which one may be making another, it goes on until the last session's end.
  void end_if_unused(int ranks);
  // Relaxed: who uses the engine has met the thread that started it, or begin_together.
  bool engine_runs() const { return engine_runs_.load(std::memory_order_relaxed); }
  bool threads_multiple() const { return threads_multiple_; }
  int context_size() const { return context_size_; }

  // The engine's group of a communicator's ranks, for one collective call of the engine's at a time: threads that make
  // windows over equal lists of ranks at once get different ones.
  class GroupLease {
   public:
    farsum_group group{};
    explicit operator bool() const { return held_.owns_lock(); }

   private:
    friend class Front;
    std::unique_lock<std::mutex> held_;
  };
  // Not held where some of the ranks are outside the engine's context (another node, a spawned process). Collective
  // over the communicator.
  GroupLease engine_group(MPI_Comm comm);

  // A backing window: name, attributes and error handler of a window, and its handle. No other rank takes part.
  int make_backing(MPI_Win* win);

  // A duplicate of COMM_SELF (for sessions a communicator of this process alone): backing windows, probes, requests.
  MPI_Comm self() const { return self_; }

  Progress progress;
  WindowTable windows;
  Datatypes datatypes;
  Requests requests;
  // Held while a backing window is made or freed together with its entry in the table: handles are used again at once.
  // Recursive, for a delete callback may free another window.
  std::recursive_mutex backing_mutex;

  // Says `sentence` on stderr, once for each `kind`; or keeps it only for the report at the end, where another rank
  // says it.
  enum class Voice : std::uint8_t { aloud, silent };
  void say_once(const char* kind, const std::string& sentence, Voice voice = Voice::aloud);
  // What was said so far.
  std::vector<std::string> said();
  // Whether the library follows this version of MPI or a later one.
  bool standard_at_least(int version, int subversion) const {
    return version_ > version || (version_ == version && subversion_ >= subversion);
  }
  bool sessions_only = false;
  std::atomic<std::uint64_t> windows_made{0};

 private:
  static Front* const the_one;
  // How a library is asked for a backing window; see make_backing.
  enum class Backing { allocate_shared, allocate, create };

  void make_self(MPI_Comm comm);
  void drop_self();
  bool begin_together(MPI_Comm comm);
  void find_backing();

  // The engine's groups of one list of ranks, made in order, so that the n-th is the same on all of them.
  struct GroupInstance {
    farsum_group group{};
    bool made = false;  // guarded, as `group`, by `making`
    std::mutex in_use;
  };
  struct Groups {
    std::mutex making;                                      // held while ranks meet to make one
    std::mutex listing;                                     // held for moments
    std::vector<std::unique_ptr<GroupInstance>> instances;  // guarded by `listing`
  };
  bool make_group(const std::vector<int>& ranks, std::size_t index, farsum_group* group) const;
  GroupInstance* instance_of(Groups& groups, const std::vector<int>& ranks, std::size_t index);
  GroupInstance* take_instance(MPI_Comm comm, Groups& groups, const std::vector<int>& ranks);

  std::mutex beginning_;  // in a program of sessions: held by one thread of each rank while the engine begins
  std::atomic<bool> engine_runs_{false};
  MPI_Comm self_ = MPI_COMM_NULL;
  Backing backing_ = Backing::allocate_shared;
  MPI_Group context_ = MPI_GROUP_NULL;  // the ranks of the engine's context, in its order
  int context_size_ = 0;
  bool threads_multiple_ = false;
  int version_ = 3;
  int subversion_ = 1;

  std::mutex groups_mutex_;
  std::map<std::vector<int>, Groups> groups_;  // entries stay where they are
  std::mutex said_mutex_;
  std::map<std::string, std::string> said_;  // by kind
};

// Lets MPI_Finalize stop the engine.
void install_shutdown();

// The pairs of an info object; none for MPI_INFO_NULL.
std::map<std::string, std::string> read_info(MPI_Info info);

}  // namespace farsum::mpi
