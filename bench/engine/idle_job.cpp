// A job that does nothing: how often its agents wake up.
#include <algorithm>
#include <chrono>
#include <thread>

#include "cases.hpp"
#include "context.hpp"

namespace bench {

void run_idle_job(Session& session) {
  const Context context;
  const Window window(4096, 0);
  require(farsum_barrier(farsum_world()));

  const auto idle_time = session.options().quick ? std::chrono::milliseconds(500) : std::chrono::milliseconds(10'000);
  session.arena().gate();
  const Counters before = read_counters();
  const std::uint64_t switches_before = read_agent_thread().context_switches;
  std::this_thread::sleep_for(idle_time);
  const std::uint64_t agent_switches = read_agent_thread().context_switches - switches_before;
  const Counters after = read_counters();
  // The kernel's count, for it also sees wake-ups that the agent does not count.
  session.arena().mine().figures[0] = static_cast<double>(std::max(agent_switches, after.wakeups - before.wakeups));
  session.arena().mine().counters = after - before;
  session.arena().gate();

  const double per_minute = 60'000.0 / static_cast<double>(idle_time.count());
  Row row{.bench = "idle-job",
          .name = "wake-ups of the busier agent / one a minute",
          .unit = "1/min",
          .aim = {Better::lower, 1.0}};
  row.pairs.ours.push_back(std::max(session.arena().of(0).figures[0], session.arena().of(1).figures[0]) * per_minute);
  row.pairs.limit.push_back(1);
  Counters both = session.arena().of(0).counters;
  both += session.arena().of(1).counters;
  row.more = per_operation(both, 0);
  row.more["seconds"] = static_cast<double>(idle_time.count()) / 1000;
  session.arena().gate();
  session.report().row(row);
}

}  // namespace bench
