// Paper 1's crossover in virtual time, beside what the cost model says with the same parameters: the caller computes by
// a card's lock, get, put and unlock, the owner's thread is woken for the message and again for the operand that it
// fetches.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "cost/paper_network.hpp"
#include "protocol_job.hpp"
#include "transport/sim/sim_card.hpp"

namespace farsum {
namespace {

constexpr Rank owner_rank = 0;
constexpr Rank origin_rank = 1;
constexpr std::size_t window_bytes = 1 << 18;
constexpr std::uint64_t lock_at = window_bytes - sizeof(std::uint64_t);
constexpr std::size_t most_bytes = window_bytes / 2;

SimTime in_ns(double us) { return static_cast<SimTime>(us * 1e3); }
SimRange always(double us) { return {in_ns(us), in_ns(us)}; }

ProtocolJobOptions options_of(const cost::LinkModel& model) {
  ProtocolJobOptions options;
  options.window_bytes = window_bytes;
  options.inline_bytes = static_cast<std::uint64_t>(model.inline_bytes);
  // One get fetches an operand, as in the paper.
  options.pull_bytes = window_bytes;
  options.sim.message_latency = options.sim.transfer_latency = options.sim.card_latency = always(model.latency_us);
  options.sim.transfer_ns_per_kib = in_ns(model.pull_per_byte_us * 1024);
  options.sim.wake_up = always(model.wake_up_us);
  options.sim.long_delay_one_in = 0;
  options.sim.service = options.sim.origin_wake = options.sim.card_gap = options.sim.again_pause = always(0.1);
  return options;
}

class AwaitedTransfer final : public TransferHandler {
 public:
  void on_transfer(std::uint64_t /*cookie*/, Transfer how) override {
    EXPECT_EQ(how, Transfer::done);
    ++ended;
  }
  int ended = 0;
};

struct Sum {
  std::vector<double> operand;
  SimTime took_ns = 0;
};

SimTask<> sum_by_owner(ProtocolRank& self, Sum& sum) {
  const SimTime before_ns = self.now_ns();
  const Code code = co_await self.accumulate(owner_rank, 0, ops::ElementType::float64, ops::Operator::sum,
                                             sum.operand.data(), sum.operand.size() * sizeof(double));
  EXPECT_EQ(code, Code::ok);
  sum.took_ns = self.now_ns() - before_ns;
}

SimTask<> change_lock(ProtocolJob& job, ProtocolRank& self, std::uint64_t from, std::uint64_t to) {
  auto* const word = reinterpret_cast<std::uint64_t*>(job.memory(owner_rank).data() + lock_at);
  bool is_answered = false;
  std::uint64_t before = from;
  job.world().card(owner_rank).compare_and_swap(self.rank(), word, from, to, [&](Code, std::uint64_t old) {
    before = old;
    is_answered = true;
  });
  co_await self.program.until([&] { return is_answered; });
  EXPECT_EQ(before, from);
}

SimTask<> sum_by_caller(ProtocolJob& job, ProtocolRank& self, AwaitedTransfer& transfers, Sum& sum) {
  const SimTime before_ns = self.now_ns();
  SimTransport& transport = job.world().transport(self.rank());
  const auto address = reinterpret_cast<std::uint64_t>(job.memory(owner_rank).data());
  std::vector<double> copy(sum.operand.size());
  co_await change_lock(job, self, 0, 1);
  EXPECT_EQ(transport.read(owner_rank, address, std::as_writable_bytes(std::span(copy)), 0), Transfer::started);
  co_await self.program.until([&] { return transfers.ended == 1; });
  for (std::size_t i = 0; i < copy.size(); ++i) copy[i] += sum.operand[i];
  EXPECT_EQ(transport.write(owner_rank, address, std::as_bytes(std::span(copy)), 0), Transfer::started);
  co_await self.program.until([&] { return transfers.ended == 2; });
  co_await change_lock(job, self, 1, 0);
  sum.took_ns = self.now_ns() - before_ns;
}

// Virtual microseconds of one sum of doubles, whose answer is checked.
double simulated_us(const cost::LinkModel& model, cost::Way way, std::uint64_t bytes) {
  ProtocolJob job(1, 2, options_of(model));
  job.world().set_transfer_wake(owner_rank, in_ns(model.wake_up_us * model.pull_wake_ups));
  Sum sum{.operand = std::vector<double>(bytes / sizeof(double), 1.5)};
  AwaitedTransfer transfers;
  ProtocolRank& self = job.rank(origin_rank);
  if (way == cost::Way::owner) {
    self.program.start(sum_by_owner(self, sum));
  } else {
    job.world().transport(origin_rank).set_transfer_handler(&transfers);
    self.program.start(sum_by_caller(job, self, transfers, sum));
  }
  EXPECT_TRUE(job.run());
  for (std::size_t i = 0; i < sum.operand.size(); ++i) {
    double held = 0;
    std::memcpy(&held, job.memory(owner_rank).data() + i * sizeof held, sizeof held);
    EXPECT_EQ(held, 1.5);
  }
  return static_cast<double>(sum.took_ns) / 1e3;
}

double predicted_us(const cost::LinkModel& model, cost::Way way, std::uint64_t bytes) {
  return cost::predict(model, cost::LinkClass::tcp, way, {.kind = cost::Kind::accumulate, .bytes = bytes});
}

// The size in the simulator from which on the owner is faster.
std::uint64_t simulated_crossover(const cost::LinkModel& model) {
  std::uint64_t faster = most_bytes;
  std::uint64_t slower = 304;
  while (faster - slower > 64) {
    const std::uint64_t middle = (slower + (faster - slower) / 2) & ~std::uint64_t{7};
    const bool owner_is_faster =
        simulated_us(model, cost::Way::owner, middle) < simulated_us(model, cost::Way::caller, middle);
    (owner_is_faster ? faster : slower) = middle;
  }
  return faster;
}

// The properties are the points of docs/figures/crossover.svg (bench/model/crossover.py).
TEST(Paper1InTheSimulator, takes_the_time_that_the_model_predicts) {
  for (const double wake_up_us : {54.5, 12.0}) {
    const cost::LinkModel model = cost::paper_network(wake_up_us);
    for (const std::uint64_t bytes : {8u, 32u, 128u, 304u, 512u, 1'024u, 1'536u, 2'048u, 4'096u, 8'192u, 16'384u,
                                      32'768u, 45'056u, 65'536u, 131'072u}) {
      for (const cost::Way way : {cost::Way::owner, cost::Way::caller}) {
        const double predicted = predicted_us(model, way, bytes);
        const double simulated = simulated_us(model, way, bytes);
        EXPECT_NEAR(simulated, predicted, 0.05 * predicted)
            << cost::name_of(way) << ", " << bytes << " bytes, woken in " << wake_up_us << " us";
        RecordProperty(fmt::format("{} {} bytes woken in {} us", cost::name_of(way), bytes, wake_up_us),
                       fmt::format("simulated {:.3f} predicted {:.3f}", simulated, predicted));
      }
    }
  }
}

TEST(Paper1InTheSimulator, has_its_crossover_where_the_model_predicts_it) {
  for (const double wake_up_us : {54.5, 12.0}) {
    const cost::LinkModel model = cost::paper_network(wake_up_us);
    const auto predicted = static_cast<double>(cost::cheaper_from(model, cost::LinkClass::tcp, cost::Way::owner,
                                                                  cost::Way::caller, {.kind = cost::Kind::accumulate}));
    const auto simulated = static_cast<double>(simulated_crossover(model));
    EXPECT_NEAR(simulated, predicted, 0.1 * predicted) << "woken in " << wake_up_us << " us";
    RecordProperty("owner_is_faster_from_bytes_at_" + std::to_string(wake_up_us) + "_us", std::to_string(simulated));
  }
}

TEST(Paper1InTheSimulator, has_a_crossover_within_half_of_the_papers_45_kb_on_tru64) {
  const auto simulated = static_cast<double>(simulated_crossover(cost::paper_network(54.5)));
  EXPECT_GT(simulated, 45'000 / 1.5);
  EXPECT_LT(simulated, 45'000 * 1.5);
}

}  // namespace
}  // namespace farsum
