#include "front.hpp"

#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "attending.hpp"
#include "farsum_embed.h"
#include "setting.h"
#include "statistics.hpp"

namespace farsum::mpi {

farsum_mpi_library the_library;
void* the_library_handle = nullptr;

namespace {

// Whoever waits in the engine keeps the library going. The thread is one that the program called MPI from, so that no
// level of thread support is needed.
void drive_library(void* progress) { static_cast<Progress*>(progress)->drive(); }

}  // namespace

Front::Front() = default;

Front* const Front::the_one = new Front;

void Front::make_self(MPI_Comm comm) {
  if (sessions.are_alone()) {
    int rank = 0;
    library().Comm_rank(comm, &rank);
    library().Comm_split(comm, rank, 0, &self_);
  } else {
    library().Comm_dup(MPI_COMM_SELF, &self_);
  }
  progress.open(self_, !farsum_mpi_setting_is_off("FARSUM_MPI_YIELD"));
}

farsum_init_options Front::options_for(const Job& job) {
  farsum_init_options options = {};
  options.struct_bytes = sizeof options;
  library().Comm_rank(job.node(), &options.rank);
  options.size = job.node_size();
  options.idle = drive_library;
  options.idle_user = &progress;
  ranks.ask_for_threads();
  options.many_threads = ranks.threads_multiple() ? 1 : 0;
  return options;
}

void Front::start_engine(MPI_Comm comm, EngineLife::Claim& claim) {
  make_self(comm);
  const std::optional<Job> job = Job::of(comm);
  if (!job) {
    notices.say_once("engine",
                     "the one-sided layer stays the MPI library's own: it did not say which ranks share this node");
    drop_self();
    return;
  }
  farsum_init_options options = options_for(*job);
  MPI_Comm node = job->node();
  options.allgather = gather_over_mpi;
  options.allgather_user = static_cast<void*>(&node);
  const bool has_secret = !job->has_other_nodes() || job->share_secret(options);
  const farsum_status status = farsum_init(&options);
  backed.open(self_, !sessions.are_alone());
  const char* const missing = status != FARSUM_OK ? farsum_last_error()
                              : !has_secret       ? "the system has no random bytes"
                                                  : what_is_missing(*job);
  // All ranks or none.
  const Job::Abilities all =
      job->of_all_ranks({.has_all = missing == nullptr, .may_copy = farsum_copies_refused() == nullptr});
  copies_notice.decide({.is_first_rank = job->rank() == 0, .all_may_copy = all.may_copy});
  if (all.has_all) {
    ranks.begin(*job);
    if (ranks.node_is_crowded()) progress.be_in_crowded_job();
    claim.take_up();
  } else {
    if (missing != nullptr)
      notices.say_once("engine", std::string("the one-sided layer stays the MPI library's own: ") + missing);
    if (status == FARSUM_OK) (void)farsum_finalize_forced();
    drop_self();
  }
}

// Beside the engine, that this rank could not get or make; nullptr: nothing.
const char* Front::what_is_missing(const Job& job) {
  try {
    ranks.prepare(job);
    groups.prepare(job.size());
    // Sessions without threads begin an engine anew with each window after a last one, and ask all ranks anyway.
    const bool binds = !sessions.are_alone() || ranks.threads_multiple();
    if (binds && !bindings.open()) return "the library made no key for attributes of communicators";
    return datatypes.open() ? nullptr : "the library's datatypes could not be read";
  } catch (const std::bad_alloc&) {
    return "the process has no memory left";
  }
}

void Front::drop_self() {
  progress.close();
  backed.close();
  bindings.close();
  if (self_ != MPI_COMM_NULL) library().Comm_free(&self_);
}

void Front::stop_engine() {
  if (!life.begin_to_end()) return;
  if (sessions.are_alone()) collect_at_engines_end();
  requests.close();
  // What the program left; its memory goes with the engine's context. One at a time, for the delete callbacks that run
  // in the library's free may free others.
  for (std::vector<Window*> left = windows.all(); !left.empty(); left = windows.all()) {
    Window* window = left.front();
    MPI_Win handle = window->handle;
    library().Win_free(&handle);
    windows.remove(window);
    if (window->group != MPI_GROUP_NULL) library().Group_free(&window->group);
    delete window;
  }
  // A rank that has not come yet may still use the others' windows, and one that is still here their links.
  ranks.wait_for_all();
  LibraryWait::forbid();
  if (farsum_finalize_forced() != FARSUM_OK) std::fprintf(stderr, "farsum: %s\n", farsum_last_error());
  ranks.wait_for_all();
  bindings.forget();
  groups.clear();
  datatypes.close();
  ranks.end();
  drop_self();
  life.ended();
}

void Front::end_if_unused(int window_ranks) {
  if (ranks.threads_multiple() || window_ranks != ranks.size()) return;
  if (ranks.all_have_none(windows.all().size())) stop_engine();
}

bool Front::begin_together(MPI_Comm comm) {
  Sessions::Agreement agreed = sessions.agree(comm);
  if (agreed.answer == Sessions::Answer::start) start_engine(comm, agreed.claim);
  return agreed.answer != Sessions::Answer::not_for_all;
}

GroupLease Front::engine_group(MPI_Comm comm, Groups::Reach reach) {
  if (sessions.are_alone() && !begin_together(comm)) return GroupLease(GroupLease::Refusal::has_strangers);
  if (!life.engine_runs()) return {};
  return groups.lease(comm, reach);
}

MPI_Win for_library(MPI_Win win) { return Front::get().backed.for_library(win); }

}  // namespace farsum::mpi
