// What the first ranks of nodes tell each other where nodes are memory of one process: each letter in a box of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/group_places.hpp"
#include "collectives/team_post.hpp"
#include "failing_memory.hpp"
#include "os/event_count.hpp"
#include "progress/waiter.hpp"

namespace farsum {

class Mailboxes {
 public:
  using Key = std::tuple<Rank, Rank, std::uint64_t, std::uint64_t>;  // to, from, team, round

  void put(const Key& key, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    const auto [letter, is_new] = letters_.try_emplace(key, bytes.begin(), bytes.end());
    ASSERT_TRUE(is_new) << "a round was sent twice";
    if (spoil) spoil(key, letter->second);
    EXPECT_LT(waiting_of_team(key), TeamPost::most_waiting_of_a_sender);
    most_ = std::max(most_, ++waiting_[{std::get<0>(key), std::get<1>(key)}]);
    longest_ = std::max(longest_, bytes.size());
    ++sent_;
    ++sent_by_[std::get<1>(key)];
    const auto owner = owners_.find(std::get<0>(key));
    if (owner != owners_.end()) owner->second->notify_all();
  }
  // What is left of earlier rounds is gone with that.
  std::optional<std::vector<std::byte>> take(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto& [to, from, team, round] = key;
    const auto first = letters_.lower_bound({to, from, team, 0});
    const auto last = letters_.lower_bound(key);
    waiting_[{to, from}] -= static_cast<int>(std::distance(first, last));
    letters_.erase(first, last);
    const auto letter = letters_.find(key);
    if (letter == letters_.end()) return std::nullopt;
    std::optional<std::vector<std::byte>> bytes = std::move(letter->second);
    letters_.erase(letter);
    --waiting_[{std::get<0>(key), std::get<1>(key)}];
    return bytes;
  }
  // Whoever sleeps there is woken by each letter to the rank.
  void wake(Rank rank, EventCount* events) {
    const std::lock_guard lock(mutex_);
    if (events == nullptr)
      owners_.erase(rank);
    else
      owners_[rank] = events;
  }

  // Nothing is sent from now on. Before any thread sends.
  void cut() { is_cut_ = true; }
  bool is_cut() const { return is_cut_; }
  std::size_t sent() const { return sent_; }
  std::size_t sent_by(Rank rank) const { return sent_by_.contains(rank) ? sent_by_.at(rank) : 0; }
  std::size_t longest() const { return longest_; }
  int most_waiting_of_a_sender() const { return most_; }

  std::function<void(const Key&, std::vector<std::byte>&)> spoil;  // what is sent; set before any thread sends

 private:
  // Letters of the sender, before one more.
  std::size_t waiting_of_team(const Key& key) const {
    const auto& [to, from, team, round] = key;
    const auto first = letters_.lower_bound({to, from, team, 0});
    return static_cast<std::size_t>(std::distance(first, letters_.upper_bound({to, from, team, ~std::uint64_t{0}}))) -
           1;
  }

  std::mutex mutex_;
  std::map<Rank, EventCount*> owners_;
  std::map<Rank, std::size_t> sent_by_;
  std::map<Key, std::vector<std::byte>> letters_;
  std::map<std::pair<Rank, Rank>, int> waiting_;
  std::size_t sent_ = 0, longest_ = 0;
  int most_ = 0;
  bool is_cut_ = false;
};

// One rank's. Now and then it has no room for a letter, or for a part of it only; when is drawn from the rank.
class Post : public TeamPost {
 public:
  Post(Mailboxes& boxes, Rank me, Waiter& waiter) : boxes_(boxes), me_(me), events_(waiter.own_events()), draws_(me) {
    boxes_.wake(me, &events_);
  }
  ~Post() override { boxes_.wake(me_, nullptr); }
  bool try_send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
                std::size_t& sent) override {
    const FailingMemory::Pause pause;
    if (boxes_.is_cut()) return false;
    std::vector<std::byte>& begun = begun_[{to, team}];
    EXPECT_EQ(begun.size(), sent);
    const bool has_room = draws_() % 4 != 0;
    const std::size_t part = has_room ? bytes.size() - sent : (bytes.size() - sent) / 3;
    begun.insert(begun.end(), bytes.begin() + sent, bytes.begin() + sent + part);
    sent += part;
    if (has_room) {
      boxes_.put({to, me_, team, round}, begun);
      begun.clear();
    } else {
      events_.notify_all();  // there is room at once
    }
    return has_room;
  }
  bool take(Rank from, std::uint64_t team, std::uint64_t round,
            FunctionRef<void(std::span<const std::byte>)> use) override {
    std::optional<std::vector<std::byte>> letter;
    {
      const FailingMemory::Pause pause;
      letter = boxes_.take({me_, from, team, round});
    }
    if (letter) use(*letter);
    return letter.has_value();
  }
  bool has_failed() const override { return boxes_.is_cut(); }
  Status failure(const char*) const override { return {Code::peer_failed, "there is no way to the other node"}; }

 private:
  Mailboxes& boxes_;
  Rank me_;
  EventCount& events_;
  std::minstd_rand draws_;
  std::map<std::pair<Rank, std::uint64_t>, std::vector<std::byte>>
      begun_;  // of a letter to a team's rank, what has left
};

// Rank r is on node node_of[r], and the caller on `mine`.
inline GroupPlaces places_of(const std::vector<std::uint32_t>& node_of, std::uint32_t mine) {
  GroupPlaces places;
  std::map<std::uint32_t, std::size_t> listed;
  for (std::uint32_t rank = 0; rank < node_of.size(); ++rank) {
    if (node_of[rank] == mine) {
      places.here.push_back(rank);
    } else {
      const auto [entry, is_new] = listed.try_emplace(node_of[rank], places.remote.size());
      if (is_new) places.remote.push_back({rank, {}});
      places.remote[entry->second].members.push_back(rank);
    }
  }
  return places;
}

}  // namespace farsum
