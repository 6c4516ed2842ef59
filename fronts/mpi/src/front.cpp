#include "front.hpp"

#include "statistics.hpp"

namespace farsum::mpi {

farsum_mpi_library the_library;
void* the_library_handle = nullptr;

Front::Front() = default;

Front* const Front::the_one = new Front;

bool Front::begin_together(MPI_Comm comm) {
  Sessions::Agreement agreed = sessions.agree(comm);
  if (agreed.answer == Sessions::Answer::start) engine_.start(comm, agreed.claim);
  return agreed.answer != Sessions::Answer::not_for_all;
}

void Front::stop_engine() {
  if (!life.begin_to_end()) return;
  if (sessions.are_alone()) collect_at_engines_end();
  engine_.stop();
  // The library may call the program back while what is left of the engine goes: nothing of it is Farsum's any more.
  life.stopped();
  engine_.let_go();
  life.ended();
}

void Front::end_if_unused(int window_ranks) {
  if (ranks.threads_multiple() || window_ranks != ranks.size()) return;
  if (ranks.all_have_none(windows.all().size())) stop_engine();
}

GroupLease Front::engine_group(MPI_Comm comm, Groups::Reach reach) {
  if (sessions.are_alone() && !begin_together(comm)) return GroupLease(GroupLease::Refusal::has_strangers);
  if (!life.engine_runs()) return {};
  return groups.lease(comm, reach);
}

MPI_Win for_library(MPI_Win win) { return Front::get().backed.for_library(win); }

}  // namespace farsum::mpi
