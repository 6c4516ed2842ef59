// The ranks of `farsum bench model`: every operation on every path, forced one after the other and left to Farsum, in
// rounds. Rank 1 owns and sleeps, the others operate on its part. Prints a JSON object a line and judges nothing; ends
// with 1 where an answer is wrong. bench_model starts it, by `farsum run` or in two hosts.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "common/run_main.hpp"

namespace bench {
namespace {

constexpr int owner = 1;
constexpr int checking_round = -1;

struct CommandLine {
  std::string folder;
  int rank = 0;
  int size = 0;
  int rounds = 5;
  int slice_us = 2000;
  std::vector<std::string> memories = {"allocated", "adopted"};
  std::vector<std::string> paths = {"auto", "direct", "attach", "caller", "owner", "aggregated"};
  std::vector<std::size_t> sizes = {8, 512, 4096, 65536, 1048576};
};

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Rank r stays on the r-th processor that it may use, where there is one for each.
void stay_on_processor(int rank, int size) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < size) return;
  int seen = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || seen++ != rank) continue;
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(processor, &mine);
    sched_setaffinity(0, sizeof mine, &mine);
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Time of one operation: the median over chunks of a slice.
double time_us(Worker& worker, const Case& one, double slice_us) {
  double before = now_us();
  worker.run(one);
  const double once_us = now_us() - before;
  const auto chunk = static_cast<int>(std::clamp(slice_us / 10 / std::max(once_us, 0.01), 1.0, 10'000.0));
  std::vector<double> chunks;
  const double start = now_us();
  do {
    before = now_us();
    for (int i = 0; i < chunk; ++i) worker.run(one);
    chunks.push_back((now_us() - before) / chunk / one.burst);
  } while (now_us() - start < slice_us || chunks.size() < 3);
  return median(chunks);
}

void barrier() { require(farsum_barrier(farsum_world())); }

farsum_statistics statistics() {
  farsum_statistics now{};
  now.struct_bytes = sizeof now;
  require(farsum_statistics_read(&now));
  return now;
}

constexpr const char* path_names[] = {"direct", "attach", "caller", "owner", "aggregated", "offload"};

// The path that most of the operations since `before` took.
const char* path_since(const farsum_statistics& before) {
  const farsum_statistics now = statistics();
  std::size_t most = 0;
  for (std::size_t path = 1; path < std::size(path_names); ++path) {
    if (now.operations[path] - before.operations[path] > now.operations[most] - before.operations[most]) most = path;
  }
  return path_names[most];
}

class Round {
 public:
  Round(const CommandLine& line, Meeting& meeting, int number) : line_(line), meeting_(meeting), number_(number) {}

  // One context: all cases on one kind of memory with one setting of FARSUM_PATH.
  void run(const std::string& memory, const std::string& path) {
    const Context context(meeting_, path);
    if (number_ == checking_round) stay_on_processor(context.rank(), context.size());
    const Window window(memory == "adopted" ? Memory::adopted : Memory::allocated, window_bytes);
    Worker worker(window, owner);
    const farsum_region_info region = window.region(owner);
    const bool is_owner = context.rank() == owner;
    for (const Case& one : cases_for(line_.sizes)) {
      if (number_ == checking_round) {
        check(context, window, worker, one);
        continue;
      }
      barrier();
      const farsum_statistics before = statistics();
      double us = is_owner ? 0 : time_us(worker, one, line_.slice_us);
      const std::string taken = path_since(before);
      std::vector<double> all(static_cast<std::size_t>(context.size()));
      require(farsum_allgather(farsum_world(), &us, all.data(), sizeof us));
      if (context.rank() != 0) continue;
      us = 0;
      for (const double each : all) us += each / (context.size() - 1);
      fmt::print("{}\n", nlohmann::ordered_json{{"memory", memory},
                                                {"path", path},
                                                {"operation", name_of(one.kind)},
                                                {"bytes", one.bytes},
                                                {"burst", one.burst},
                                                {"origins", context.size() - 1},
                                                {"round", number_},
                                                {"taken", taken},
                                                {"reason", region.reason},
                                                {"us", us}}
                             .dump());
    }
    std::fflush(stdout);
  }

 private:
  static void check(const Context& context, const Window& window, Worker& worker, const Case& one) {
    const int origins = context.size() - 1;
    if (context.rank() == owner) fill_held(window.own());
    require(farsum_sync(window.handle()));
    barrier();
    worker.run_checked(one, context.rank());
    barrier();
    require(farsum_sync(window.handle()));
    worker.check(one, context.rank(), origins, window.own());
  }

  const CommandLine& line_;
  Meeting& meeting_;
  int number_;
};

int run(int argc, char** argv) {
  CommandLine line;
  CLI::App app("The ranks of `farsum bench model`, which starts them.");
  app.add_option("--meet", line.folder, "the ranks meet in this folder, not through a launcher");
  app.add_option("--rank", line.rank, "with --meet");
  app.add_option("--size", line.size, "with --meet");
  app.add_option("--rounds", line.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--slice-us", line.slice_us)->check(CLI::Range(10, 1'000'000));
  app.add_option("--memories", line.memories)->delimiter(',')->check(CLI::IsMember({"allocated", "adopted"}));
  app.add_option("--paths", line.paths)->delimiter(',');
  app.add_option("--sizes", line.sizes)->delimiter(',')->check(CLI::Range(std::size_t{8}, most_bytes));
  CLI11_PARSE(app, argc, argv);
  Meeting meeting(line.folder, line.rank, line.size);
  // The first one checks the answers and warms up; it is not counted. Each begins with another path.
  for (int number = checking_round; number < line.rounds; ++number) {
    for (const std::string& memory : line.memories) {
      for (const std::string& path : line.paths) Round(line, meeting, number).run(memory, path);
    }
    std::rotate(line.paths.begin(), line.paths.begin() + 1, line.paths.end());
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_main("bench-model", [&] { return bench::run(argc, argv); });
}
