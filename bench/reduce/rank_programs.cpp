#include "rank_programs.hpp"

#include <farsum.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/end_rank.hpp"
#include "common/lab.hpp"
#include "common/native_ranks.hpp"
#include "common/usable_processors.hpp"
#include "reduce/cases/measure_all.hpp"

namespace bench {
namespace {

// Collective calls of Farsum's C interface.
class NativeJob : public NativeRanks {
 public:
  static void allreduce(const double* mine, double* result, std::size_t count) {
    require(farsum_allreduce(farsum_world(), mine, result, count, FARSUM_DOUBLE, FARSUM_SUM));
  }
  static void reduce(const double* mine, double* result, std::size_t count, int root) {
    require(farsum_reduce(farsum_world(), mine, result, count, FARSUM_DOUBLE, FARSUM_SUM, root));
  }
  static void reduce_scatter(const double* mine, double* result, std::size_t block) {
    require(farsum_reduce_scatter_block(farsum_world(), mine, result, block, FARSUM_DOUBLE, FARSUM_SUM));
  }
  static void broadcast(double* buffer, std::size_t count, int root) {
    require(farsum_broadcast(farsum_world(), buffer, count * sizeof *buffer, root));
  }
  static void largest(const double* mine, double* result, std::size_t count) {
    require(farsum_allreduce(farsum_world(), mine, result, count, FARSUM_DOUBLE, FARSUM_MAX));
  }
  [[nodiscard]] static double largest(double mine) {
    double result = 0;
    largest(&mine, &result, 1);
    return result;
  }

  using Begun = farsum_request;
  [[nodiscard]] static Begun begin(const double* mine, double* result, std::size_t count) {
    const farsum_collective allreduce{.struct_bytes = sizeof(farsum_collective),
                                      .kind = FARSUM_COLLECT_ALLREDUCE,
                                      .root = 0,
                                      .mine = mine,
                                      .result = result,
                                      .count = count,
                                      .type = FARSUM_DOUBLE,
                                      .op = FARSUM_SUM};
    Begun begun{};
    require(farsum_collect(farsum_world(), &allreduce, &begun));
    return begun;
  }
  [[nodiscard]] static bool is_over(Begun& begun) {
    int done = 0;
    require(farsum_test(&begun, &done));
    return done != 0;
  }
  static void wait(Begun& begun) { require(farsum_wait(&begun)); }
};

void print_line(const Json& object) {
  fmt::print("{}\n", object.dump());
  std::fflush(stdout);
}

int run_native_rank(const collectives::Request& request) {
  if (const std::string reason = request.take_priority(); !reason.empty()) end_rank(reason);
  const NativeJob job;
  const bool speaks = job.rank() == 0;
  collectives::measure_all(
      job, request,
      [&](const collectives::Call& call) {
        if (speaks) print_line({{"begin", call.name()}});
      },
      [&](const collectives::Call& call, const collectives::Figures& figures) {
        Json line{{"call", call.name()}};
        for (const auto& [name, value] : figures) line[name] = value;
        if (speaks) print_line(line);
      });
  return 0;
}

// Half the time in which a word goes to another processor and comes back: what the least call of two ranks must take.
double hand_over_us(std::atomic<std::uint32_t>& there, std::atomic<std::uint32_t>& back, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint32_t turns_a_look = 1000;
  const Clock::time_point start = Clock::now();
  std::uint32_t turn = 0;
  double took = 0;
  while (took < seconds) {
    for (std::uint32_t i = 0; i < turns_a_look; ++i) {
      there.store(++turn, std::memory_order_release);
      while (back.load(std::memory_order_acquire) != turn) {
      }
    }
    took = std::chrono::duration<double>(Clock::now() - start).count();
  }
  there.store(~std::uint32_t{0}, std::memory_order_release);
  return took * 1e6 / 2 / turn;
}

[[noreturn]] void send_back(const std::atomic<std::uint32_t>& there, std::atomic<std::uint32_t>& back) {
  for (;;) {
    const std::uint32_t turn = there.load(std::memory_order_acquire);
    if (turn == ~std::uint32_t{0}) _exit(0);
    back.store(turn, std::memory_order_release);
  }
}

int run_bare_pair(double seconds) {
  if (usable_processors() < 2) return 0;  // there is nobody to hand anything over to
  struct Shared {
    alignas(128) std::atomic<std::uint32_t> there;
    alignas(128) std::atomic<std::uint32_t> back;
  };
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share is to be had");
  auto& shared = *static_cast<Shared*>(memory);
  const pid_t child = fork();
  if (child == 0) send_back(shared.there, shared.back);
  if (child < 0) throw std::runtime_error("no process is to be had");
  print_line({{"hand_over_us", hand_over_us(shared.there, shared.back, seconds)}});
  int status = 0;
  waitpid(child, &status, 0);
  return 0;
}

}  // namespace

std::optional<int> run_rank_program(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word != native_word && word != bare_word) return std::nullopt;
  CLI::App app("Ranks of bench-reduce, which starts them itself", "bench-reduce " + word);
  collectives::Request request;
  request.declare(app);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_wrong_usage;
  }
  return word == native_word ? run_native_rank(request) : run_bare_pair(request.seconds);
}

}  // namespace bench
