// What desks of one process send each other: roads on which letters wait until a thread carries them, in any order but
// that of two ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "collectives/letter_desk.hpp"
#include "failing_memory.hpp"
#include "mute_transport.hpp"
#include "os/event_count.hpp"
#include "transport/sim/sim_random.hpp"

namespace farsum {

// Roads between ranks, each with room for few letters.
class DeskRoads {
 public:
  explicit DeskRoads(std::size_t ranks)
      : roads_(ranks * ranks), desks_(ranks), events_(ranks), behind_(ranks), ranks_(ranks) {}

  // `events` is notified where there is room again, `behind` by each letter, when those are woken that the desk knows.
  void be(Rank rank, LetterDesk& desk, EventCount& events, EventCount* behind = nullptr) {
    desks_[rank] = &desk;
    events_[rank] = &events;
    behind_[rank] = behind;
  }
  bool post(Rank from, Rank to, std::span<const std::byte> header, std::span<const std::byte> body) {
    const FailingMemory::Pause pause;
    const std::lock_guard lock(mutex_);
    if (lacks_memory_once_in != 0 && chance_.once_in(lacks_memory_once_in)) throw std::bad_alloc();
    Road& road = roads_[from * ranks_ + to];
    if (road.letters.size() >= most) {
      road.has_refused = true;
      return false;
    }
    std::vector<std::byte>& letter = road.letters.emplace_back(header.begin(), header.end());
    letter.insert(letter.end(), body.begin(), body.end());
    return true;
  }
  // False: there was none.
  bool carry_one(SimRandom& random) {
    std::vector<std::byte> letter;
    std::size_t which = 0;
    bool has_refused = false;
    {
      const std::lock_guard lock(mutex_);
      std::vector<std::size_t> full;
      for (std::size_t road = 0; road < roads_.size(); ++road)
        if (!roads_[road].letters.empty()) full.push_back(road);
      if (full.empty()) return false;
      which = full[random.below(full.size())];
      letter = std::move(roads_[which].letters.front());
      roads_[which].letters.pop_front();
      has_refused = std::exchange(roads_[which].has_refused, false);
    }
    const std::size_t from = which / ranks_, to = which % ranks_;
    desks_[to]->on_letter(static_cast<Rank>(from), letter);
    desks_[to]->wake_touched();
    if (behind_[to] != nullptr) behind_[to]->notify_all();
    if (has_refused) events_[from]->notify_all();
    return true;
  }
  void retry() {
    for (LetterDesk* desk : desks_) desk->retry_refused();
  }

  std::size_t most = 3;
  std::uint64_t lacks_memory_once_in = 0;  // 0: never

 private:
  struct Road {
    std::deque<std::vector<std::byte>> letters;
    bool has_refused = false;
  };

  std::mutex mutex_;
  SimRandom chance_{11};
  std::vector<Road> roads_;  // from, to
  std::vector<LetterDesk*> desks_;
  std::vector<EventCount*> events_, behind_;
  std::size_t ranks_;
};

class TransportOnRoads final : public MuteTransport {
 public:
  TransportOnRoads(DeskRoads& roads, Rank me) : roads_(roads), me_(me) {}
  Capabilities capabilities(Rank) const override {
    Capabilities found;
    found.max_letter_bytes = most_letter_bytes;
    return found;
  }
  bool try_letter(Rank to, std::span<const std::byte> header, std::span<const std::byte> body) override {
    return roads_.post(me_, to, header, body);
  }

  std::size_t most_letter_bytes = 4096;

 private:
  DeskRoads& roads_;
  Rank me_;
};

}  // namespace farsum
