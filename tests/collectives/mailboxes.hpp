// What the first ranks of nodes tell each other where nodes are memory of one process: each letter in a box of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/group_team.hpp"
#include "failing_memory.hpp"

namespace farsum {

class Mailboxes {
 public:
  using Key = std::tuple<Rank, Rank, std::uint64_t, std::uint64_t>;  // to, from, team, round

  void put(const Key& key, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(letters_.try_emplace(key, bytes.begin(), bytes.end()).second) << "a round was sent twice";
    most_ = std::max(most_, ++waiting_[{std::get<0>(key), std::get<1>(key)}]);
    longest_ = std::max(longest_, bytes.size());
    ++sent_;
    arrived_.notify_all();
  }
  std::vector<std::byte> take(const Key& key) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return letters_.contains(key); });
    std::vector<std::byte> bytes = std::move(letters_[key]);
    letters_.erase(key);
    --waiting_[{std::get<0>(key), std::get<1>(key)}];
    return bytes;
  }

  // Nothing is sent from now on. Before any thread sends.
  void cut() { is_cut_ = true; }
  bool is_cut() const { return is_cut_; }
  std::size_t sent() const { return sent_; }
  std::size_t longest() const { return longest_; }
  int most_waiting_of_a_sender() const { return most_; }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Key, std::vector<std::byte>> letters_;
  std::map<std::pair<Rank, Rank>, int> waiting_;
  std::size_t sent_ = 0, longest_ = 0;
  int most_ = 0;
  bool is_cut_ = false;
};

// One rank's.
class Post : public TeamPost {
 public:
  Post(Mailboxes& boxes, Rank me) : boxes_(boxes), me_(me) {}
  Status send(Rank to, std::uint64_t team, std::uint64_t round, std::span<const std::byte> bytes,
              const char*) override {
    const FailingMemory::Pause pause;
    if (boxes_.is_cut()) return {Code::peer_failed, "there is no way to the other node"};
    boxes_.put({to, me_, team, round}, bytes);
    return {};
  }
  Status receive(Rank from, std::uint64_t team, std::uint64_t round, std::vector<std::byte>& bytes,
                 const char*) override {
    const FailingMemory::Pause pause;
    bytes = boxes_.take({me_, from, team, round});
    return {};
  }

 private:
  Mailboxes& boxes_;
  Rank me_;
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
