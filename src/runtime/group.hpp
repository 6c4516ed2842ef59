// Ranks that meet: what they meet with, what is made over them, and what carries the calls that nobody waits for. How
// they come together: groups.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/group_team.hpp"
#include "collectives/letter_post.hpp"
#include "collectives/reductions.hpp"
#include "runtime/group_carry.hpp"
#include "runtime/window_offer.hpp"
#include "transport/shm/node_segment.hpp"

namespace farsum {

// Ranks that meet. Made by Groups, lives until it is freed or its maker ends.
class Group {
 public:
  // What its ranks meet with.
  struct Means {
    // Null where this rank speaks for no node of several; the second is of the calls that nobody waits for.
    std::unique_ptr<LetterPost> post, carried_post;
    std::unique_ptr<GroupTeam> team;              // refers to the post
    std::unique_ptr<GroupReductions> reductions;  // refers to the team

    // As of LetterPost.
    void begin_letters(std::uint64_t key) const noexcept {
      for (LetterPost* const one : {post.get(), carried_post.get()})
        if (one != nullptr) one->begin(key);
    }
    void open_letters() const noexcept {
      for (LetterPost* const one : {post.get(), carried_post.get()})
        if (one != nullptr) one->open();
    }
  };

  Group(std::vector<Rank> ranks, std::uint32_t my_rank)
      : ranks_(std::move(ranks)), my_rank_(my_rank), offers_(ranks_.size()), words_(ranks_.size()) {}
  // Says where the ranks meet; called before anything else is asked for but what the group was made of. What the node
  // has of it lies in `block`, mapped at that address, where the team has begun.
  void begin(HeapExtent block, std::byte* mapped, Means means) noexcept {
    block_ = block;
    means_ = std::move(means);
    const auto here = static_cast<std::uint32_t>(places().here.size());
    carried_anchor_ = reinterpret_cast<CarriedAnchor*>(mapped + GroupBlock::carried_at(here));
    means_.reductions->begin(mapped);
  }

  const std::vector<Rank>& ranks() const { return ranks_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  std::uint32_t my_rank() const { return my_rank_; }
  HeapExtent block() const { return block_; }
  // False for all ranks of a job that do not all reach each other.
  bool meets() const { return means_.team != nullptr; }
  GroupTeam& team() { return *means_.team; }
  // All nodes have begun it.
  void open_letters() const noexcept { means_.open_letters(); }
  LetterPost* carried_post() const { return means_.carried_post.get(); }
  GroupReductions& reductions() { return *means_.reductions; }
  const GroupPlaces& places() const { return means_.team->places(); }
  // Room for what the ranks tell each other of a window that is being made, one at a time; and for a word of each.
  std::span<WindowOffer> offers() { return offers_; }
  std::span<std::byte> words() { return words_; }
  // Windows, counters and mutexes made over it. Relaxed: collective calls order whoever counts.
  std::atomic<int>& users() { return users_; }
  const std::atomic<int>& users() const { return users_; }
  CarriedAnchor& carried_anchor() const { return *carried_anchor_; }
  // What carries the calls that nobody waits for; null before the first.
  GroupCarry* carried() const { return carried_.get(); }
  GroupCarry& set_carried(std::unique_ptr<GroupCarry> carried) { return *(carried_ = std::move(carried)); }
  std::size_t open_requests() const { return carried_ == nullptr ? 0 : carried_->carry().open_requests(); }
  // Of all others the program's collective calls are counted, for ranks to find that they mix them. Relaxed: a program
  // whose threads take turns with a group orders them.
  void count_blocking_call() { blocking_calls_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t blocking_calls() const { return blocking_calls_.load(std::memory_order_relaxed); }

 private:
  std::vector<Rank> ranks_;
  std::uint32_t my_rank_;
  std::vector<WindowOffer> offers_;
  std::vector<std::byte> words_;
  HeapExtent block_;
  Means means_;
  CarriedAnchor* carried_anchor_ = nullptr;
  std::unique_ptr<GroupCarry> carried_;  // refers to the team and its post
  std::atomic<std::uint64_t> blocking_calls_{0};
  std::atomic<int> users_{0};
};

}  // namespace farsum
