#include "engine.hpp"

#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "attending.hpp"
#include "farsum_embed.h"
#include "setting.h"

namespace farsum::mpi {
namespace {

// Whoever waits in the engine keeps the library going. The thread is one that the program called MPI from, so that no
// level of thread support is needed.
void drive_library(void* progress) { static_cast<Progress*>(progress)->drive(); }

}  // namespace

void Engine::make_self(MPI_Comm comm) {
  if (parts_.sessions.are_alone()) {
    int rank = 0;
    library().Comm_rank(comm, &rank);
    library().Comm_split(comm, rank, 0, &self_);
  } else {
    library().Comm_dup(MPI_COMM_SELF, &self_);
  }
  parts_.progress.open(self_, !farsum_mpi_setting_is_off("FARSUM_MPI_YIELD"));
}

void Engine::drop_self() {
  parts_.progress.close();
  parts_.backed.close();
  parts_.bindings.close();
  if (self_ != MPI_COMM_NULL) library().Comm_free(&self_);
}

farsum_init_options Engine::options_for(const Job& job) {
  farsum_init_options options = {};
  options.struct_bytes = sizeof options;
  library().Comm_rank(job.node(), &options.rank);
  options.size = job.node_size();
  options.idle = drive_library;
  options.idle_user = &parts_.progress;
  parts_.ranks.ask_for_threads();
  options.many_threads = parts_.ranks.threads_multiple() ? 1 : 0;
  return options;
}

void Engine::start(MPI_Comm comm, EngineLife::Claim& claim) {
  make_self(comm);
  if (const std::optional<Job> job = Job::of(comm)) {
    start_over(*job, claim);
  } else {
    parts_.notices.say_once(
        "engine", "the one-sided layer stays the MPI library's own: it did not say which ranks share this node");
  }
  if (claim.is_held()) drop_self();
}

void Engine::start_over(const Job& job, EngineLife::Claim& claim) {
  farsum_init_options options = options_for(job);
  MPI_Comm node = job.node();
  options.allgather = gather_over_mpi;
  options.allgather_user = static_cast<void*>(&node);
  const bool has_secret = !job.has_other_nodes() || job.share_secret(options);
  const farsum_status status = farsum_init(&options);
  parts_.backed.open(self_, !parts_.sessions.are_alone());
  const char* const missing = status != FARSUM_OK ? farsum_last_error()
                              : !has_secret       ? "the system has no random bytes"
                                                  : what_is_missing(job);
  // All ranks or none.
  const Job::Abilities all =
      job.of_all_ranks({.has_all = missing == nullptr, .may_copy = farsum_copies_refused() == nullptr});
  parts_.copies_notice.decide({.is_first_rank = job.rank() == 0, .all_may_copy = all.may_copy});
  if (all.has_all) {
    parts_.ranks.begin(job);
    if (parts_.ranks.node_is_crowded()) parts_.progress.be_in_crowded_job();
    claim.take_up();
    return;
  }
  if (missing != nullptr)
    parts_.notices.say_once("engine", std::string("the one-sided layer stays the MPI library's own: ") + missing);
  if (status == FARSUM_OK) (void)farsum_finalize_forced();
}

// Beside the engine, that this rank could not get or make; nullptr: nothing.
const char* Engine::what_is_missing(const Job& job) {
  try {
    parts_.ranks.prepare(job);
    parts_.groups.prepare(job.size());
    // Sessions without threads begin an engine anew with each window after a last one, and ask all ranks anyway.
    const bool binds = !parts_.sessions.are_alone() || parts_.ranks.threads_multiple();
    if (binds && !parts_.bindings.open()) return "the library made no key for attributes of communicators";
    return parts_.datatypes.open() ? nullptr : "the library's datatypes could not be read";
  } catch (const std::bad_alloc&) {
    return "the process has no memory left";
  }
}

void Engine::stop() {
  parts_.requests.close();
  free_windows();
  // A rank that has not come yet may still use the others' windows, and one that is still here their links.
  parts_.ranks.wait_for_all();
  LibraryWait::forbid();
  if (farsum_finalize_forced() != FARSUM_OK) std::fprintf(stderr, "farsum: %s\n", farsum_last_error());
  parts_.ranks.wait_for_all();
}

void Engine::let_go() {
  parts_.bindings.forget();
  parts_.groups.clear();
  parts_.datatypes.close();
  parts_.ranks.end();
  drop_self();
}

// What the program left; its memory goes with the engine's context. One at a time, for the delete callbacks that run in
// the library's free may free others.
void Engine::free_windows() {
  for (std::vector<Window*> left = parts_.windows.all(); !left.empty(); left = parts_.windows.all()) {
    Window* window = left.front();
    MPI_Win handle = window->handle;
    library().Win_free(&handle);
    parts_.windows.remove(window);
    if (window->group != MPI_GROUP_NULL) library().Group_free(&window->group);
    delete window;
  }
}

}  // namespace farsum::mpi
