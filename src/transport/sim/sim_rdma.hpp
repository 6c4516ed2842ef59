// A rank's way to the simulated cards of a world: what windows see of them, as transport/rdma.hpp has it. Nothing takes
// effect earlier or in a better order than the contract says: a put reads its source late and writes in two halves, and
// what no fence orders overtakes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/rdma.hpp"
#include "transport/sim/sim_world.hpp"

namespace farsum {

class SimRdma final : public Rdma {
 public:
  SimRdma(SimWorld& world, Rank rank) : world_(world), rank_(rank) {}

  std::string description() const override { return "simulated card"; }
  std::span<const std::byte> address() const override { return {}; }
  Result<CardMemory> expose(std::byte* memory, std::uint64_t bytes) override;
  void conceal(const CardMemory& memory) override;
  void introduce(Rank, std::span<const std::byte>) override {}
  Reached reach(Rank peer, std::span<const std::byte> key) override;
  void let_go(Reached memory) override { reached_.erase(memory); }
  Status put(Reached memory, std::uint64_t address, std::span<const std::byte> from,
             CardCompletion& completion) override;
  Status get(Reached memory, std::uint64_t address, std::span<std::byte> into, CardCompletion& completion) override;
  Status update(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand) override;
  Status fetch(Reached memory, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
               std::byte* result, CardCompletion& completion) override;
  Status fence(Rank peer) override;
  Status flush(Rank peer, CardCompletion& completion) override;
  Status wait(const CardCompletion& completion, FunctionRef<Status()> look) override;
  int descriptor() const override { return -1; }
  Result<bool> arm() override { return true; }
  void look_after() override {}
  void abandon() override;

 private:
  // Exposed memory, and what a key says of it.
  struct Extent {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  struct Part {
    Rank peer = 0;
    Extent extent;
  };
  // An operation from its start until it has taken effect; nobody is told of one that was abandoned.
  struct Course {
    std::uint64_t number = 0;
    CardCompletion* completion = nullptr;
    bool is_abandoned = false;
  };
  using CourseRef = std::shared_ptr<Course>;
  struct Flush {
    std::uint64_t before = 0;  // waits for all courses with a smaller number
    CourseRef course;
  };
  struct Step {
    CourseRef course;
    std::function<void()> run;  // none: a fence
  };
  struct Peer {
    std::set<std::uint64_t> under_way;
    std::set<std::uint64_t> started;  // of those: not behind a fence any more
    std::deque<Step> behind_fences;
    std::vector<Flush> flushes;
    bool is_lost = false;
  };

  Status check(Reached memory, std::uint64_t address, std::uint64_t bytes, Rank& peer) const;
  CourseRef begin(CardCompletion* completion);
  void start(Rank peer, const CourseRef& course, std::function<void()> run);
  void tell(const CourseRef& course, Code code);
  void end(Rank peer, const CourseRef& course, Code code);
  void go_on(Rank peer);
  void copy(Rank peer, std::byte* to, const std::byte* from, std::uint64_t bytes, std::function<void(Code)> then);
  void change(Rank peer, CardWord word, CardUpdate update, std::uint64_t operand, std::uint64_t compare,
              std::byte* result, const CourseRef& course);
  SimTime latency() { return world_.draw(world_.options().card_latency); }

  SimWorld& world_;
  Rank rank_;
  bool is_over_ = false;  // abandoned
  std::uint64_t next_course_ = 1;
  Reached next_reached_ = 1;
  std::map<Reached, Part> reached_;
  std::map<Rank, Peer> peers_;
  std::set<CourseRef> courses_;
  struct Unmade {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::map<std::byte*, std::unique_ptr<std::byte, Unmade>> made_;
};

}  // namespace farsum
