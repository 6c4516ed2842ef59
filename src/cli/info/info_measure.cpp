// Times operations through farsum.h and solves the model's formulas for its parameters. Every rank goes through the
// same contexts and meetings; rank 0 works, its partner sleeps.
#include "cli/info/info_measure.hpp"

#include <farsum.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <vector>

#include "cli/captured_run.hpp"
#include "cli/exit_codes.hpp"
#include "cli/info/info_model.hpp"
#include "cli/info/info_timing.hpp"
#include "cli/own_folder.hpp"
#include "cost/model.hpp"
#include "runtime/link_models.hpp"
#include "runtime/wireup.hpp"

namespace farsum::cli {

namespace {

constexpr std::size_t window_bytes = 1 << 20;
constexpr std::size_t small = 8;
constexpr std::size_t inlined = 4096;
constexpr std::size_t medium = 65536;
constexpr int burst = 64;
// No part of a path takes no time at all, whatever a difference of two noisy figures says.
constexpr double least_us = 0.001;
constexpr double least_per_byte_us = 1e-6;

// One context with a window of user or allocated memory over all ranks.
class Job {
 public:
  explicit Job(const char* path, bool user_memory = false) : user_(user_memory ? window_bytes : 0) {
    setenv("FARSUM_PATH", path, 1);
    require(farsum_init(nullptr));
    require(farsum_rank(farsum_world(), &rank_));
    require(farsum_size(farsum_world(), &size_));
    farsum_window_options options{};
    options.struct_bytes = sizeof options;
    options.promises = FARSUM_NO_PROMOTION;
    void* memory = nullptr;
    require(user_memory ? farsum_window_adopt(farsum_world(), user_.data(), window_bytes, &options, &window_)
                        : farsum_window_allocate(farsum_world(), window_bytes, &options, &memory, &window_));
    require(farsum_lock_all(window_));
    operand_.resize(window_bytes / sizeof(double));
    partner_ = find_partner();
  }
  ~Job() {
    static_cast<void>(farsum_unlock_all(window_));
    static_cast<void>(farsum_window_free(&window_));
    static_cast<void>(farsum_finalize());
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] bool works() const { return rank_ == 0; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool is_over_hosts() const { return over_hosts_; }
  void meet() const { require(farsum_barrier(farsum_world())); }

  // Every rank calls.
  [[nodiscard]] std::string kind_of_partner() const {
    using Kind = std::array<char, 256>;
    Kind own{};
    const std::string kind = machine_kind();
    if (kind.size() >= own.size()) throw std::runtime_error("the kind of this machine has too long a name: " + kind);
    kind.copy(own.data(), kind.size());
    std::vector<Kind> all(static_cast<std::size_t>(size_));
    require(farsum_allgather(farsum_world(), own.data(), all.data(), sizeof own));
    return all[static_cast<std::size_t>(partner_)].data();
  }

  void put(std::size_t bytes) { require(farsum_put(window_, partner_, 0, operand_.data(), bytes)); }
  void get(std::size_t bytes) { require(farsum_get(window_, partner_, 0, operand_.data(), bytes)); }
  void sum(std::size_t bytes) {
    require(
        farsum_accumulate(window_, partner_, 0, operand_.data(), bytes / sizeof(double), FARSUM_DOUBLE, FARSUM_SUM));
  }
  void flush() { require(farsum_flush(window_, partner_)); }

 private:
  int find_partner() {
    int own_node = 0;
    require(farsum_node(farsum_world(), 0, &own_node));
    for (int rank = 1; rank < size_; ++rank) {
      int node = 0;
      require(farsum_node(farsum_world(), rank, &node));
      if (node == own_node) continue;
      over_hosts_ = true;
      return rank;
    }
    return size_ > 1 ? 1 : 0;
  }

  int rank_ = 0;
  int size_ = 0;
  int partner_ = 0;
  bool over_hosts_ = false;
  farsum_window window_{};
  std::vector<std::byte> user_;
  std::vector<double> operand_;
};

constexpr double slice_us = 40'000;
constexpr double pause_us = 60;  // in which an agent falls asleep

// Median of single ones, each after a pause.
double alone_us(const std::function<void()>& operation) {
  std::vector<double> times;
  for (const double start = now_us(); now_us() - start < slice_us || times.size() < 9;) {
    for (const double from = now_us(); now_us() - from < pause_us;) {
    }
    const double before = now_us();
    operation();
    times.push_back(now_us() - before);
  }
  return median(times);
}

// Median over chunks of many, for what takes nanoseconds.
double repeated_us(int count, const std::function<void()>& operation) {
  std::vector<double> times;
  for (const double start = now_us(); now_us() - start < slice_us || times.size() < 9;) {
    const double before = now_us();
    for (int i = 0; i < count; ++i) operation();
    times.push_back((now_us() - before) / count);
  }
  return median(times);
}

double at_least(double least, double value) { return std::max(least, value); }
double slope(double more, double less, std::size_t bytes) {
  return at_least(least_per_byte_us, (more - less) / static_cast<double>(bytes));
}

void measure_mapped(cost::LinkModel& model) {
  Job job("direct");
  if (job.works()) {
    const auto flushed = [&](auto&& operation) {
      return repeated_us(64, [&] {
        operation();
        job.flush();
      });
    };
    model.direct_us = flushed([&] { job.put(small); });
    model.move_per_byte_us = slope(flushed([&] { job.put(medium); }), model.direct_us, medium);
    const double one = flushed([&] { job.sum(small); });
    model.lock_us = at_least(least_us, one - model.direct_us);
    model.reduce_per_byte_us = slope(flushed([&] { job.sum(medium); }), one + 3 * model.lock_us, medium);
    model.owner_reduce_per_byte_us = model.reduce_per_byte_us;
  }
  job.meet();
}

void measure_copies(cost::LinkModel& model) {
  Job job("attach", true);
  if (job.works()) {
    const auto put = [&](std::size_t bytes) {
      return repeated_us(8, [&] {
        job.put(bytes);
        job.flush();
      });
    };
    model.copy_us = put(small);
    model.copy_per_byte_us = slope(put(medium), model.copy_us, medium);
  }
  job.meet();
}

// What the agent is asked for. From outside latency and wake-up look alike: they share what is left in the proportion
// that they have in the built-in parameters.
void measure_messages(Job& job, const cost::LinkModel& built_in, cost::LinkModel& model) {
  if (job.works()) {
    const auto alone = [&](auto&& operation) {
      return alone_us([&] {
        operation();
        job.flush();
      });
    };
    const double one = alone([&] { job.put(small); });
    model.gap_us = repeated_us(1, [&] {
      for (int i = 0; i < burst; ++i) job.put(small);
      job.flush();
    });
    model.gap_us = at_least(least_us, (model.gap_us - one) / (burst - 1));
    model.send_us = std::min(model.gap_us, built_in.send_us / built_in.gap_us * model.gap_us);
    model.receive_us = built_in.receive_us / built_in.gap_us * model.gap_us;
    const double rest = at_least(least_us, one - model.send_us - model.receive_us);
    const double share = built_in.wake_up_us / (built_in.wake_up_us + 2 * built_in.latency_us);
    model.wake_up_us = rest * share;
    model.latency_us = rest * (1 - share) / 2;
    model.per_byte_us = slope(alone([&] { job.put(inlined); }), one, inlined);
    model.back_per_byte_us = slope(alone([&] { job.get(medium); }), one, medium);
    const double long_one = alone([&] { job.put(medium); });
    model.pull_per_byte_us = slope(alone([&] { job.put(window_bytes); }), long_one, window_bytes - medium);
    model.pull_us = std::max(0.0, long_one - one - static_cast<double>(medium) * model.pull_per_byte_us);
    // The formulas count what the agent moves beside what the link carries.
    for (double* per_byte : {&model.per_byte_us, &model.back_per_byte_us, &model.pull_per_byte_us})
      *per_byte = at_least(least_per_byte_us, *per_byte - model.move_per_byte_us);
  }
  job.meet();
}

MeasuredModel measure_as_rank(const Settings& settings) {
  cost::LinkClass link = cost::LinkClass::node;
  cost::LinkModel model;
  bool works = false;
  std::string partner_kind;
  {
    Job job("owner");
    if (job.size() < 2) throw std::runtime_error("needs a job of two ranks or more");
    works = job.works();
    partner_kind = job.kind_of_partner();
    link = job.is_over_hosts() ? cost::LinkClass::tcp : cost::LinkClass::node;
    model = read_link_parameters("", link).model;
    // Between hosts what is measured on a node stays as the node's.
    measure_messages(job, cost::defaults(link), model);
  }
  if (link == cost::LinkClass::node) {
    measure_mapped(model);
    measure_copies(model);
  }
  if (!works) return {.exit_code = exit_ok, .reports = false};
  const std::string folder = model_folder(settings, environment);
  if (folder.empty())
    throw std::runtime_error("there is no folder to keep it in: FARSUM_MODEL is none, or HOME is not set");
  if (Status status = write_link_parameters(folder, link, model, today(), partner_kind); !status.is_ok())
    throw std::runtime_error(status.text());
  return {.partner = machine_number(partner_kind)};
}

// Two ranks of this same command.
MeasuredModel measure_here() {
  const std::string self = own_folder() / "farsum";
  const CapturedRun run =
      run_captured({self, "run", "-n", "2", self, "info", "--model", "--measure"}, ErrorOutput::passed_on);
  return {.exit_code = run.exit_code, .reports = true};
}

}  // namespace

MeasuredModel measure_model(const Settings& settings) {
  if (choose_wire_up(environment, settings) == WireUp::alone) return measure_here();
  try {
    return measure_as_rank(settings);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "farsum info --model --measure: {}\n", failure.what());
    return {.exit_code = exit_failure, .reports = false};
  }
}

}  // namespace farsum::cli
