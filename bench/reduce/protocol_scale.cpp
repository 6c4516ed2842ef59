#include "protocol_scale.hpp"

#include <fmt/format.h>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/carried_call.hpp"
#include "collectives/carried_walk.hpp"
#include "collectives/group_team.hpp"
#include "collectives/letter_desk.hpp"
#include "collectives/letter_post.hpp"
#include "common/lab.hpp"
#include "ops/kernels.hpp"
#include "progress/waiter.hpp"
#include "transport/sim/sim_world.hpp"

namespace bench {

using farsum::Rank;
using farsum::SimWorld;
using farsum::Status;

namespace {

constexpr std::uint64_t name_of_team = 1;
constexpr farsum::CarriedCall one_number{.kind = farsum::CarriedCall::Kind::allreduce,
                                         .type = farsum::ops::ElementType::float64,
                                         .op = farsum::ops::Operator::sum,
                                         .count = 1};

// A walk never waits.
class NoWaiter final : public farsum::Waiter {
 public:
  Status wait(farsum::EventCount&, farsum::FunctionRef<bool()>, const char* doing) override {
    return {farsum::Code::system, fmt::format("{} waits", doing)};
  }
  Status wait_for_grant(farsum::LockGrant&, const char*) override { return {}; }
  Status looked_in_vain(const char*) override { return {}; }
  farsum::EventCount& own_events() override { return events_; }

 private:
  farsum::EventCount events_;
};

// All letters are short here.
class NoPost final : public farsum::TeamPost {
 public:
  bool try_send(Rank, std::uint64_t, std::uint64_t, std::span<const std::byte>, std::size_t&) override { return false; }
  bool take(Rank, std::uint64_t, std::uint64_t, farsum::FunctionRef<void(std::span<const std::byte>)>) override {
    return false;
  }
  bool has_failed() const override { return false; }
  Status failure(const char*) const override { return {}; }
};

farsum::GroupPlaces places_of(Rank nodes, Rank me) {
  farsum::GroupPlaces places;
  places.here = {me};
  places.remote.reserve(nodes - 1);
  for (Rank rank = 0; rank < nodes; ++rank)
    if (rank != me) places.remote.push_back({rank, {rank}});
  return places;
}

// A node of one rank, which begins the next call as soon as the last is over.
class WalkingNode final : private farsum::LetterHandler, private farsum::RequestHandler {
 public:
  WalkingNode(SimWorld& world, Rank me, std::uint64_t calls)
      : world_(world),
        me_(me),
        calls_(calls),
        desk_(world.transport(me), [this] { try_again_later(); }),
        team_(places_of(world.rank_count(), me), me, &others_, waiter_),
        letters_(desk_, others_, team_.places(), farsum::LetterPost::Use::group, waiter_.own_events()),
        lists_(team_, farsum::ops::kernels_for_this_machine(), 0, farsum::ReduceOrder::nodes),
        walk_(lists_, letters_, name_of_team) {
    letters_.begin(name_of_team);
    world.set_request_handler(me, this);
    world.transport(me).deliver_letters_to(*this);
  }

  void begin() {
    letters_.open();
    begin_call();
    go_on();
  }
  bool has_ended_right() const { return done_ == calls_ && is_right_; }

 private:
  farsum::Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, farsum::ReplyToken) override {
    return {};
  }
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override {
    desk_.on_letter(from, letter);
    if (std::exchange(has_turn_, true)) return;
    world_.call_at_rank(me_, world_.draw(world_.options().origin_wake), [this] {
      has_turn_ = false;
      desk_.wake_touched();
      go_on();
    });
  }

  double value_of(Rank rank, std::uint64_t call) const { return static_cast<double>(rank + call); }

  void begin_call() {
    const double mine = value_of(me_, done_);
    std::memcpy(answer_, &mine, sizeof mine);
    walk_.begin(farsum::said_of(one_number, 0), me_, world_.rank_count(), answer_, found_, {});
  }

  void go_on() {
    while (done_ < calls_ && walk_.go_on()) {
      const double ranks = world_.rank_count();
      double sum = 0;
      std::memcpy(&sum, answer_, sizeof sum);
      is_right_ &= sum == ranks * (ranks - 1) / 2 + ranks * static_cast<double>(done_);
      if (++done_ < calls_) begin_call();
    }
    if (walk_.has_refused()) try_again_later();
  }

  void try_again_later() {
    if (std::exchange(tries_again_, true)) return;
    world_.call_at_rank(me_, world_.draw({1'000, 9'000}), [this] {
      tries_again_ = false;
      desk_.retry_refused();
      go_on();
    });
  }

  SimWorld& world_;
  Rank me_;
  std::uint64_t calls_;
  NoWaiter waiter_;
  NoPost others_;
  farsum::LetterDesk desk_;
  farsum::GroupTeam team_;
  farsum::LetterPost letters_;
  farsum::CarriedLists lists_;
  farsum::CarriedWalk walk_;
  alignas(64) std::byte answer_[64]{};
  farsum::CarriedFinding found_;
  std::uint64_t done_ = 0;
  bool is_right_ = true;
  bool has_turn_ = false;
  bool tries_again_ = false;
};

}  // namespace

ProtocolScale measure_protocol_scale(std::uint32_t ranks, std::uint64_t calls) {
  SimWorld world(1, ranks);
  std::vector<std::unique_ptr<WalkingNode>> nodes;
  for (Rank rank = 0; rank < ranks; ++rank) nodes.push_back(std::make_unique<WalkingNode>(world, rank, calls));
  ProtocolScale scale{.ranks = ranks, .calls = calls};
  const std::clock_t begin = std::clock();
  for (const auto& node : nodes) node->begin();
  (void)world.run();
  scale.effort = effort_since(begin);
  scale.events = world.event_count();
  scale.virtual_us = static_cast<double>(world.now_ns()) / 1000 / static_cast<double>(calls);
  scale.is_right = true;
  for (const auto& node : nodes) scale.is_right &= node->has_ended_right();
  return scale;
}

std::string text_of(const ProtocolScale& scale) {
  return fmt::format(
      "{} ranks of the protocol, {} allreduces{}: {:.2f} million events in {:.2f} s of processor time, {:.2f} million "
      "a "
      "second; {:.0f} MiB; {:.1f} us of virtual time a call\n",
      scale.ranks, scale.calls, scale.is_right ? "" : " (WRONG)", static_cast<double>(scale.events) / 1e6,
      scale.effort.processor_s, static_cast<double>(scale.events) / scale.effort.processor_s / 1e6,
      scale.effort.peak_mib, scale.virtual_us);
}

std::string lines_of(const ProtocolScale& scale) {
  const std::string name = fmt::format("protocol: {} ranks, {} allreduces", scale.ranks, scale.calls);
  const double rate = static_cast<double>(scale.events) / scale.effort.processor_s;
  const Json events = {{"bench", "reduce"},
                       {"case", name + ", events"},
                       {"ours", rate},
                       {"better", "higher"},
                       {"aim", 1e6},
                       {"met", rate >= 1e6},
                       {"unit", "a second of processor time"},
                       {"right", scale.is_right}};
  const Json memory = {{"bench", "reduce"},
                       {"case", name + ", memory"},
                       {"ours", scale.effort.peak_mib},
                       {"better", "lower"},
                       {"aim", 4096},
                       {"met", scale.effort.peak_mib <= 4096},
                       {"unit", "MiB"}};
  return events.dump() + "\n" + memory.dump() + "\n";
}

}  // namespace bench
