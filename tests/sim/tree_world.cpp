#include "tree_world.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "collectives/group_team.hpp"
#include "collectives/letter_desk.hpp"
#include "collectives/letter_post.hpp"
#include "collectives/node_rounds.hpp"
#include "collectives/reductions.hpp"
#include "cost/meeting_model.hpp"
#include "ops/kernels.hpp"
#include "stepped_thread.hpp"
#include "tree_roads.hpp"

namespace farsum {
namespace {

constexpr std::uint64_t team_name = 7;
constexpr std::uint64_t calls_of_a_run = 60;

// Nodes that meet at once with odd seeds, nodes in trees with even ones.
Rank nodes_of(std::uint64_t seed) {
  SimRandom random(SimRandom::mix(seed) + 1);
  return static_cast<Rank>(seed % 2 == 1 ? 4 + random.below(5) : 13 + random.below(7));
}

SimOptions options_of(std::uint64_t seed) {
  SimRandom random(SimRandom::mix(seed) + 2);
  SimOptions options;
  options.long_delay_one_in = 10 + random.below(30);
  options.wake_up = {500, 1'000 + random.below(14'000)};
  options.pair_letters = 1 + random.below(8);
  options.max_letter_bytes = random.once_in(3) ? 256 : 4096;
  return options;
}

// Few slots, which are soon full, or usual ones.
LetterPost::Use use_of(std::uint64_t seed) { return seed % 3 == 0 ? LetterPost::Use::window : LetterPost::Use::group; }

GroupPlaces places_of_node(Rank nodes, Rank me) {
  GroupPlaces places;
  places.here = {me};
  for (Rank rank = 0; rank < nodes; ++rank) {
    if (rank != me) places.remote.push_back({rank, {rank}});
  }
  return places;
}

// As docs/REDUCTIONS.md has it: few are folded from the first to the last; of more a node takes in the child with the
// smaller subtree first, and of equals the nearer one.
double folded(const std::vector<double>& of_node, std::uint32_t node) {
  const auto nodes = static_cast<std::uint32_t>(of_node.size());
  double sum = of_node[node];
  if (cost::meet_at_once(nodes)) {
    for (std::uint32_t other = 1; other < nodes; ++other) sum += of_node[other];
    return sum;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> children;  // nodes of its subtree, child
  for (std::uint32_t apart = 1; (node == 0 || apart < (node & -node)) && node + apart < nodes; apart *= 2)
    children.emplace_back(std::min(apart, nodes - node - apart), node + apart);
  std::sort(children.begin(), children.end());
  for (const auto& [size, child] : children) sum += folded(of_node, child);
  return sum;
}

std::span<std::byte> bytes_of(std::vector<double>& values) { return std::as_writable_bytes(std::span(values)); }

}  // namespace

// A rank that is a node: its program, and what serves it.
class TreeRank final : public TeamPost, private RequestHandler, private LetterHandler {
 public:
  TreeRank(TreeWorld& job, Rank me)
      : job_(job),
        me_(me),
        roads_(job.world_, me, job.sabotage_, [this] { wake(); }),
        desk_(roads_, [this] { retry_later(); }),
        letters_(desk_, *this, places_of_node(job.world_.rank_count(), me), use_of(job.seed_), waiter_.own_events()),
        post_(letters_, job.sabotage_, me),
        team_(places_of_node(job.world_.rank_count(), me), me, &post_, waiter_),
        reductions_(team_, me, {ops::kernels_for_this_machine()}, waiter_),
        block_(GroupBlock::footprint(1) / 8 + 32),
        thread_([this] { make_calls(); }) {
    waiter_.be(thread_);
    auto* const block =
        reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(block_.data()), 2 * cache_line_bytes));
    team_.begin(*reinterpret_cast<NodeTeamBlock*>(block), team_name);
    reductions_.begin(block);
    letters_.begin(team_name);
    job.world_.set_request_handler(me, this);
    job.world_.transport(me).deliver_letters_to(*this);
    job.world_.set_death_hook(me, [this](Rank dead) {
      waiter_.fail("rank " + std::to_string(dead) + " of the job died");
      go_on();
    });
  }
  ~TreeRank() override {
    waiter_.fail("the test is over");
    while (!thread_.is_over()) thread_.resume();
  }

  void begin() {
    letters_.open();
    job_.world_.call_at_rank(me_, job_.world_.draw({0, 20'000}), [this] { thread_.resume(); });
  }
  bool is_over() const { return thread_.is_over(); }
  std::uint64_t call() const { return call_; }
  TreeRoads& roads() { return roads_; }
  const LetterDesk& desk() const { return desk_; }
  const LyingPost& post() const { return post_; }

 private:
  SimWorld& world() { return job_.world_; }
  void go_on() {
    if (waiter_.may_go_on()) thread_.resume();
  }
  void wake() {
    waiter_.own_events().notify_all();
    world().call_at_rank(me_, world().draw(world().options().origin_wake), [this] { go_on(); });
  }
  void retry_later() {
    world().call_at_rank(me_, world().draw({1'000, 9'000}), [this] {
      desk_.retry_refused();
      go_on();
      if (desk_.has_refused()) retry_later();
    });
  }

  // ---- what comes
  void on_letter(Rank from, std::span<const std::byte> letter) noexcept override {
    desk_.on_letter(from, letter);
    world().call_at_rank(me_, world().draw(world().options().origin_wake), [this] {
      desk_.wake_touched();
      go_on();
    });
  }
  Served on_request(Rank, std::span<const std::byte>, std::span<std::byte>, ReplyToken) override { return {}; }

  // ---- the post of what is too long for a letter
  bool try_send(Rank to, std::uint64_t, std::uint64_t round, std::span<const std::byte> bytes,
                std::size_t& sent) override {
    world().call_after(world().draw_message_latency(),
                       [&job = job_, to, round, me = me_, copy = std::vector<std::byte>(bytes.begin(), bytes.end())] {
                         job.boxes_[{to, me, round}] = copy;
                         job.ranks_[to]->wake();
                       });
    sent = bytes.size();
    return true;
  }
  bool take(Rank from, std::uint64_t, std::uint64_t round, FunctionRef<void(std::span<const std::byte>)> use) override {
    const auto box = job_.boxes_.find({me_, from, round});
    if (box == job_.boxes_.end()) return false;
    const std::vector<std::byte> letter = std::move(box->second);
    job_.boxes_.erase(box);
    use(letter);
    return true;
  }
  bool has_failed() const override { return false; }
  Status failure(const char*) const override { return {}; }

  // ---- the program
  void make_calls() {
    for (; call_ < job_.calls_.size(); ++call_) {
      if (job_.has_death_ && job_.victim_ == me_ && call_ == job_.last_call_of_victim_)
        world().kill_after(me_, world().draw({0, 40'000}));
      post_.begin_call(call_);
      roads_.begin_call(call_);
      ++job_.entered_[call_];
      const Status status = make_call(job_.calls_[call_]);
      if (status.is_ok()) continue;
      if (job_.has_death_ && waiter_.has_failed())
        ++job_.told_of_death_;
      else
        job_.complain(where() + "failed: " + status.text());
      return;
    }
  }
  std::string where() const { return "call " + std::to_string(call_) + " of rank " + std::to_string(me_) + " "; }
  Status make_call(const TreeCall& call) {
    using Kind = TreeCall::Kind;
    const Rank nodes = world().rank_count();
    std::vector<double> mine(call.kind == Kind::reduce_scatter_block ? call.count * nodes : call.count);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = job_.value_of(call_, me_, i);
    std::vector<double> result(call.kind == Kind::allgather ? call.count * nodes : call.count);
    Status status;
    if (call.kind == Kind::barrier) {
      status = team_.barrier("barrier");
      if (status.is_ok() && job_.entered_[call_] != nodes) job_.complain(where() + "ended before all had come");
    } else if (call.kind == Kind::broadcast) {
      if (call.root == me_) result = mine;
      status = reductions_.broadcast(bytes_of(result), call.root, "broadcast");
    } else if (call.kind == Kind::allgather) {
      status = team_.allgather(bytes_of(mine), bytes_of(result), "allgather");
    } else {
      status = reduce(call, mine, result);
    }
    if (status.is_ok()) judge(call, result);
    return status;
  }
  Status reduce(const TreeCall& call, std::vector<double>& mine, std::vector<double>& result) {
    const auto kind =
        static_cast<GroupReduction::Kind>(static_cast<int>(call.kind) - static_cast<int>(TreeCall::Kind::allreduce));
    const bool gets = kind != GroupReduction::Kind::reduce || call.root == me_;
    return reductions_.run({.kind = kind,
                            .type = ops::ElementType::float64,
                            .op = ops::Operator::sum,
                            .root = kind == GroupReduction::Kind::reduce ? call.root : 0,
                            .count = call.count,
                            .mine = bytes_of(mine).data(),
                            .result = gets ? bytes_of(result).data() : nullptr},
                           "reduction");
  }
  void judge(const TreeCall& call, const std::vector<double>& result) {
    using Kind = TreeCall::Kind;
    if (call.kind == Kind::reduce && call.root != me_) return;
    for (std::size_t i = 0; i < result.size(); ++i) {
      double right = 0;
      if (call.kind == Kind::broadcast)
        right = job_.value_of(call_, call.root, i);
      else if (call.kind == Kind::allgather)
        right = job_.value_of(call_, static_cast<Rank>(i / call.count), i % call.count);
      else
        right = job_.sum_of(call_, call.kind == Kind::reduce_scatter_block ? me_ * call.count + i : i);
      if (std::memcmp(&result[i], &right, sizeof right) == 0) continue;
      return job_.complain(where() + "has another answer at element " + std::to_string(i));
    }
  }

  TreeWorld& job_;
  Rank me_;
  SteppedWaiter waiter_;
  TreeRoads roads_;
  LetterDesk desk_;
  LetterPost letters_;
  LyingPost post_;
  GroupTeam team_;
  GroupReductions reductions_;
  std::vector<std::uint64_t> block_;
  std::uint64_t call_ = 0;
  SteppedThread thread_;
};

TreeWorld::TreeWorld(std::uint64_t seed, TreeFault fault)
    : seed_(seed), random_(SimRandom::mix(seed) + 3), world_(seed, nodes_of(seed), options_of(seed)) {
  draw_calls();
  draw_sabotage(fault);
  for (Rank rank = 0; rank < world_.rank_count(); ++rank) ranks_.push_back(std::make_unique<TreeRank>(*this, rank));
  draw_disturbances();
}

TreeWorld::~TreeWorld() = default;

// Roots of broadcasts get ahead of the others.
void TreeWorld::draw_calls() {
  TreeCall call;
  for (std::uint64_t i = 0; i < calls_of_a_run; ++i) {
    if (call.kind != TreeCall::Kind::broadcast || random_.once_in(6)) {
      call.kind = static_cast<TreeCall::Kind>(random_.below(TreeCall::kinds));
      call.root = static_cast<std::uint32_t>(random_.below(world_.rank_count()));
    }
    call.count = random_.once_in(12) ? 500 + random_.below(200) : random_.below(12);
    if (call.kind == TreeCall::Kind::barrier) call.count = 0;
    calls_.push_back(call);
  }
  entered_.resize(calls_.size());
}

// In an allreduce of some elements that another one follows. In trees at the root, in what its last children bring.
void TreeWorld::draw_sabotage(TreeFault fault) {
  const Rank nodes = world_.rank_count();
  sabotage_.fault = fault;
  sabotage_.call = 3 + random_.below(8);
  if (cost::meet_at_once(nodes)) {
    sabotage_.rank = static_cast<Rank>(random_.below(nodes));
    // The first two that are folded commute.
    sabotage_.peer = sabotage_.rank == nodes - 1 ? nodes - 2 : nodes - 1;
    sabotage_.other_peer = sabotage_.rank == 0 ? 1 : 0;
  } else {
    sabotage_.peer = 8;
    sabotage_.other_peer = 4;
  }
  if (fault == TreeFault::none) return;
  for (const std::uint64_t call : {sabotage_.call, sabotage_.call + 1})
    calls_[call] = {TreeCall::Kind::allreduce, 0, 16};
  if (fault != TreeFault::credit_lost) return;
  // Letters of the neighbour that is told nothing, until it has no slot left.
  for (std::uint64_t call = sabotage_.call; call < calls_.size(); ++call) {
    if (calls_[call].kind == TreeCall::Kind::broadcast) calls_[call] = {TreeCall::Kind::allreduce, 0, 2};
  }
}

void TreeWorld::draw_disturbances() {
  const Rank nodes = world_.rank_count();
  const auto some_rank = [&] { return static_cast<Rank>(random_.below(nodes)); };
  world_.set_slowness(some_rank(), 1 + random_.below(8));
  for (int i = 0; i < 4; ++i)
    world_.freeze_after(some_rank(), random_.below(1'500'000), 20'000 + random_.below(300'000));
  for (int i = 0; i < 8; ++i) {
    const Rank one = some_rank();
    cut(one, (one + 1 + some_rank() % (nodes - 1)) % nodes, random_.below(1'500'000), 20'000 + random_.below(300'000));
  }
  // Who waits for lost credit would be told of a death in its stead.
  has_death_ = seed_ % 4 >= 2 && sabotage_.fault != TreeFault::credit_lost;
  victim_ = some_rank();
  last_call_of_victim_ = 20 + random_.below(30);
}

// Both ways.
void TreeWorld::cut(Rank one, Rank other, SimTime after_ns, SimTime for_ns) {
  world_.call_after(after_ns, [this, one, other] {
    ranks_[one]->roads().cut(other);
    ranks_[other]->roads().cut(one);
  });
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)})
    world_.call_at_rank(from, after_ns + for_ns, [this, from = from, to = to] { ranks_[from]->roads().heal(to); });
}

std::string TreeWorld::run() {
  for (const auto& rank : ranks_) rank->begin();
  constexpr std::uint64_t most_events = 20'000'000;
  while (complaint_.empty() && world_.step()) {
    if (world_.event_count() == most_events) complain("it never comes to rest");
  }
  if (complaint_.empty()) judge_end();
  return complaint_;
}

void TreeWorld::judge_end() {
  for (Rank rank = 0; rank < world_.rank_count(); ++rank) {
    const TreeRank& one = *ranks_[rank];
    const bool is_dead = !world_.is_alive(rank);
    const std::string name = "rank " + std::to_string(rank);
    if (!is_dead && !one.is_over()) complain(name + " stands still in call " + std::to_string(one.call()));
    if (one.desk().refused() != 0) complain("what " + name + " was sent breaks the rules");
    if (one.desk().unknown() != 0) complain(name + " was sent a letter for another team");
  }
}

void TreeWorld::complain(const std::string& what) {
  if (complaint_.empty()) complaint_ = what;
}

std::uint64_t TreeWorld::held_back() const {
  std::uint64_t all = 0;
  for (const auto& rank : ranks_) all += rank->roads().held_back;
  return all;
}

std::uint64_t TreeWorld::without_room() const {
  std::uint64_t all = 0;
  for (const auto& rank : ranks_) all += rank->roads().refused;
  return all;
}

std::uint64_t TreeWorld::without_slot() const {
  std::uint64_t all = 0;
  for (const auto& rank : ranks_) all += rank->post().refused;
  return all - without_room();
}

// All bits of it count, and so does the order of a sum of several.
double TreeWorld::value_of(std::uint64_t call, Rank rank, std::size_t i) const {
  const std::uint64_t bits = SimRandom::mix(SimRandom::mix(SimRandom::mix(seed_ ^ call << 32) + rank) + i);
  return static_cast<double>(bits >> 11) * 0x1p-50;
}

double TreeWorld::sum_of(std::uint64_t call, std::size_t i) const {
  std::vector<double> of_node;
  for (Rank rank = 0; rank < world_.rank_count(); ++rank) of_node.push_back(value_of(call, rank, i));
  return folded(of_node, 0);
}

}  // namespace farsum
