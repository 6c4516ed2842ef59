// One node's roads to others in a simulated world. They can be cut: then a letter waits until they are healed, and the
// next finds no room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/letter_desk.hpp"
#include "mute_transport.hpp"
#include "transport/sim/sim_world.hpp"
#include "tree_faults.hpp"

namespace farsum {

class TreeRoads final : public MuteTransport {
 public:
  // `has_room` is called when a road that has refused a letter has room again.
  TreeRoads(SimWorld& world, Rank me, TreeSabotage& sabotage, std::function<void()> has_room)
      : world_(world),
        real_(world.transport(me)),
        me_(me),
        sabotage_(sabotage),
        has_room_(std::move(has_room)),
        roads_(world.rank_count()) {}

  Capabilities capabilities(Rank peer) const override { return real_.capabilities(peer); }
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override {
    Road& road = roads_[to];
    if (road.waiting.size() == most_waiting) {
      road.has_refused = true;
      ++refused;
      return false;
    }
    std::vector<std::byte> letter(header.begin(), header.end());
    letter.insert(letter.end(), body.begin(), body.end());
    lose_credit(to, letter);
    road.waiting.push_back(std::move(letter));
    if (road.is_cut) ++held_back;
    send_waiting(to);
    return true;
  }

  void cut(Rank to) { roads_[to].is_cut = true; }
  void heal(Rank to) {
    roads_[to].is_cut = false;
    send_waiting(to);
  }
  void begin_call(std::uint64_t call) { call_ = call; }

  std::uint64_t refused = 0, held_back = 0;

 private:
  static constexpr std::size_t most_waiting = 1;

  struct Road {
    std::deque<std::vector<std::byte>> waiting;
    bool is_cut = false;
    bool has_refused = false;
    bool comes_back = false;
  };

  void send_waiting(Rank to) {
    Road& road = roads_[to];
    while (!road.is_cut && !road.waiting.empty() && real_.try_letter(to, road.waiting.front(), {}))
      road.waiting.pop_front();
    if (road.waiting.size() < most_waiting && std::exchange(road.has_refused, false)) has_room_();
    if (road.is_cut || road.waiting.empty() || std::exchange(road.comes_back, true)) return;
    world_.call_at_rank(me_, world_.draw({500, 5'000}), [this, to] {
      roads_[to].comes_back = false;
      send_waiting(to);
    });
  }

  // What was told before is told again.
  void lose_credit(Rank to, std::vector<std::byte>& letter) {
    const bool loses_all = sabotage_.is(TreeFault::credit_lost, me_);
    const bool loses_once = sabotage_.is(TreeFault::credit_lost_once, me_);
    if (to != sabotage_.peer || (!loses_all && !loses_once)) return;
    std::byte* const at = letter.data() + sizeof(LetterAddress) + offsetof(LetterHead, consumed);
    std::uint64_t consumed = 0;
    std::memcpy(&consumed, at, sizeof consumed);
    const bool is_lost = call_ >= sabotage_.call && consumed > told_ && (loses_all || !sabotage_.was_put_in);
    if (is_lost) {
      sabotage_.was_put_in = true;
      std::memcpy(at, &told_, sizeof told_);
    } else {
      told_ = consumed;
    }
  }

  SimWorld& world_;
  SimTransport& real_;
  Rank me_;
  TreeSabotage& sabotage_;
  std::function<void()> has_room_;
  std::vector<Road> roads_;
  std::uint64_t call_ = 0;
  std::uint64_t told_ = 0;  // to the peer that is lied to
};

}  // namespace farsum
