#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace fock {
namespace {

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

void print_activity(const std::string& label, const Activity& a) {
  fmt::print("{:>5} {:>8} {:>9} {:>11} {:>8.1f} {:>8.1f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f}\n",
             label, a.tickets, a.gets, a.accumulates, mebibytes(a.bytes_got), mebibytes(a.bytes_accumulated), a.get_s,
             a.accumulate_s, a.counter_s, a.compute_s, a.wait_s, a.algebra_s);
}

nlohmann::json activity_json(const Activity& a) {
  return {{"tickets", a.tickets},
          {"gets", a.gets},
          {"accumulates", a.accumulates},
          {"bytes_got", a.bytes_got},
          {"bytes_accumulated", a.bytes_accumulated},
          {"blocks_gathered", a.gathered},
          {"blocks_scattered", a.scattered},
          {"quartets_done", a.quartets_done},
          {"quartets_screened", a.quartets_screened},
          {"shell_quartets_done", a.shell_quartets_done},
          {"shell_quartets_screened", a.shell_quartets_screened},
          {"get_s", a.get_s},
          {"accumulate_s", a.accumulate_s},
          {"counter_s", a.counter_s},
          {"compute_s", a.compute_s},
          {"wait_s", a.wait_s},
          {"algebra_s", a.algebra_s}};
}

}  // namespace

Activity total_of(const std::vector<Activity>& ranks) {
  Activity sum;
  for (const Activity& a : ranks) {
    sum.tickets += a.tickets;
    sum.gets += a.gets;
    sum.accumulates += a.accumulates;
    sum.bytes_got += a.bytes_got;
    sum.bytes_accumulated += a.bytes_accumulated;
    sum.gathered += a.gathered;
    sum.scattered += a.scattered;
    sum.quartets_done += a.quartets_done;
    sum.quartets_screened += a.quartets_screened;
    sum.shell_quartets_done += a.shell_quartets_done;
    sum.shell_quartets_screened += a.shell_quartets_screened;
    sum.get_s += a.get_s;
    sum.accumulate_s += a.accumulate_s;
    sum.counter_s += a.counter_s;
    sum.compute_s += a.compute_s;
    sum.wait_s += a.wait_s;
    sum.algebra_s += a.algebra_s;
  }
  return sum;
}

void print_header(const RunDescription& run) {
  fmt::print("restricted Hartree-Fock: {}, {} electrons, {} ({}), {} functions in {} shells\n", run.molecule,
             run.electrons, run.basis, run.angular, run.functions, run.shells);
  fmt::print("{} ranks, {} blocks, {} tickets a build, {:.2f} MiB of windows in all, {}\n\n", run.ranks, run.blocks,
             run.tickets_per_build, mebibytes(run.window_bytes), run.path);
  fmt::print("{:>5} {:>20} {:>13} {:>11} {:>9}\n", "iter", "energy/Hartree", "change", "error", "seconds");
  std::fflush(stdout);
}

void print_iteration(const Iteration& iteration) {
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  fmt::print("{:>5} {:>20.12f} {:>13.3e} {:>11.3e} {:>9.3f}\n", iteration.number, iteration.energy, iteration.change,
             iteration.error, iteration.seconds);
  std::fflush(stdout);
}

void print_progress(int iteration, double share) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[Kiteration {}: {:.0f} % of the tickets dealt out", iteration, 100 * share);
  std::fflush(stderr);
}

void print_result(const RunDescription& run, const ScfResult& result, const std::vector<Activity>& ranks) {
  if (!result.converged) fmt::print("\nNOT CONVERGED after {} iterations\n", result.iterations.size());
  fmt::print("\n{:<26}{:>20.12f}\n", "Total SCF energy", result.energy);
  fmt::print("{:<26}{:>20.12f}\n", "One-electron energy", result.one_electron);
  fmt::print("{:<26}{:>20.12f}\n", "Two-electron energy", result.two_electron);
  fmt::print("{:<26}{:>20.12f}\n", "Nuclear repulsion", result.nuclear);
  fmt::print("{:<26}{:>20.6f}\n", "Highest occupied orbital", result.highest_occupied);
  if (!std::isnan(result.lowest_empty)) fmt::print("{:<26}{:>20.6f}\n", "Lowest empty orbital", result.lowest_empty);
  if (result.dropped_functions > 0) {
    fmt::print("{} linearly dependent combinations of functions were dropped\n", result.dropped_functions);
  }

  fmt::print("\n{:>5} {:>8} {:>9} {:>11} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "", "", "", "", "MiB",
             "MiB", "seconds", "seconds", "seconds", "seconds", "seconds", "seconds");
  fmt::print("{:>5} {:>8} {:>9} {:>11} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "rank", "tickets", "gets",
             "accumulates", "got", "accum.", "get", "accum.", "counter", "compute", "wait", "algebra");
  for (std::size_t r = 0; r < ranks.size(); ++r) print_activity(fmt::format("{}", r), ranks[r]);
  const Activity total = total_of(ranks);
  print_activity("total", total);
  fmt::print("{} block quartets done, {} screened out; {} shell quartets done, {} screened out\n", total.quartets_done,
             total.quartets_screened, total.shell_quartets_done, total.shell_quartets_screened);
  fmt::print("{} blocks gathered and {} scattered by the diagonalising rank; {:.2f} s in all\n", total.gathered,
             total.scattered, run.seconds);
}

bool print_comparison(const ScfResult& result, const Reference& reference) {
  const double difference = result.energy - reference.energy;
  const bool agree = result.converged && std::abs(difference) <= allowed_difference;
  fmt::print("\n{:<26}{:>20.12f}\n{:<26}{:>20.12f}\n{:<26}{:>20.3e}  {} {:.0e} Hartree\n", "ours", result.energy,
             reference.program, reference.energy, "difference", difference, agree ? "within" : "NOT within",
             allowed_difference);
  return agree;
}

std::string to_json(const RunDescription& run, const ScfResult& result, const std::vector<Activity>& ranks,
                    const std::optional<Reference>& reference) {
  nlohmann::json document = {{"molecule", run.molecule},
                             {"basis", run.basis},
                             {"angular", run.angular},
                             {"path", run.path},
                             {"electrons", run.electrons},
                             {"functions", run.functions},
                             {"shells", run.shells},
                             {"ranks", run.ranks},
                             {"blocks", run.blocks},
                             {"tickets_per_build", run.tickets_per_build},
                             {"window_bytes", run.window_bytes},
                             {"seconds", run.seconds},
                             {"converged", result.converged},
                             {"energy_hartree", result.energy},
                             {"one_electron_hartree", result.one_electron},
                             {"two_electron_hartree", result.two_electron},
                             {"nuclear_repulsion_hartree", result.nuclear},
                             {"highest_occupied_hartree", result.highest_occupied},
                             {"total", activity_json(total_of(ranks))}};
  for (const Iteration& i : result.iterations) {
    document["iterations"].push_back({{"number", i.number},
                                      {"energy_hartree", i.energy},
                                      {"change", i.change},
                                      {"error", i.error},
                                      {"seconds", i.seconds}});
  }
  for (const Activity& a : ranks) document["per_rank"].push_back(activity_json(a));
  if (reference) {
    document["reference"] = {{"program", reference->program},
                             {"energy_hartree", reference->energy},
                             {"difference", result.energy - reference->energy}};
  }
  return document.dump(2);
}

}  // namespace fock
