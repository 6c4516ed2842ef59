#include "cluster/cluster.hpp"

#include <algorithm>

namespace farsum::cluster {
namespace {

// Which of a node's daemons, for the keys of their processes.
constexpr std::uint64_t dedicated_processor = 1000;
constexpr std::uint64_t choice_of_nodes = 1001;

// What draws are for, so that no two of a call are alike.
constexpr std::uint64_t draws_to_carrier = std::uint64_t{1} << 40;
constexpr std::uint64_t draws_to_rank = std::uint64_t{2} << 40;

bool has_daemons(const Noise& noise, std::uint32_t node) {
  return noise.load > 0 && fraction(hash(hash(noise.seed, choice_of_nodes), node)) < noise.share;
}

Daemon daemon_of(const Noise& noise, std::uint32_t node, std::uint64_t processor) {
  return {noise, hash(hash(noise.seed, processor), node)};
}

bool is_constant(const Range& range) { return range.least == range.most; }

}  // namespace

Cluster::Cluster(const Machine& machine, const Lists& lists)
    : machine_(machine),
      lists_(lists),
      arrival_ns_(lists.all().size(), -1),
      nodes_(lists.nodes()),
      can_repeat_(is_constant(machine.to_carrier_ns) && is_constant(machine.wake_up_ns) &&
                  is_constant(machine.to_rank_ns)) {
  for (const trees::Step& step : lists.all()) {
    const bool combines = step.action == trees::Action::receive_combine;
    cost_ns_.push_back(combines ? machine.take_ns(step.count) : machine.copy_ns(step.count));
  }
  make_processors();
  quiet_until_ns_ = first_disturbance_after(0);
}

void Cluster::make_processors() {
  const std::uint32_t ranks = machine_.ranks_a_node;
  const bool agent_uses_one = machine_.carrier == CarrierKind::thread && ranks < machine_.processors_a_node;
  const std::uint32_t used = ranks + (agent_uses_one ? 1 : 0);
  for (std::uint32_t node = 0; node < lists_.nodes(); ++node) {
    const auto processor = [&](std::uint32_t number) {
      if (!has_daemons(machine_.noise, node)) return Processor();
      const Daemon own = daemon_of(machine_.noise, node, number);
      if (used >= machine_.processors_a_node) return Processor(own);
      return Processor(own, daemon_of(machine_.noise, node, used));
    };
    for (std::uint32_t rank = 0; rank < ranks; ++rank) ranks_.push_back(processor(rank));
    if (agent_uses_one) carriers_.push_back(processor(ranks));
    if (machine_.carrier != CarrierKind::dedicated) continue;
    const Noise& noise = machine_.dedicated_noise;
    carriers_.push_back(has_daemons(noise, node) ? Processor(daemon_of(noise, node, dedicated_processor))
                                                 : Processor());
  }
}

Call Cluster::call() {
  const std::int64_t begin = released_ns_;
  ++calls_;
  if (quiet_call_ns_ >= 0 && begin + quiet_call_ns_ <= quiet_until_ns_) {
    released_ns_ += quiet_call_ns_;
    return {begin, begin, released_ns_};
  }
  const std::int64_t start = of_rank(0, 0).work(begin, 0);
  run(begin);
  released_ns_ = machine_.closing_ns + (machine_.closing == Closing::barrier ? last_entry_ns_ : root_done_ns_);
  if (can_repeat_) {
    if (released_ns_ <= quiet_until_ns_) quiet_call_ns_ = released_ns_ - begin;
    quiet_until_ns_ = first_disturbance_after(released_ns_);
  }
  return {begin, start, of_rank(0, 0).work(released_ns_, 0)};
}

void Cluster::run(std::int64_t released_ns) {
  last_entry_ns_ = 0;
  std::fill(nodes_.begin(), nodes_.end(), Node{});
  for (std::uint32_t node = 0; node < lists_.nodes(); ++node) {
    nodes_[node].now_ns = enter(node, released_ns);
    walk(node);
    while (!ready_.empty()) {
      const std::uint32_t next = ready_.back();
      ready_.pop_back();
      walk(next);
    }
  }
}

// The ranks of a node combine in shared memory; then one of them enters for all, and its carrier begins.
std::int64_t Cluster::enter(std::uint32_t node, std::int64_t released_ns) {
  std::int64_t combined_ns = of_rank(node, 0).work(released_ns, machine_.ranks_a_node > 1 ? machine_.local_ns : 0);
  for (std::uint32_t rank = 1; rank < machine_.ranks_a_node; ++rank) {
    const std::int64_t done_ns = of_rank(node, rank).work(released_ns, machine_.local_ns);
    last_entry_ns_ = std::max(last_entry_ns_, done_ns);
    combined_ns = std::max(combined_ns, done_ns);
  }
  const std::int64_t entered_ns = of_rank(node, 0).work(combined_ns, machine_.entry_ns);
  return carry(node, entered_ns + draw(machine_.to_carrier_ns, draws_to_carrier + node), 0);
}

void Cluster::walk(std::uint32_t node) {
  here_ = node;
  if (!trees::advance(lists_.of(node), nodes_[node].at, *this)) return;
  const std::int64_t told_ns = nodes_[node].now_ns + draw(machine_.to_rank_ns, draws_to_rank + node);
  const std::int64_t returned_ns = of_rank(node, 0).work(told_ns, 0);
  last_entry_ns_ = std::max(last_entry_ns_, returned_ns);
  if (node == 0) root_done_ns_ = returned_ns;
}

bool Cluster::take(const trees::Step& step) {
  const std::uint32_t index = lists_.index(step);
  const std::int64_t arrival_ns = arrival_ns_[index];
  if (arrival_ns < 0) return false;
  arrival_ns_[index] = -1;
  std::int64_t& now_ns = nodes_[here_].now_ns;
  const std::int64_t begin_ns = arrival_ns > now_ns ? arrival_ns + draw(machine_.wake_up_ns, index) : now_ns;
  now_ns = carry(here_, begin_ns, cost_ns_[index]);
  ++letters_;
  return true;
}

// There is room for each letter. Who waits for it goes on after the list that sends it.
bool Cluster::send(const trees::Step& step) {
  const std::uint32_t taker = lists_.taker(lists_.index(step));
  arrival_ns_[taker] = nodes_[here_].now_ns + machine_.latency_ns;
  const Node& peer = nodes_[step.peer];
  if (peer.now_ns >= 0 && lists_.index(step.peer, peer.at) == taker) ready_.push_back(step.peer);
  return true;
}

std::int64_t Cluster::carry(std::uint32_t node, std::int64_t start, std::int64_t length_ns) {
  switch (machine_.carrier) {
    case CarrierKind::card:
      return start + length_ns;
    case CarrierKind::host:
      return of_rank(node, 0).work(start, length_ns);
    case CarrierKind::thread:
    case CarrierKind::dedicated:
      break;
  }
  Processor& own = carriers_.empty() ? of_rank(node, machine_.ranks_a_node - 1) : carriers_[node];
  return own.work(start, length_ns);
}

std::int64_t Cluster::draw(const Range& range, std::uint64_t number) const {
  if (is_constant(range)) return range.least;
  const double part = fraction(hash(hash(machine_.noise.seed, calls_), number));
  return range.least + static_cast<std::int64_t>(part * static_cast<double>(range.most - range.least));
}

std::int64_t Cluster::first_disturbance_after(std::int64_t t) {
  std::int64_t first = never_ns;
  for (Processor& processor : ranks_) first = std::min(first, processor.quiet_until(t));
  for (Processor& processor : carriers_) first = std::min(first, processor.quiet_until(t));
  return first;
}

}  // namespace farsum::cluster
