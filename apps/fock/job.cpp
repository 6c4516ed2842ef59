#include "job.hpp"

#include <fmt/format.h>

namespace fock {

void require(farsum_status status) {
  if (status == FARSUM_OK) return;
  throw CommunicationError(fmt::format("{}: {}", farsum_status_name(status), farsum_last_error()));
}

Job::Job() {
  require(farsum_init(nullptr));
  require(farsum_rank(farsum_world(), &rank_));
  require(farsum_size(farsum_world(), &size_));
}

// A failure to leave cannot be helped any more, and the results have been printed.
Job::~Job() {
  if (!is_unwinding()) static_cast<void>(farsum_finalize());
}

void Job::barrier() {
  const Timed timed(activity_.wait_s);
  require(farsum_barrier(farsum_world()));
}

void Job::broadcast(std::vector<double>& values) {
  const Timed timed(activity_.wait_s);
  require(farsum_broadcast(farsum_world(), values.data(), values.size() * sizeof(double), 0));
}

void Job::sum(std::vector<double>& values) {
  const Timed timed(activity_.wait_s);
  std::vector<double> all(values.size() * static_cast<std::size_t>(size_));
  require(farsum_allgather(farsum_world(), values.data(), all.data(), values.size() * sizeof(double)));
  for (std::size_t v = 0; v < values.size(); ++v) {
    values[v] = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(size_); ++r) values[v] += all[r * values.size() + v];
  }
}

std::vector<Activity> Job::all_activities() {
  std::vector<Activity> all(static_cast<std::size_t>(size_));
  const Activity mine = activity_;
  require(farsum_allgather(farsum_world(), &mine, all.data(), sizeof mine));
  return all;
}

}  // namespace fock
