// Checks and times the points that a program of ranks was asked for, one after the other, and tells of each in a
// record.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "ranks/cases/locks.hpp"
#include "ranks/cases/request.hpp"
#include "ranks/cases/threads.hpp"
#include "ranks/cases/transfers.hpp"
#include "ranks/cases/updates.hpp"
#include "ranks/cases/windows.hpp"

namespace ranks {

// Where half a million operations are done sooner than this share of the time that is asked for, there are more of
// them: short runs measure their interruptions.
inline constexpr double enough_operations = 500'000;
inline constexpr double least_share = 0.2;

template <class Job>
std::unique_ptr<Case<Job>> make_update(const Job& job, const std::string& row, const std::string& variant) {
  using Ops = FetchOps<Job>;
  using Sums = Accumulates<Job>;
  constexpr std::size_t small = 512;
  constexpr std::size_t large = 1 << 20;
  if (row == "fetch-op-one") return std::make_unique<Ops>(job, variant, Ops::Target::first);
  if (row == "fetch-op-random") return std::make_unique<Ops>(job, variant, Ops::Target::random);
  if (row == "sums-random") return std::make_unique<RandomSums<Job>>(job, variant);
  if (row == "counter") return std::make_unique<CounterOfBusyOwner<Job>>(job, variant);
  if (row == "accumulate-512B-one") return std::make_unique<Sums>(job, variant, Sums::Target::first, small);
  if (row == "accumulate-1MiB-one") return std::make_unique<Sums>(job, variant, Sums::Target::first, large);
  if (row == "accumulate-1MiB-ring") return std::make_unique<Sums>(job, variant, Sums::Target::next, large);
  using Ring = RingTransfers<Job>;
  if (row == "put-1MiB-ring") return std::make_unique<Ring>(job, variant, Ring::Way::put, large);
  if (row == "get-1MiB-ring") return std::make_unique<Ring>(job, variant, Ring::Way::get, large);
  return nullptr;
}

template <class Job>
std::unique_ptr<Case<Job>> make_lock(const Job& job, const std::string& row, const std::string& variant) {
  using Locks = ExclusiveLocks<Job>;
  using Shape = typename Locks::Shape;
  constexpr double work_s = 32e-6;
  if (row == "lock-one") return std::make_unique<Locks>(job, variant, Shape{});
  if (row == "lock-random") return std::make_unique<Locks>(job, variant, Shape{.target = Locks::Target::random});
  if (row == "lock-work") return std::make_unique<Locks>(job, variant, Shape{.work_s = work_s});
  if (row == "lock-shared") return std::make_unique<SharedLocks<Job>>(job);
  if (row == "lock-all") return std::make_unique<LockAll<Job>>(job);
  if (row == "fence") return std::make_unique<Fences<Job>>(job);
  return nullptr;
}

template <class Job>
std::unique_ptr<Case<Job>> make_window_life(const Job& job, const std::string& row) {
  using Life = WindowLife<Job>;
  using Shape = typename Life::Shape;
  constexpr std::size_t allocated_bytes = 65536;
  constexpr std::size_t created_bytes = 4096;
  const auto part = row.ends_with("-free") ? Life::Part::freeing : Life::Part::making;
  if (row.starts_with("allocate-"))
    return std::make_unique<Life>(job, Shape{.bytes = allocated_bytes, .timed_part = part});
  if (row.starts_with("create-"))
    return std::make_unique<Life>(job, Shape{.bytes = created_bytes, .is_over_user_memory = true, .timed_part = part});
  return nullptr;
}

template <class Job>
std::unique_ptr<Case<Job>> make_case(const Job& job, const Point& point) {
  using Threads = ThreadCase<Job>;
  using Call = typename Threads::Call;
  const std::string row = point.row->name;
  if (point.row->has_threads()) {
    const Call call = row == "threads-fetch-op" ? Call::fetch_op : row == "threads-lock" ? Call::lock : Call::flush;
    return std::make_unique<Threads>(job, point.variant, point.threads, call);
  }
  if (auto made = make_lock(job, row, point.variant)) return made;
  if (auto made = make_window_life(job, row)) return made;
  return make_update(job, row, point.variant);
}

// The slowest rank's time for these operations, and how many times that of the fastest it is.
struct Timing {
  long operations = 0;
  double seconds = 0;
  double slowest_to_fastest = 1;
};

template <class Job>
Timing time_case(const Job& job, Case<Job>& one, long operations) {
  job.barrier();
  const double seconds = one.run(operations);
  const double slowest = job.largest(seconds);
  const double fastest = job.smallest(seconds == not_timed ? slowest : seconds);
  return {.operations = operations, .seconds = slowest, .slowest_to_fastest = fastest > 0 ? slowest / fastest : 1};
}

// As many operations as take about so long with all that is done around them, the same on every rank. A run that
// another program has held up says nothing, so the quickest says what an operation takes; the longest run is told.
template <class Job>
Timing time_for(const Job& job, Case<Job>& one, double seconds) {
  double quickest_s = 1e9;
  double spent_s = 0;
  for (double operations = 1;;) {
    const double start = now_s();
    const Timing timing = time_case(job, one, static_cast<long>(operations));
    const double took_s = std::max(job.largest(now_s() - start), 1e-9);
    spent_s += took_s;
    quickest_s = std::min(quickest_s, took_s / operations);
    const double most = std::max(enough_operations, least_share * seconds / quickest_s);
    const double wanted = std::clamp(seconds / quickest_s, 1.0, most);
    if (operations >= wanted / 2 || spent_s >= 2 * seconds) return timing;
    const double in_time = std::max(2 * seconds / took_s, 1.0);
    operations = std::floor(std::min(wanted, operations * std::min(10.0, in_time)));
  }
}

// A figure in the unit of its row.
template <class Job>
double figure_of(const Job& job, const Point& point, const Timing& timing) {
  const double each_s = timing.seconds / static_cast<double>(timing.operations);
  if (!point.row->is_rate()) return each_s * 1e6;
  const double rate = job.size() * point.threads / each_s;
  return std::string(point.row->unit) == "GB/s" ? rate * (1 << 20) / 1e9 : rate / 1e6;
}

// How many operations were checked: a few where these take long, or all that the case would have.
template <class Job>
long checked(const Job& job, Case<Job>& one, const Point& point, double seconds) {
  constexpr long few = 5;
  const long all = one.checked_operations();
  const double start = now_s();
  long done = std::min(few, all);
  bool is_right = one.is_right(done);
  const double rest_s = job.largest(now_s() - start) / static_cast<double>(done) * static_cast<double>(all - done);
  if (is_right && rest_s < seconds) {
    is_right = done == all || one.is_right(all - done);
    done = all;
  }
  if (!is_right) job.fail(point.name() + ": a wrong answer");
  return done;
}

template <class Job>
Record measured(const Job& job, const Point& point, double seconds) {
  const auto one = make_case(job, point);
  const long were_checked = checked(job, *one, point, seconds);
  const Timing timing = time_for(job, *one, seconds);
  if (!one->is_still_right()) job.fail(point.name() + ": a wrong answer after it was timed");
  return {{"case", point.name()},
          {"figure", figure_of(job, point, timing)},
          {"repetitions", timing.operations},
          {"seconds", timing.seconds},
          {"checked", were_checked},
          {"slowest_to_fastest", timing.slowest_to_fastest}};
}

// `tell` prints a record where this rank speaks. What is begun is told first, so that it is known where a job ended.
template <class Job, class Tell>
void measure_all(const Job& job, const Request& request, Tell&& tell) {
  for (const Point& point : request.points) {
    tell(Record{{"begin", point.name()}});
    tell(measured(job, point, request.seconds));
  }
}

}  // namespace ranks
