// The cases by name. Each checks its answer, then measures; a wrong answer throws.
#pragma once

#include "session.hpp"

namespace bench {

struct Case {
  const char* name;
  const char* about;
  void (*run)(Session& session);
};

void run_put_flush(Session& session);
void run_fetch_add(Session& session);
void run_fetch_add_contended(Session& session);
void run_bulk_accumulate(Session& session);
void run_two_targets(Session& session);
void run_owner_idle(Session& session);
void run_owner_computing(Session& session);
void run_owner_load(Session& session);
void run_random_updates(Session& session);
void run_idle_job(Session& session);
void run_sum_bandwidth(Session& session);

}  // namespace bench
