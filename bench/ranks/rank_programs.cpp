#include "rank_programs.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bare_job.hpp"
#include "common/end_rank.hpp"
#include "common/lab.hpp"
#include "common/usable_processors.hpp"
#include "native_job.hpp"
#include "ranks/cases/measure.hpp"

namespace bench {
namespace {

Json json_of(const ranks::Record& record) {
  Json object;
  for (const auto& [name, value] : record) object[name] = std::visit([](const auto& one) { return Json(one); }, value);
  return object;
}

template <class Job>
void measure_and_tell(const Job& job, const ranks::Request& request) {
  ranks::measure_all(job, request, [&](const ranks::Record& record) {
    if (job.rank() != 0) return;
    fmt::print("{}\n", json_of(record).dump());
    std::fflush(stdout);
  });
}

int run_native_rank(const ranks::Request& request) {
  const NativeJob job;
  measure_and_tell(job, request);
  return 0;
}

[[noreturn]] void be_bare_rank(const BareJob& job, const ranks::Request& request, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has ended meanwhile
  try {
    measure_and_tell(job, request);
  } catch (const std::exception& failure) {
    end_rank(failure.what());
  }
  std::fflush(nullptr);
  _exit(0);
}

// Waits for all; where one ends badly the others would wait for it, so they are ended.
int wait_for(std::vector<pid_t> ranks) {
  int exit_code = 0;
  while (!ranks.empty()) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (ended < 0) break;
    std::erase(ranks, ended);
    if (status == 0 || exit_code != 0) continue;
    exit_code = 1;
    for (const pid_t rank : ranks) kill(rank, SIGKILL);
  }
  return exit_code;
}

int run_bare_ranks(const ranks::Request& request, int size) {
  const pid_t parent = getpid();
  const bool is_crowded = size * request.threads > usable_processors();
  const BareJob::Memory memory = BareJob::make_memory(size, is_crowded);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) be_bare_rank(BareJob(memory, rank, size), request, parent);
    if (child < 0) break;
    ranks.push_back(child);
  }
  if (static_cast<int>(ranks.size()) < size) {
    for (const pid_t rank : ranks) kill(rank, SIGKILL);
    fmt::print(stderr, "bench-ranks: no process is to be had for a bare rank\n");
  }
  const int exit_code = wait_for(ranks);
  return static_cast<int>(ranks.size()) < size ? 1 : exit_code;
}

}  // namespace

std::optional<int> run_rank_program(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word != native_word && word != bare_word) return std::nullopt;
  CLI::App app("Ranks of bench-ranks, which starts them itself", "bench-ranks " + word);
  ranks::RequestOptions options;
  int size = 2;
  options.declare(app);
  if (word == bare_word) app.add_option("-n", size, "how many")->check(CLI::Range(2, BareShared::most_ranks));
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_wrong_usage;
  }
  return word == native_word ? run_native_rank(options.request()) : run_bare_ranks(options.request(), size);
}

}  // namespace bench
