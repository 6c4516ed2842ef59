#include "session.hpp"

#include <sys/resource.h>

#include <vector>

namespace bench {
namespace {

constexpr std::size_t wanted_slices = 20;
constexpr std::size_t most_slices = 200;

// A chain of dependent multiplications that stays in registers: the owner's own work.
void compute_until(const std::atomic<std::uint32_t>& stop) {
  double value = 1.0;
  // Relaxed: only ends the loop; the gate that follows orders everything.
  while (stop.load(std::memory_order_relaxed) == 0) {
    for (int i = 0; i < 1000; ++i) value = value * 0.999999 + 1e-6;
    keep(value);
  }
}

// How often the scheduler has taken the processor away from this thread.
std::uint64_t preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

}  // namespace

Session::Measured Session::measure(const Side& side) {
  arena_.gate();
  const Counters before = read_counters();
  const Sample sample = side();
  // The rank that had nothing to do counts until the other has finished: its agent may have been at work.
  arena_.gate();
  arena_.mine().counters = read_counters() - before;
  arena_.mine().operations = sample.operations;
  arena_.gate();
  Measured measured{.sample = sample, .counters = {}, .operations = 0};
  for (int rank = 0; rank < rank_count; ++rank) {
    measured.counters += arena_.of(rank).counters;
    measured.operations += arena_.of(rank).operations;
  }
  // Nobody writes its place before everybody has read it.
  arena_.gate();
  return measured;
}

void Session::compare(Row row, const Side& limit, const Side& ours) {
  Counters counters;
  std::uint64_t operations = 0;
  for (int pair = 0; pair < options_.pairs; ++pair) {
    row.pairs.limit.push_back(measure(limit).sample.figure);
    const Measured measured = measure(ours);
    row.pairs.ours.push_back(measured.sample.figure);
    counters += measured.counters;
    operations += measured.operations;
  }
  const nlohmann::ordered_json notes = row.more;
  row.more = per_operation(counters, operations);
  row.more.update(notes);
  report_.row(row);
}

Side Session::alone(const std::function<Sample()>& work) const {
  return [this, work] { return is_root() ? work() : Sample{}; };
}

Side Session::while_peer_computes(const std::function<Sample()>& work) {
  return [this, work]() -> Sample {
    ArenaWords& words = arena_.words();
    if (!is_root()) {
      words.computing.store(1, std::memory_order_release);
      compute_until(words.stop);
      words.stop.store(0, std::memory_order_relaxed);
      return {};
    }
    // Acquire pairs with the release above: the owner computes from here on.
    while (words.computing.load(std::memory_order_acquire) == 0) pause();
    words.computing.store(0, std::memory_order_relaxed);
    const Sample sample = work();
    words.stop.store(1, std::memory_order_release);
    return sample;
  };
}

// A slice counts if nobody was taken off its processor in it: else the other had the memory to itself.
bool Session::run_slice(std::uint64_t operations, const std::function<void()>& batch, std::uint64_t& done,
                        double& rate) {
  ArenaWords& words = arena_.words();
  ArenaWords::FromRank& mine = arena_.mine();
  arena_.start_together();
  const std::uint64_t switches = preemptions();
  const std::uint64_t start = now_ns();
  std::uint64_t in_slice = 0;
  std::uint64_t now = start;
  // Relaxed: only ends the loop; the lines around it order everything.
  do {
    batch();
    in_slice += operations;
    now = now_ns();
    if (is_root() && now - start >= slice_ns()) words.stop.store(1, std::memory_order_relaxed);
  } while (words.stop.load(std::memory_order_relaxed) == 0);
  done += in_slice;
  mine.figures[0] = static_cast<double>(in_slice) * 1e9 / static_cast<double>(now - start);
  mine.figures[1] = preemptions() == switches ? 1 : 0;
  arena_.start_together();
  if (is_root()) words.stop.store(0, std::memory_order_relaxed);
  rate = arena_.of(0).figures[0] + arena_.of(1).figures[0];
  const bool counts = arena_.of(0).figures[1] + arena_.of(1).figures[1] == rank_count;
  arena_.start_together();
  return counts;
}

Side Session::together(std::uint64_t operations, const std::function<void()>& batch) {
  return [this, operations, batch]() -> Sample {
    batch();  // warm
    std::uint64_t done = operations;
    std::vector<double> undisturbed;
    std::vector<double> all;
    // Both ranks see the same figures and so go round equally often.
    while (undisturbed.size() < wanted_slices && all.size() < most_slices) {
      double rate = 0;
      if (run_slice(operations, batch, done, rate)) undisturbed.push_back(rate);
      all.push_back(rate);
    }
    return {.figure = median(undisturbed.empty() ? all : undisturbed), .operations = done};
  };
}

Sample paced_latency(std::uint64_t count, std::uint64_t gap_ns, const std::function<void(std::uint64_t)>& operation) {
  std::vector<double> times;
  times.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t ready = now_ns();
    while (now_ns() - ready < gap_ns) pause();
    const std::uint64_t before = now_ns();
    operation(i);
    times.push_back(static_cast<double>(now_ns() - before));
  }
  return {.figure = median(times), .operations = count};
}

}  // namespace bench
